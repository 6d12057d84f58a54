package mesh

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Signal sends a few bytes, at most 512, to a rank, past all lanes. It may be
// dropped when the receiver has no handler for the channel or is far behind; it
// is never reordered or changed. It does not block.
func (w *World) Signal(to int, channel uint32, p []byte) error {
	if err := w.checkPeer(to); err != nil {
		return err
	}
	if len(p) > maxSignal {
		return fmt.Errorf("mesh: signal of %d bytes, want at most %d", len(p), maxSignal)
	}
	l := w.to(to)
	l.need()
	payload := binary.LittleEndian.AppendUint32(nil, channel)
	select {
	case l.queue <- controlFrame(frameSignal, append(payload, p...)):
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	default: // far behind: dropped, as promised
	}
	return nil
}

// OnSignal sets the handler of a channel's signals; nil removes it. The handler
// must not block; it borrows p until it returns.
func (w *World) OnSignal(channel uint32, f func(from int, p []byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f == nil {
		delete(w.handlers, channel)
	} else {
		w.handlers[channel] = f
	}
}

func (w *World) signalled(from int, channel uint32, p []byte) {
	w.mu.Lock()
	f := w.handlers[channel]
	w.mu.Unlock()
	if f != nil {
		f(from, p)
	}
}
