package gpu

import "sync"

// A handle is something of the driver's that can be freed: in use, or free, but
// never both.
type handle struct {
	mu    sync.RWMutex
	value uintptr // 0 once freed
}

// use calls f with the handle, which stays until f returns.
func (h *handle) use(f func(value uintptr) error) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.value == 0 {
		return ErrClosed
	}
	return f(h.value)
}

// hold keeps the handle until release is called: use, for several at once.
func (h *handle) hold() error {
	h.mu.RLock()
	if h.value == 0 {
		h.mu.RUnlock()
		return ErrClosed
	}
	return nil
}

func (h *handle) release() { h.mu.RUnlock() }

// free calls f with the handle when nobody uses it, and only once.
func (h *handle) free(f func(value uintptr) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.value == 0 {
		return nil
	}
	value := h.value
	h.value = 0
	return f(value)
}
