package trainer

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// bulky is a state of parts of 1 MiB, the last shorter, of several types; zero parts
// are one of some bytes.
func bulky(seed uint64, p Progress, parts int) *State {
	rng := rand.New(rand.NewPCG(seed, 2))
	big := make([]float32, max(parts*partSize/4-100, 50))
	for i := range big {
		big[i] = float32(i) * float32(seed)
	}
	small := []float64{rng.Float64(), rng.Float64(), rng.Float64()}
	return &State{
		Progress: p,
		Tensors: []*Param{
			{Name: "small", Value: tensor.Of(small)}, {Name: "empty", Value: tensor.New(tensor.Int8, 0)},
			{Name: "big", Value: tensor.Of(big)}, {Name: "on", Value: tensor.Of([]bool{true, seed%2 == 0})},
		},
		Buffers: []*Param{{Name: "mean", Value: tensor.Of([]float32{rng.Float32()})}},
		Random:  rand.NewPCG(seed, 3),
	}
}

// each runs f for every rank of worlds and returns the errors.
func each(worlds []*memnet.World, f func(rank int, w *memnet.World) error) []error {
	errs := make([]error, len(worlds))
	var wg sync.WaitGroup
	for r, w := range worlds {
		wg.Go(func() { errs[r] = f(r, w) })
	}
	wg.Wait()
	return errs
}

func labelOf(t *testing.T, s *State) sum {
	t.Helper()
	l, err := s.label()
	if err != nil {
		t.Fatal(err)
	}
	return l.hash()
}

func TestCarry(t *testing.T) {
	ahead, behind := Progress{Step: 7, Epoch: 1, Consumed: 32}, Progress{Step: 6, Epoch: 1, Consumed: 16}
	next := Progress{Step: 7, Epoch: 2} // has ended the epoch
	none := Progress{}
	for name, c := range map[string]struct {
		has  []Progress
		seed []uint64
		want int // whose state all end with
	}{
		"one newcomer":       {[]Progress{ahead, none, ahead}, []uint64{1, 2, 1}, 0},
		"many newcomers":     {[]Progress{none, none, none, ahead}, []uint64{1, 2, 3, 4}, 3},
		"one finished":       {[]Progress{behind, ahead, behind}, []uint64{1, 2, 1}, 1},
		"one ended an epoch": {[]Progress{ahead, next, ahead}, []uint64{1, 2, 1}, 1},
		"nobody has it":      {[]Progress{none, none, none}, []uint64{1, 2, 3}, 0},
		"a fresh one agrees": {[]Progress{none, none, none}, []uint64{1, 2, 1}, 0},
		"alone":              {[]Progress{none}, []uint64{5}, 0},
		"all have it":        {[]Progress{ahead, ahead}, []uint64{5, 5}, 0},
	} {
		states := make([]*State, len(c.has))
		for r := range states {
			states[r] = bulky(c.seed[r], c.has[r], 2)
		}
		want := labelOf(t, states[c.want])
		worlds := memnet.New(len(states))
		noErrors(t, each(worlds, func(rank int, w *memnet.World) error {
			return Carry(context.Background(), ops.NewGroup(w, ops.Config{}), states[rank])
		}))
		for r, s := range states {
			if labelOf(t, s) != want || s.Progress != c.has[c.want] {
				t.Errorf("%s: rank %d has another state, at %v", name, r, s.Progress)
			}
			if sent := worlds[r].Sent(); sent > 3*partSize {
				t.Errorf("%s: rank %d sent %d bytes: each part once would do", name, r, sent)
			}
		}
	}
}

// A rank is cut off when it alone has finished a step. The others take that step again,
// and when the rank comes back they have finished no other: theirs counts. Had they not
// taken it, its would.
func TestCarryFork(t *testing.T) {
	at := func(step int64) Progress { return Progress{Step: step} }
	for name, c := range map[string]struct {
		alone, others Progress // after the next step
		want          int      // whose counts
	}{
		"taken again":            {at(4), at(4), 1},
		"and the epoch ended":    {Progress{Step: 4, Epoch: 1}, at(4), 1},
		"and another after it":   {at(4), at(5), 1},
		"not yet, nor any other": {at(4), at(3), 0},
	} {
		states := []*State{bulky(1, at(3), 1), bulky(1, at(3), 1), bulky(1, at(3), 1)}
		carry := func(states ...*State) {
			noErrors(t, each(memnet.New(len(states)), func(rank int, w *memnet.World) error {
				return Carry(context.Background(), ops.NewGroup(w, ops.Config{}), states[rank])
			}))
		}
		step := func(s *State, p Progress, made float32) {
			if s.Progress != p {
				s.Progress = p
				noErrors(t, []error{tensor.Copy(s.Buffers[0].Value, tensor.Of([]float32{made}))})
			}
		}
		carry(states...)
		step(states[0], c.alone, 7)
		carry(states[1:]...)
		for _, s := range states[1:] {
			step(s, c.others, 8)
		}
		want := labelOf(t, states[c.want])
		carry(states...)
		for r, s := range states {
			if labelOf(t, s) != want || s.lineage != states[0].lineage {
				t.Errorf("%s: rank %d has another state, %v of %+v", name, r, s.Progress, s.lineage)
			}
		}
	}
}

// All of the givers give.
func TestCarrySplits(t *testing.T) {
	worlds := memnet.New(4)
	noErrors(t, each(worlds, func(rank int, w *memnet.World) error {
		s := bulky(1, Progress{Step: 1}, 6)
		if rank == 3 {
			s = bulky(9, Progress{}, 6)
		}
		return Carry(context.Background(), ops.NewGroup(w, ops.Config{}), s)
	}))
	for r, w := range worlds[:3] {
		if sent := w.Sent(); sent < 2*partSize-4096 || sent > 2*partSize+8192 {
			t.Errorf("giver %d of 3 sent %d bytes of 6 MiB", r, sent)
		}
	}
}

// A giver dies after some parts; in the next world only the others travel.
func TestCarryGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parts = 8
		giver := bulky(1, Progress{Step: 3}, parts)
		taker := bulky(2, Progress{Step: 2}, parts)
		before := labelOf(t, taker)
		worlds := memnet.New(3)
		errs := each(worlds, func(rank int, w *memnet.World) error {
			s := []*State{giver, bulky(1, Progress{Step: 3}, parts), taker}[rank]
			var tr ops.Transport = w
			if rank == 1 {
				tr = &mortal{World: w, after: 2 * partSize}
			}
			return Carry(context.Background(), ops.NewGroup(tr, ops.Config{}), s)
		})
		if !errors.Is(errs[2], memnet.ErrKilled) {
			t.Fatalf("the taker: %v", errs[2])
		}
		got := count(taker.incoming.have, true)
		if got != 5 { // of the dead giver 1 and 3; of the other 0, 2 and 4, and 6 in vain
			t.Fatalf("%d parts arrived before the death", got)
		}
		if labelOf(t, taker) != before || taker.Step != 2 {
			t.Error("half a state has replaced a whole one")
		}
		worlds = memnet.New(2)
		noErrors(t, each(worlds, func(rank int, w *memnet.World) error {
			return Carry(context.Background(), ops.NewGroup(w, ops.Config{}), []*State{giver, taker}[rank])
		}))
		if labelOf(t, taker) != labelOf(t, giver) {
			t.Error("another state than the giver's")
		}
		if sent := worlds[0].Sent(); sent > int64(parts-got)*partSize+8192 {
			t.Errorf("%d of %d parts were there; %d bytes travelled", got, parts, sent)
		}
	})
}

// The only one who had finished a step dies while it gives: the others go on from
// where they are, and what came of it is of no use.
func TestCarryFallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		states := []*State{bulky(1, Progress{Step: 2}, 4), bulky(1, Progress{Step: 2}, 4), bulky(2, Progress{Step: 3}, 4)}
		before := labelOf(t, states[0])
		each(memnet.New(3), func(rank int, w *memnet.World) error {
			var tr ops.Transport = w
			if rank == 2 {
				tr = &mortal{World: w, after: 2 * partSize}
			}
			return Carry(context.Background(), ops.NewGroup(tr, ops.Config{}), states[rank])
		})
		noErrors(t, each(memnet.New(2), func(rank int, w *memnet.World) error {
			return Carry(context.Background(), ops.NewGroup(w, ops.Config{}), states[rank])
		}))
		for r, s := range states[:2] {
			if labelOf(t, s) != before || s.incoming != nil {
				t.Errorf("rank %d is not where it was", r)
			}
		}
	})
}

// A mortal dies when it has sent so many bytes.
type mortal struct {
	*memnet.World
	after int64
}

func (m *mortal) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	err := m.World.Send(ctx, to, lane, tag, n, parts)
	if m.Sent() >= m.after {
		time.Sleep(time.Second) // of a bubble: the others do what they can
		m.Kill()
	}
	return err
}

// A liar changes a bit of what it sends in large pieces.
type liar struct{ *memnet.World }

func (l *liar) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	return l.World.Send(ctx, to, lane, tag, n, func(yield func([]byte, error) bool) {
		for p, err := range parts {
			if n == partSize {
				p = bytes.Clone(p)
				p[0] ^= 1
			}
			if !yield(p, err) {
				return
			}
		}
	})
}

func TestCarryVerifies(t *testing.T) {
	states := []*State{bulky(1, Progress{Step: 2}, 2), bulky(2, Progress{}, 2)}
	before := labelOf(t, states[1])
	errs := each(memnet.New(2), func(rank int, w *memnet.World) error {
		var tr ops.Transport = w
		if rank == 0 {
			tr = &liar{w}
		}
		err := Carry(context.Background(), ops.NewGroup(tr, ops.Config{}), states[rank])
		if err != nil {
			w.End(err)
		}
		return err
	})
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "from rank 0: part 0 of 2 has the hash") {
		t.Error(errs[1])
	}
	if labelOf(t, states[1]) != before {
		t.Error("it was taken all the same")
	}
}

func TestCarryDiverged(t *testing.T) {
	at := Progress{Step: 4, Consumed: 9}
	errs := each(memnet.New(4), func(rank int, w *memnet.World) error {
		return Carry(context.Background(), ops.NewGroup(w, ops.Config{}), bulky([]uint64{1, 2, 1, 5}[rank], []Progress{at, at, at, {}}[rank], 0))
	})
	for r, err := range errs {
		d, ok := errors.AsType[*DivergedError](err)
		if !ok || !reflect.DeepEqual(d.Ranks, [][]int{{0, 2}, {1}}) || d.Progress != at {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestCarryComparesLists(t *testing.T) {
	errs := each(memnet.New(3), func(rank int, w *memnet.World) error {
		s := bulky(1, Progress{}, 0)
		if rank == 1 {
			s.Tensors[0].Value = tensor.Of([]float64{1, 2})
		}
		return Carry(context.Background(), ops.NewGroup(w, ops.Config{}), s)
	})
	for r, err := range errs {
		if p, ok := errors.AsType[*ParamsError](err); !ok || p.Rank != 1 || !strings.Contains(err.Error(), "small") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// What one rank cannot list, all hear of.
func TestCarryChecks(t *testing.T) {
	for says, spoil := range map[string]func(s *State){
		`named "mean"`:     func(s *State) { s.Tensors[0].Name = "mean" },
		"that is none":     func(s *State) { s.Tensors[0].Value = tensor.Tensor{} },
		"nothing negative": func(s *State) { s.Step = -1 },
		"a name of":        func(s *State) { s.Tensors[0].Name = strings.Repeat("x", maxName+1) },
		"17 dimensions":    func(s *State) { s.Tensors[1].Value = tensor.New(tensor.Int8, make([]int, 17)...) },
		"too random":       func(s *State) { s.Random = tooRandom{} },
	} {
		errs := each(memnet.New(2), func(rank int, w *memnet.World) error {
			s := bulky(1, Progress{}, 0)
			if rank == 1 {
				spoil(s)
			}
			return Carry(context.Background(), ops.NewGroup(w, ops.Config{}), s)
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: rank %d: %v", says, r, err)
			}
		}
	}
}

type tooRandom struct{}

func (tooRandom) MarshalBinary() ([]byte, error) { return nil, errors.New("too random") }
func (tooRandom) UnmarshalBinary([]byte) error   { return errors.New("too random") }
