package mesh

import "sync"

// memoMost is how many signatures a process remembers to have checked, of each kind:
// those of a world's members and as many more.
const memoMost = 2 * MaxWorld

// In a large mesh everybody hears of everybody from several others, and checks a
// signature of each. Ones that were found good need not be checked again, not even by
// another node of the same process: of a thousand nodes in one process each would else
// check a thousand. What was found bad is not kept.
var (
	goodAnnouncements memo[*announcement] // by their raw form
	goodStands        memo[struct{}]      // by peer, digest and signature
)

// A memo keeps values by the bytes that they follow from: those that were asked for of
// late, at most 2·memoMost.
type memo[V any] struct {
	mu         sync.Mutex
	fresh, old map[string]V
}

func (m *memo[V]) get(key []byte) (v V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok = m.fresh[string(key)]; ok {
		return v, true
	}
	if v, ok = m.old[string(key)]; ok {
		m.add(string(key), v)
	}
	return v, ok
}

func (m *memo[V]) put(key []byte, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(string(key), v)
}

// add begins a new generation when one is full. The lock is held.
func (m *memo[V]) add(key string, v V) {
	if m.fresh == nil || len(m.fresh) >= memoMost {
		m.fresh, m.old = make(map[string]V), m.fresh
	}
	m.fresh[key] = v
}
