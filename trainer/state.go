package trainer

import (
	"cmp"
	"encoding"
	"fmt"
	"slices"

	"peermesh/ops/tensor"
)

const (
	// MaxStateBytes bounds the values of a State, in bytes.
	MaxStateBytes = 64 << 30
	// MaxStateTensors bounds their number.
	MaxStateTensors = 1 << 20
	// MaxRandom bounds the encoding of a State's Random, in bytes.
	MaxRandom = 1 << 16
)

// Progress is how far a run has come. All ranks of a world have the same between
// two steps.
type Progress struct {
	Step     int64 // steps finished since the beginning
	Epoch    int64 // the epoch that the next step belongs to
	Consumed int64 // samples of that epoch that finished steps have used
}

// compare orders by how much is finished. Consumed follows from the other two.
func (p Progress) compare(q Progress) int {
	return cmp.Or(cmp.Compare(p.Step, q.Step), cmp.Compare(p.Epoch, q.Epoch))
}

func (p Progress) String() string {
	return fmt.Sprintf("step %d, epoch %d, %d samples into it", p.Step, p.Epoch, p.Consumed)
}

// Random is a source of random numbers whose state can be carried to another
// process: *rand.PCG and *rand.ChaCha8 of math/rand/v2 are.
type Random interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// A State is all that the next step of a run depends on, as one value. It does
// not copy: the tensors are those of the model and the optimiser, so it is
// current at any time, and who writes it has changed the model.
//
// Names tell the tensors apart, so all of them differ. All ranks list the same,
// in the same order; gradients do not count.
//
// What is random on each rank differently, such as dropout, has no place here,
// for ranks come and go: derive it from a seed, Progress.Step and the rank.
type State struct {
	Progress

	// Tensors are what an update changes: parameters, the State of the optimiser
	// and of a schedule.
	Tensors []*Param
	// Buffers are what the forward pass changes, such as running means.
	Buffers []*Param
	// Random is drawn from alike on all ranks. It may be nil.
	Random Random

	incoming *cargo // what Carry has received so far of a state that is not ours yet
	lineage  lineage
}

// A lineage says in which world a state was made, to tell apart two states of as many
// steps. A rank may have finished a step that the others, from whom it was cut off at that
// moment, did not: they take it again in a later world, and theirs is the one that counts.
// Worlds are counted by the calls of Carry, each of which agrees on a number greater than
// any that a rank knows.
type lineage struct {
	made  int64    // the world in which the last progress was made
	world int64    // that of the last Carry
	began Progress // at its end
}

// made is the world in which s was made, as far as it has come.
func (s *State) made() int64 {
	if s.Progress != s.lineage.began {
		return s.lineage.world
	}
	return s.lineage.made
}

// all is every tensor, in the order of the encoding.
func (s *State) all() []*Param { return slices.Concat(s.Tensors, s.Buffers) }

// check refuses what could not be encoded.
func (s *State) check() error {
	all := s.all()
	if len(all) > MaxStateTensors {
		return fmt.Errorf("trainer: a state of %d tensors: at most %d", len(all), MaxStateTensors)
	}
	if min(s.Step, s.Epoch, s.Consumed) < 0 {
		return fmt.Errorf("trainer: state: %v: want nothing negative", s.Progress)
	}
	seen := make(map[string]bool, len(all))
	var size int64
	for _, p := range all {
		switch {
		case p == nil || !p.Value.DType().Valid():
			return fmt.Errorf("trainer: a state with a tensor that is none")
		case len(p.Name) > maxName:
			return fmt.Errorf("trainer: state: a name of %d bytes: at most %d", len(p.Name), maxName)
		case len(p.Value.Shape()) > maxDims:
			return fmt.Errorf("trainer: state: %q has %d dimensions: at most %d", p.Name, len(p.Value.Shape()), maxDims)
		case seen[p.Name]:
			return fmt.Errorf("trainer: state: two tensors are named %q", p.Name)
		case p.Value.Bytes() > MaxStateBytes-size:
			return fmt.Errorf("trainer: a state of more than %d bytes", int64(MaxStateBytes))
		}
		seen[p.Name] = true
		size += p.Value.Bytes()
	}
	return nil
}

// A memento is what a step that fails must put back: what changes before the
// update does.
type memento struct {
	buffers []tensor.Tensor
	random  []byte
}

// remember copies into m, whose memory it uses again.
func (s *State) remember(m *memento) error {
	if m.buffers == nil {
		for _, b := range s.Buffers {
			m.buffers = append(m.buffers, tensor.New(b.Value.DType(), b.Value.Len()))
		}
	}
	for i, b := range s.Buffers {
		if err := tensor.Copy(m.buffers[i], b.Value); err != nil {
			return fmt.Errorf("trainer: state: keeping %q: %w", b.Name, err)
		}
	}
	var err error
	m.random, err = s.random()
	return err
}

// restore is the reverse of remember.
func (s *State) restore(m *memento) error {
	for i, b := range s.Buffers {
		if err := tensor.Copy(b.Value, m.buffers[i]); err != nil {
			return fmt.Errorf("trainer: state: putting %q back: %w", b.Name, err)
		}
	}
	return s.setRandom(m.random)
}

// random is the encoding of the random state, empty for none.
func (s *State) random() ([]byte, error) {
	if s.Random == nil {
		return nil, nil
	}
	p, err := s.Random.MarshalBinary()
	if err == nil && len(p) > MaxRandom {
		err = fmt.Errorf("%d bytes: at most %d", len(p), MaxRandom)
	}
	if err != nil {
		return nil, fmt.Errorf("trainer: state: random: %w", err)
	}
	return p, nil
}

func (s *State) setRandom(p []byte) error {
	if s.Random == nil {
		if len(p) > 0 {
			return fmt.Errorf("trainer: state: %d bytes of a random state, and no Random to take them", len(p))
		}
		return nil
	}
	if err := s.Random.UnmarshalBinary(p); err != nil {
		return fmt.Errorf("trainer: state: random: %w", err)
	}
	return nil
}
