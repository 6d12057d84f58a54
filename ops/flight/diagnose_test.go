package flight_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/flight"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

var update = flag.Bool("update", false, "write the golden files anew")

// patience is how long the operations of these worlds wait.
const patience = 2 * time.Second

// A crash is a world that ends in a certain way, and what is to be said of it.
type crash struct {
	name string
	size int
	is   flight.Case
	racy bool // how far each rank has come is chance: only the sentence is compared
	// each is one rank's part. Whoever returns errDead leaves no record.
	each func(ctx context.Context, g *ops.Group, w *memnet.World) error
}

var errDead = errors.New("killed")

func sum(ctx context.Context, g *ops.Group, n int) *ops.Work {
	return g.AllReduce(ctx, tensor.Of(make([]float32, n)), tensor.Sum)
}

// sums is a beginning in which all is well.
func sums(ctx context.Context, g *ops.Group, times int) error {
	for range times {
		if err := sum(ctx, g, 1024).Wait(); err != nil {
			return err
		}
	}
	return nil
}

var crashes = []crash{
	{"well", 3, flight.Well, false, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		return sums(ctx, g, 5)
	}},
	{"nothing", 2, flight.Well, false, func(context.Context, *ops.Group, *memnet.World) error { return nil }},
	{"absent", 4, flight.Absent, false, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		if err := sums(ctx, g, 3); err != nil || g.Rank() == 2 {
			time.Sleep(5 * time.Second) // it computes
			return err
		}
		return sums(ctx, g, 1)
	}},
	{"late", 4, flight.Late, false, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		if err := sums(ctx, g, 3); err != nil {
			return err
		}
		if g.Rank() == 2 {
			time.Sleep(5 * time.Second)
		}
		return sums(ctx, g, 1)
	}},
	{"slow", 3, flight.Late, false, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		for range 10 {
			time.Sleep(time.Duration(10+20*(g.Rank()&1)) * time.Millisecond)
			if err := sums(ctx, g, 1); err != nil {
				return err
			}
		}
		return nil
	}},
	{"kind", 4, flight.Mismatch, false, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		if err := sums(ctx, g, 3); err != nil {
			return err
		}
		if g.Rank() == 2 {
			return g.Broadcast(ctx, tensor.Of(make([]float32, 1024)), 0).Wait()
		}
		return sums(ctx, g, 1)
	}},
	{"shape", 3, flight.Mismatch, false, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		return sum(ctx, g, 1024-g.Rank()/2).Wait()
	}},
	{"order", 3, flight.Mismatch, true, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		calls := []func() *ops.Work{
			func() *ops.Work { return g.Broadcast(ctx, tensor.Of(make([]int64, 4)), 0) },
			func() *ops.Work { return sum(ctx, g, 16) },
		}
		if g.Rank() == 1 {
			calls[0], calls[1] = calls[1], calls[0]
		}
		first, second := calls[0](), calls[1]()
		return errors.Join(first.Wait(), second.Wait())
	}},
	{"gone", 3, flight.Gone, false, func(ctx context.Context, g *ops.Group, w *memnet.World) error {
		if err := sums(ctx, g, 2); err != nil {
			return err
		}
		if g.Rank() == 1 {
			time.Sleep(time.Second) // by then the others wait for it
			w.Kill()
			return errDead
		}
		return sums(ctx, g, 1)
	}},
	{"message", 2, flight.Message, false, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		if g.Rank() == 0 {
			return g.Recv(ctx, tensor.Of(make([]float32, 8)), 1, 7)
		}
		return nil
	}},
	{"subgroup", 4, flight.Absent, false, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		pair, err := g.Blocks(ctx, 2)
		if err != nil {
			return err
		}
		if err := sums(ctx, pair, 1+g.Rank()/2); err != nil || g.Rank() != 3 {
			return err
		}
		return sums(ctx, pair, 1)
	}},
	{"own", 2, flight.Broken, false, func(ctx context.Context, g *ops.Group, _ *memnet.World) error {
		if err := sums(ctx, g, 1); err != nil || g.Rank() == 0 {
			return err
		}
		return errors.New("the disk is full")
	}},
}

// fly has a world go its way, in virtual time, and returns the folder with its records.
func (c crash) fly(t *testing.T) (dir string) {
	dir = t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for _, w := range memnet.New(c.size) {
			all.Go(func() {
				r := flight.New(0)
				r.Enter(flight.World{Name: "test", Epoch: 1, Rank: w.Rank(), Size: w.Size()})
				g := ops.NewGroup(w, ops.Config{Observer: r, Timeout: patience})
				why := flight.Reason{Lost: -1}
				err := c.each(t.Context(), g, w)
				if errors.Is(err, errDead) {
					return
				}
				if errors.Is(err, memnet.ErrKilled) {
					why.Lost = 1
				}
				if err != nil {
					why.Text = err.Error()
				}
				if _, err := r.WriteFile(dir, why); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	return dir
}

// TestDiagnose lets worlds crash in all ways, and compares what is said of them with what
// a person found clear.
func TestDiagnose(t *testing.T) {
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			logs, err := flight.ReadDir(c.fly(t))
			if err != nil {
				t.Fatal(err)
			}
			d, err := flight.Diagnose(logs)
			if err != nil {
				t.Fatal(err)
			}
			if d.Case != c.is {
				t.Errorf("found %s, want %s: %s", d.Case, c.is, d.Sentence)
			}
			if strings.Contains(d.Sentence, "\n") {
				t.Errorf("more than a sentence: %q", d.Sentence)
			}
			if text := d.String(); c.racy {
				golden(t, c.name, d.Sentence+"\n")
			} else {
				golden(t, c.name, text)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
