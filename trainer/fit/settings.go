package fit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"peermesh/ops"
)

// A SettingsError says in what a rank has other settings than rank 0. All ranks get the same.
type SettingsError struct {
	Rank   int // the first whose are different
	Differ []Difference
}

// A Difference is a setting that two ranks have differently: a field of [Trainer], such as
// "DDP.Hook" or "Callbacks", which are those of every rank.
type Difference struct {
	Name        string
	Rank0, Rank string // what they have
}

func (e *SettingsError) Error() string {
	var list []string
	for _, d := range e.Differ {
		list = append(list, fmt.Sprintf("%s is %s on rank %d and %s on rank 0", d.Name, d.Rank, e.Rank, d.Rank0))
	}
	return "fit: ranks have different settings: " + strings.Join(list, ", ")
}

// A setting is one that ranks have alike, in words.
type setting struct{ Name, Value string }

// settings are those by which ranks would wait for each other in different places, always of
// the same names in the same order.
func (l *loop[B]) settings() (list []setting) {
	t := &l.t
	add := func(name string, value any) { list = append(list, setting{name, fmt.Sprint(value)}) }
	given := func(name string, yes bool) { add(name, map[bool]string{true: "given", false: "none"}[yes]) }
	add("Epochs", t.Epochs)
	add("Steps", t.Steps)
	given("Valid", t.Valid != nil)
	add("ValidEvery", t.ValidEvery)
	add("ValidEpochs", t.ValidEpochs)
	add("Sanity", t.Sanity)
	add("Accumulate", t.Accumulate)
	add("Clip", t.Clip)
	given("Scaler", t.Scaler != nil)
	add("DDP.FindUnused", t.DDP.FindUnused)
	add("DDP.Static", t.DDP.Static)
	given("DDP.Hook", t.DDP.Hook != nil)
	add("SyncBatchNorm", t.SyncBatchNorm)
	if t.ZeRO == nil {
		given("ZeRO", false)
	} else {
		add("ZeRO", fmt.Sprintf("%+v", *t.ZeRO))
	}
	given("Local", t.Local != nil)
	given("Checkpoints", t.Checkpoints != nil)
	add("CheckpointEvery", t.CheckpointEvery)
	add("Resume", t.Resume)
	add("LimitTrain", t.LimitTrain)
	add("LimitValid", t.LimitValid)
	add("Overfit", t.Overfit)
	everywhere := []string{}
	for _, c := range t.Callbacks {
		if c.Ranks() == EveryRank {
			everywhere = append(everywhere, fmt.Sprintf("%T", c))
		}
	}
	add("Callbacks", everywhere)
	return list
}

// compareSettings finds ranks that would wait for each other in different places.
func (l *loop[B]) compareSettings(ctx context.Context, g *ops.Group) error {
	all, err := ops.AllGatherObject(ctx, g, l.settings())
	if err != nil {
		return fmt.Errorf("fit: comparing settings: %w", err)
	}
	for rank, theirs := range all {
		differ, err := differences(all[0], theirs)
		if err != nil {
			return fmt.Errorf("fit: comparing settings with rank %d: %w", rank, err)
		}
		if len(differ) > 0 {
			// All know; the barrier has nobody end the world before.
			return errors.Join(&SettingsError{rank, differ}, g.Barrier(ctx).Wait())
		}
	}
	return nil
}

// differences are those between rank 0's settings and another's, which have the same names
// unless they are of another version of this package.
func differences(zero, theirs []setting) (differ []Difference, err error) {
	if len(zero) != len(theirs) {
		return nil, fmt.Errorf("%d settings, rank 0 has %d: want one version of the program", len(theirs), len(zero))
	}
	for i, s := range theirs {
		if s.Name != zero[i].Name {
			return nil, fmt.Errorf("a setting %q, on rank 0 it is %q: want one version of the program", s.Name, zero[i].Name)
		}
		if s.Value != zero[i].Value {
			differ = append(differ, Difference{s.Name, zero[i].Value, s.Value})
		}
	}
	return differ, nil
}
