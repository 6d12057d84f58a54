package trainer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"peermesh/ops"
)

// A run that all ranks finish early ends in the same step everywhere; when the world
// ends in the middle of that, after some have finished and before others have, those
// learn it in the next world and take no further step.
func TestFinish(t *testing.T) {
	for _, dies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, finished := newArena(), make(chan struct{})
			var runs []*tally
			errs := make([]error, 3)
			var wg sync.WaitGroup
			var ms []*member
			for id := range 3 {
				ms, runs = append(ms, a.join(id)), append(runs, newTally(t, id))
			}
			for id, r := range runs {
				r.elastic.AfterStep = func(ctx context.Context, g *ops.Group) error {
					switch {
					case r.elastic.State.Step != 3:
						return nil
					case dies && id == 0 && g.Size() == 3:
						<-finished
						return errors.New("the plug was pulled")
					case dies && id == 1 && g.Size() == 3: // hears of the end before it hears of the decision
						<-ctx.Done()
						return context.Cause(ctx)
					}
					r.elastic.Finish()
					if id == 2 {
						close(finished)
					}
					return nil
				}
				wg.Go(func() { errs[id] = r.run(ms[id]) })
			}
			wg.Wait()
			for id, r := range runs {
				if dead := dies && id == 0; (errs[id] != nil) != dead {
					t.Errorf("dies %v: rank %d: %v", dies, id, errs[id])
				}
				if r.elastic.State.Step != 3 {
					t.Errorf("dies %v: rank %d ended at %v, want step 3", dies, id, r.elastic.State.Progress)
				}
			}
		})
	}
}

// Remove takes one checkpoint away, and finds nothing wrong if it is gone.
func TestCheckpointsRemove(t *testing.T) {
	c := &Checkpoints{Dir: t.TempDir()}
	for step := int64(1); step <= 2; step++ {
		noErrors(t, save(2, alike(bulky(1, Progress{Step: step}, 0)), func(int) *Checkpoints { return c }))
	}
	all, err := c.List()
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	for range 2 {
		if err := c.Remove(all[0]); err != nil {
			t.Error(err)
		}
	}
	if left, err := c.List(); err != nil || len(left) != 1 || left[0].Step != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
