package ops_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// A record is an object with most of what gob knows.
type record struct {
	Name  string
	Tags  map[string][]int
	Next  *record
	Shape any
}

func recordOf(rank, size int) record {
	return record{
		Name: strings.Repeat("x", size), Tags: map[string][]int{"rank": {rank, size}},
		Next: &record{Name: fmt.Sprint(rank)}, Shape: rank,
	}
}

func equalObjects(what string, got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: got %.100v, want %.100v", what, got, want)
	}
	return nil
}

func TestObjects(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		all := make([]record, n)
		for r := range all {
			all[r] = recordOf(r, []int{0, 1, 70_000, 3, 500, 12}[(r+n)%6])
		}
		for _, algorithm := range []string{"", "all_gather=ring,gather=binomial,scatter=binomial,broadcast=tree"} {
			check(t, world(n, ops.Config{Algorithm: algorithm}, func(g *ops.Group) error {
				got, err := ops.AllGatherObject(ctx, g, all[g.Rank()])
				if err = errors.Join(err, equalObjects("all_gather", got, all)); err != nil {
					return err
				}
				for root := range n {
					if err := objectsOfRoot(g, root, all); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
}

func objectsOfRoot(g *ops.Group, root int, all []record) error {
	one, err := ops.BroadcastObject(ctx, g, all[g.Rank()], root)
	if err = errors.Join(err, equalObjects("broadcast", one, all[root])); err != nil {
		return err
	}
	var given, want []record
	if g.Rank() == root {
		given, want = all, all
	}
	one, err = ops.ScatterObject(ctx, g, given, root)
	if err = errors.Join(err, equalObjects("scatter", one, all[g.Rank()])); err != nil {
		return err
	}
	got, err := ops.GatherObject(ctx, g, all[g.Rank()], root)
	return errors.Join(err, equalObjects("gather", got, want))
}

func TestObjectsOfOtherTypes(t *testing.T) {
	check(t, world(3, ops.Config{}, func(g *ops.Group) error {
		n, err1 := ops.BroadcastObject(ctx, g, g.Rank(), 2)
		nothing, err2 := ops.BroadcastObject[*record](ctx, g, nil, 0)
		whatever, err3 := ops.BroadcastObject[any](ctx, g, "text", 1)
		list, err4 := ops.AllGatherObject(ctx, g, []string{fmt.Sprint(g.Rank())})
		return errors.Join(err1, err2, err3, err4, equalObjects("int", n, 2), equalObjects("nil", nothing, (*record)(nil)),
			equalObjects("any", whatever, any("text")), equalObjects("lists", list, [][]string{{"0"}, {"1"}, {"2"}}))
	}))
}

// What is too large, or cannot be encoded, is named to all before it moves, and the
// group goes on.
func TestObjectsRefused(t *testing.T) {
	const n, odd = 4, 2
	check(t, world(n, ops.Config{MaxObject: 1000}, func(g *ops.Group) error {
		big, list := "small", []string(nil)
		if g.Rank() == odd {
			big = strings.Repeat("x", 2000)
			list = []string{"", "", "", big}
		}
		_, err1 := ops.AllGatherObject(ctx, g, big)
		_, err2 := ops.GatherObject(ctx, g, big, 0)
		_, err3 := ops.BroadcastObject(ctx, g, big, odd)
		_, err4 := ops.ScatterObject(ctx, g, list, odd)
		for i, err := range []error{err1, err2, err3, err4} {
			var e *ops.ObjectError
			if !errors.As(err, &e) || e.Rank != odd || e.Size < 2000 || e.Max != 1000 || !strings.Contains(err.Error(), "object of rank 2 has 20") {
				return fmt.Errorf("%d: %v", i, err)
			}
		}
		var v any = "fine"
		if g.Rank() == odd {
			v = func() {}
		}
		_, err := ops.AllGatherObject(ctx, g, v)
		var e *ops.ObjectError
		if !errors.As(err, &e) || e.Rank != odd || e.Size != -1 || (e.Err != nil) != (g.Rank() == odd) {
			return fmt.Errorf("unencodable: %v", err)
		}
		if g.Rank() != odd && !strings.Contains(err.Error(), "rank 2 could not be encoded there") {
			return err
		}
		_, err = ops.BroadcastObject(ctx, g, "still there", 1)
		return err
	}))
}

// A type that does not fit is the receiver's error, and the group goes on.
func TestObjectsOfAnotherType(t *testing.T) {
	check(t, world(2, ops.Config{}, func(g *ops.Group) error {
		var err error
		if g.Rank() == 0 {
			_, err = ops.BroadcastObject(ctx, g, "text", 0)
		} else {
			var e *ops.ObjectError
			if _, bad := ops.BroadcastObject(ctx, g, 7, 0); !errors.As(bad, &e) || e.Rank != 0 || e.Err == nil {
				return bad
			}
		}
		return errors.Join(err, g.Barrier(ctx).Wait())
	}))
}

// Arguments that only one rank gives wrong are told to all.
func TestObjectArguments(t *testing.T) {
	for _, c := range []struct {
		says string
		give map[int][]int
	}{
		{"vs has 2 values: want one for each of 3 ranks", map[int][]int{1: {1, 2}}},
		{"vs is given by rank 2: it is for the root", map[int][]int{1: {1, 2, 3}, 2: {1}}},
	} {
		for r, err := range world(3, ops.Config{}, func(g *ops.Group) error {
			_, err := ops.ScatterObject(ctx, g, c.give[g.Rank()], 1)
			return errors.Join(err, g.Barrier(ctx).Wait())
		}) {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("rank %d: %v, want %q", r, err, c.says)
			}
		}
	}
	check(t, world(2, ops.Config{}, func(g *ops.Group) error {
		if _, err := ops.BroadcastObject(ctx, g, 1, 5); err == nil || !strings.Contains(err.Error(), "root 5") {
			return fmt.Errorf("got %v", err)
		}
		return g.Barrier(ctx).Wait()
	}))
}

func TestSendObject(t *testing.T) {
	check(t, world(2, ops.Config{MaxObject: 10_000}, func(g *ops.Group) error {
		if g.Rank() == 0 {
			return sendObjects(g)
		}
		got, err := ops.RecvObject[record](ctx, g, 0, 5)
		if err = errors.Join(err, equalObjects("recv", got, recordOf(3, 900))); err != nil {
			return err
		}
		var e *ops.ObjectError
		if _, err := ops.RecvObject[int](ctx, g, 0, 5); !errors.As(err, &e) || e.Rank != 0 {
			return fmt.Errorf("no number: %v", err)
		}
		var m *ops.MismatchError
		if _, err := ops.RecvObject[int](ctx, g, 0, 5); !errors.As(err, &m) || m.Rank != 0 {
			return fmt.Errorf("no object: %v", err)
		}
		if _, err := ops.RecvObject[[]byte](ctx, g, 0, 6); !errors.As(err, &e) || e.Size != 20_000 || e.Max != 10_000 {
			return fmt.Errorf("too large: %v", err)
		}
		if _, err := ops.RecvObject[int](ctx, g, 1, 6); !errors.Is(err, ops.ErrSelf) {
			return fmt.Errorf("from itself: %v", err)
		}
		n, err := ops.RecvObject[int](ctx, g, 0, 7)
		return errors.Join(err, equalObjects("recv", n, 42))
	}))
}

func sendObjects(g *ops.Group) error {
	var e *ops.ObjectError
	if err := ops.SendObject(ctx, g, make([]byte, 20_000), 1, 5); !errors.As(err, &e) || e.Size < 20_000 {
		return fmt.Errorf("too large: %v", err)
	}
	if err := ops.SendObject(ctx, g, func() {}, 1, 5); !errors.As(err, &e) || e.Err == nil {
		return fmt.Errorf("a function: %v", err)
	}
	return errors.Join(
		ops.SendObject(ctx, g, recordOf(3, 900), 1, 5),
		ops.SendObject(ctx, g, "no number", 1, 5),
		g.Send(ctx, tensor.New(tensor.Float32, 3), 1, 5),
		g.Send(ctx, tensor.New(tensor.Uint8, 20_000), 1, 6),
		ops.SendObject(ctx, g, 42, 1, 7))
}

// Whatever a peer sends, decoding gives a value or an error.
func FuzzDecodeObject(f *testing.F) {
	for _, v := range []record{{}, recordOf(1, 5), recordOf(2, 3000)} {
		f.Add(ops.EncodeObject(v))
	}
	f.Add(ops.EncodeObject([]string{"a", "b"}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		if got, err := ops.DecodeObject[record](p); err == nil {
			again, err := ops.DecodeObject[record](ops.EncodeObject(got))
			if err != nil || len(again.Name) != len(got.Name) {
				t.Errorf("%v becomes %v: %v", got, again, err)
			}
		}
		_, _ = ops.DecodeObject[[]string](p)
		_, _ = ops.DecodeObject[map[int]any](p)
	})
}

// A length that the bytes do not bear out allocates nothing of the kind.
func TestDecodeAllocatesByWhatIsThere(t *testing.T) {
	p := ops.EncodeObject(bytes.Repeat([]byte{7}, 1000))
	at := bytes.Index(p, []byte{7, 7, 7})
	huge := append(bytes.Clone(p[:at-3]), 0xfc, 0x3f, 0, 0, 0) // in place of 0xfe 0x03 0xe8: a gigabyte
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ops.DecodeObject[[]byte](huge)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 1<<20 {
		t.Errorf("%d bytes for an object of %d (%v)", n, len(huge), err)
	}
}
