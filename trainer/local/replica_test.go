package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/compress"
)

func TestSettingsThatCannotBe(t *testing.T) {
	for want, m := range map[string]Method{
		"every -1":         LocalSGD{Every: -1},
		"every 2000000000": DiLoCo{Every: 2000000000},
		"warm-up of -2":    PostLocalSGD{Warmup: -2},
		"delay of 5":       DiLoCo{Every: 5, Delay: 5},
		"delay of -1":      PairAveraging{Every: 5, Delay: -1},
		"rate of -1":       DiLoCo{Rate: -1},
		"rate of NaN":      DiLoCo{Rate: math.NaN()},
		"momentum of 1":    DiLoCo{Momentum: 1},
		"keeps 1 of":       DiLoCo{Keep: 1},
		"keeps -1 of":      SMA{Alpha: 2},
		"9 parts in 8":     StreamingDiLoCo{DiLoCo{Every: 8}, 9},
		"-1 parts":         StreamingDiLoCo{DiLoCo{Every: 8}, -1},
		"no method":        nil,
		"0 elements":       LocalSGD{Codec: broken{}},
	} {
		if _, err := New(m, newPupil(tensor.Float32, 0).params()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", m, err, want)
		}
	}
	whole := []*trainer.Param{{Name: "n", Value: tensor.Of([]int32{1})}}
	if _, err := New(LocalSGD{}, whole); err == nil || !strings.Contains(err.Error(), `"n"`) {
		t.Errorf("a model of integers: %v", err)
	}
	r, err := New(LocalSGD{}, newPupil(tensor.Float32, 0).params())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{r.Step(), r.Finish()} {
		if err == nil || !strings.Contains(err.Error(), "before Begin") {
			t.Errorf("a step before Begin: %v", err)
		}
	}
}

type broken struct{ compress.Int8 }

func (broken) Block() (int, int) { return 0, 0 }

func TestNamed(t *testing.T) {
	for _, name := range Names() {
		m, err := Named(name, 8, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := m.plan(); p.every != 8 {
			t.Errorf("%s: every %d", name, p.every)
		}
		_, err = Named(name, 8, compress.Int8(0))
		if (err != nil) != (name == "pairs") {
			t.Errorf("%s in eight bits: %v", name, err)
		}
		if _, err := Named(name, -8, nil); err == nil {
			t.Errorf("%s every -8 steps", name)
		}
	}
	if _, err := Named("ddp", 1, nil); err == nil || !strings.Contains(err.Error(), "diloco") {
		t.Errorf("ddp: %v", err)
	}
}

// Parts are all elements once, in order and evenly, whatever types are between.
func TestCut(t *testing.T) {
	params := []*trainer.Param{
		{Name: "a", Value: tensor.New(tensor.Float32, 7)},
		{Name: "b", Value: tensor.New(tensor.Float64, 2)},
		{Name: "c", Value: tensor.New(tensor.Float32, 0)},
		{Name: "d", Value: tensor.New(tensor.Float32, 2, 3)},
	}
	var got []string
	for _, c := range cut(params, plan{parts: 3, every: 9}) {
		got = append(got, fmt.Sprintf("%v%v@%d", c.dtype, c.spans, c.turn))
	}
	want := "[float32[{0 0 4}]@0 float32[{0 4 7} {3 0 1}]@3 float32[{3 1 6}]@6 float64[{1 0 1}]@0 float64[{1 1 2}]@4]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Ranks that do not fit learn it from Begin, all of them, with the world still whole.
func TestRanksDiffer(t *testing.T) {
	other := func(g *ops.Group) (Method, []*trainer.Param) {
		return DiLoCo{Every: 10}, []*trainer.Param{{Name: "w", Value: tensor.New(tensor.Float32, 5+g.Rank()/2)}}
	}
	for name, make := range map[string]func(g *ops.Group) (Method, []*trainer.Param){
		"every": func(g *ops.Group) (Method, []*trainer.Param) {
			return DiLoCo{Every: 10 + g.Rank()/2}, newPupil(tensor.Float32, 0).params()
		},
		"int8": func(g *ops.Group) (Method, []*trainer.Param) {
			m := DiLoCo{Every: 10}
			if g.Rank() == 2 {
				m.Codec = compress.Int8(0)
			}
			return m, newPupil(tensor.Float32, 0).params()
		},
		"model": other,
	} {
		worlds := memnet.New(3)
		for rank, err := range onEach(worlds, func(g *ops.Group) error {
			r, err := New(make(g))
			if err != nil {
				return err
			}
			return r.Begin(t.Context(), g)
		}) {
			s, ok := errors.AsType[*SettingsError](err)
			if !ok || s.Rank != 2 || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
	}
}

// States that differ, as without a Carry, are found.
func TestStatesDiffer(t *testing.T) {
	var replicas [2]*Replica
	step := func(g *ops.Group) error {
		r, err := New(LocalSGD{Every: 1}, newPupil(tensor.Float32, 0).params())
		if err == nil {
			err = errors.Join(r.Begin(t.Context(), g), r.Step())
		}
		replicas[g.Rank()] = r
		return err
	}
	noErrors(t, onEach(memnet.New(2), step))
	elements[float32](replicas[1].State()[0].Value)[3]++
	for rank, err := range onEach(memnet.New(2), func(g *ops.Group) error { return replicas[g.Rank()].Begin(t.Context(), g) }) {
		if _, ok := errors.AsType[*SettingsError](err); !ok {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// An error of one rank's inner step ends the world, and with it what the others wait for,
// also if that is a round that was to be late; nothing stays behind.
func TestOneRankFails(t *testing.T) {
	bad := errors.New("the batch is bad")
	for _, m := range []Method{LocalSGD{Every: 3}, DiLoCo{Every: 4, Delay: 3}, StreamingDiLoCo{DiLoCo{Every: 4, Delay: 3}, 2}, SMA{}, PairAveraging{}} {
		for failing := range 9 {
			synctest.Test(t, func(t *testing.T) {
				for rank, err := range onEach(memnet.New(3), func(g *ops.Group) error {
					u := newPupil(tensor.Float32, g.Rank())
					r, err := New(m, u.params())
					if err != nil {
						return err
					}
					if err := r.Begin(context.Background(), g); err != nil {
						return err
					}
					for step := range 12 {
						if g.Rank() == 1 && step == failing {
							return bad
						}
						if err := r.Step(); err != nil {
							return err
						}
					}
					return r.Finish()
				}) {
					if err == nil || !strings.Contains(err.Error(), bad.Error()) {
						t.Errorf("%T, step %d: rank %d: %v", m, failing, rank, err)
					}
				}
			})
		}
	}
}

// Due says beforehand which steps send something, and Settled afterwards whether all ranks
// have one model.
func TestDueAndSettled(t *testing.T) {
	for want, m := range map[string]Method{
		"--x--xS--x": LocalSGD{Every: 3},
		"xx--x-S--x": PostLocalSGD{Warmup: 2, Every: 3},
		"-x-x-xS-x-": StreamingDiLoCo{DiLoCo{Every: 4}, 2},
		"xxxxxxSxxx": SMA{},
	} {
		worlds := memnet.New(2)
		got := make([]string, len(worlds))
		noErrors(t, onEach(worlds, func(g *ops.Group) error {
			r, err := New(m, newPupil(tensor.Float32, g.Rank()).params())
			if err != nil {
				return err
			}
			if err := r.Begin(t.Context(), g); err != nil {
				return err
			}
			for step := range len(want) {
				due, take := r.Due(), r.Step
				if step == 6 {
					take = r.Finish
				}
				if err := take(); err != nil {
					return err
				}
				switch {
				case r.Settled():
					got[g.Rank()] += "S"
				case due:
					got[g.Rank()] += "x"
				default:
					got[g.Rank()] += "-"
				}
			}
			return nil
		}))
		for rank, s := range got {
			if s != want {
				t.Errorf("%T: rank %d sends in %s, want %s", m, rank, s, want)
			}
		}
	}
}
