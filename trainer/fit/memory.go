package fit

import (
	"fmt"
	"slices"

	"peermesh/trainer"
)

// A memory is what a Stateful callback remembers, or the loop for the plateau. Its live numbers change in hooks, and
// so before the others' do; those of the state only when a step or an epoch does count
// on this rank, so that ranks at one place of a run have one state.
type memory struct {
	live  []float64
	state *trainer.Param
	kept  []float64 // the elements of state
}

// remembered makes the memories of callbacks.
func remembered(callbacks []Callback) ([]memory, error) {
	var all []memory
	for _, c := range callbacks {
		s, ok := c.(Stateful)
		if !ok {
			continue
		}
		if c.Ranks() != EveryRank {
			return nil, fmt.Errorf("fit: callback %T has a memory and is not called on every rank", c)
		}
		name, live := s.Memory()
		all = append(all, newMemory("callback."+name, live))
	}
	return all, nil
}

func newMemory(name string, live []float64) memory {
	kept := slices.Clone(live)
	return memory{live, param(name, kept), kept}
}

// memorise has what callbacks remember count, with the step or epoch that does.
func (l *loop[B]) memorise() {
	for _, m := range l.memories {
		copy(m.kept, m.live)
	}
}

// recall gives callbacks what counts: what they have learnt since has not been.
func (l *loop[B]) recall() {
	for _, m := range l.memories {
		copy(m.live, m.kept)
	}
}
