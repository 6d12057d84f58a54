package fit

import "time"

// A Phase is what a rank spends its time on.
type Phase int

const (
	PhaseData       Phase = iota // waiting for batches
	PhaseCompute                 // forward and backward; averaging begins meanwhile
	PhaseWait                    // waiting for gradients that are still on their way
	PhaseUpdate                  // clipping, the optimiser, the schedule
	PhaseValidation              // all of it
	PhaseCheckpoint              // saving and loading
	PhaseCallbacks               // hooks
	phases
)

func (p Phase) String() string {
	return [...]string{"data", "forward and backward", "waiting for gradients", "optimiser", "validation", "checkpoints", "callbacks"}[p]
}

// Times is how long this rank has spent in each phase, by Phase. What a callback
// saves counts as callbacks' time and as checkpoints'.
func (r *Run) Times() []time.Duration { return append([]time.Duration(nil), r.times[:]...) }

// lap adds the time until the function it returns is called.
func lap(to *time.Duration) func() {
	begin := time.Now()
	return func() { *to += time.Since(begin) }
}
