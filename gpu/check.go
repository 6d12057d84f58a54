package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"peermesh/internal/bytesize"
)

// A Trial says how to check a device. The zero Trial is a whole check of device 0.
type Trial struct {
	Ordinal int
	// Deadline bounds each step; zero is 20 seconds. A step that does not end by then is a
	// failure, and one that does not end a little later, in spite of its context, the last.
	Deadline time.Duration
	// Budget is how long a rate is measured; zero is a tenth of a second.
	Budget time.Duration
	// Most is the largest of the copies that are measured, in bytes, each of which is four
	// times the one before; zero is 64 MiB.
	Most int
}

const (
	defaultDeadline = 20 * time.Second
	defaultBudget   = 100 * time.Millisecond
	defaultMost     = 64 << 20
	leastMost       = 4 << copySteps // whole elements in the smallest
	// grace is how long after its deadline a step may take to notice.
	grace = 5 * time.Second
)

// A Verdict is what became of a step of a check.
type Verdict struct {
	Step string
	Took time.Duration
	Note string // figures, and what was compared
	Err  error  // nil if the step passed
}

// ErrNotTried is why a step failed that could not begin, for what went wrong before.
var ErrNotTried = errors.New("gpu: not tried")

// errHung is why a check ends that waits for a call which does not return.
var errHung = errors.New("gpu: a call does not return")

// A step of a check uses what those before it have made.
type step struct {
	name string
	run  func(c *checking, ctx context.Context) (note string, err error)
}

// checking is a check under way.
type checking struct {
	Trial
	d    *Device
	s    *Stream
	comm *Comm // nil while there is none
	met  bool  // there was one
}

// steps are those of a check, in order.
func steps(most int) []step {
	all := []step{{"device", (*checking).open}, {"memory", (*checking).memory}}
	for k := range copySteps {
		n := most >> (2 * (copySteps - 1 - k))
		all = append(all, step{"copy " + bytesize.Text(int64(n)), func(c *checking, ctx context.Context) (string, error) { return c.copies(ctx, n) }})
	}
	all = append(all, step{"staging", (*checking).staging}, step{"order", (*checking).order}, step{"kernels", (*checking).arithmetic})
	all = append(all, ncclSteps...)
	return append(all, step{"close", (*checking).close})
}

// Check does with a device everything that the package can, in steps, each of which has a
// deadline; compares all results with the host's; and tells the verdict of each step as it
// ends. It reports whether all have passed. Where there is no GPU the first step fails with
// ErrUnavailable, and none is tried after it.
//
// A call of the driver's that never returns cannot be ended: then the goroutine that makes
// it stays, and the device is not closed. All else is freed at the end.
func Check(ctx context.Context, t Trial, tell func(Verdict)) bool {
	if t.Deadline == 0 {
		t.Deadline = defaultDeadline
	}
	if t.Budget == 0 {
		t.Budget = defaultBudget
	}
	if t.Most == 0 {
		t.Most = defaultMost
	}
	t.Most = max(t.Most, leastMost)
	c, passed := &checking{Trial: t}, true
	var over error // why no step is tried any more
	for _, s := range steps(t.Most) {
		v := Verdict{Step: s.name, Err: over}
		// What has been opened is closed, but not while a call still uses it.
		if over == nil || s.name == "close" && c.d != nil && !errors.Is(over, errHung) {
			v = c.try(ctx, s)
		}
		if over == nil && (errors.Is(v.Err, errHung) || errors.Is(v.Err, ErrLost) || c.d == nil || ctx.Err() != nil) {
			over = fmt.Errorf("%w: %s: %w", ErrNotTried, s.name, v.Err)
		}
		passed = passed && v.Err == nil
		tell(v)
	}
	return passed
}

// try takes a step within its deadline.
func (c *checking) try(ctx context.Context, s step) Verdict {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Deadline, fmt.Errorf("gpu: not within %v", c.Deadline))
	defer cancel()
	v, begin := Verdict{Step: s.name}, time.Now()
	ended := make(chan Verdict, 1)
	go func() {
		note, err := s.run(c, ctx)
		ended <- Verdict{Step: s.name, Note: note, Err: err}
	}()
	select {
	case v = <-ended:
	case <-ctx.Done():
		select {
		case v = <-ended:
		case <-time.After(min(grace, c.Deadline)):
			v.Err = fmt.Errorf("%w: %w", errHung, context.Cause(ctx))
		}
	}
	v.Took = time.Since(begin)
	if v.Err == nil && ctx.Err() != nil {
		v.Err = context.Cause(ctx)
	}
	return v
}

// open opens the device, with the package's own chunks.
func (c *checking) open(context.Context) (string, error) {
	d, err := Open(Config{Ordinal: c.Ordinal})
	if err != nil {
		return "", err
	}
	if c.s, err = d.NewStream(); err != nil {
		return "", errors.Join(err, d.Close())
	}
	c.d = d
	free, total, err := d.Room()
	return fmt.Sprintf("%v, capability %d.%d, %.1f of %.1f GiB free", d, d.Major, d.Minor, float64(free)/(1<<30), float64(total)/(1<<30)), err
}

// memory has the device's memory be zeros, and keep what is written where it is written.
func (c *checking) memory(context.Context) (note string, err error) {
	const n = 1<<20 + 3
	m, err := c.d.NewMemory(n)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	want := make([]byte, n)
	if err := holdsBytes(m, want, "new memory"); err != nil {
		return "", err
	}
	for i := range want[5 : n-1] {
		want[5+i] = byte(i * 7)
	}
	if _, err := m.WriteAt(want[5:n-1], 5); err != nil {
		return "", err
	}
	if err := holdsBytes(m, want, "what was written"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes, zeroed, written and read", n), nil
}

// close frees all, whatever of it fails, and finds nothing left that a step has forgotten.
func (c *checking) close(context.Context) (string, error) {
	var errs []error
	if c.comm != nil {
		errs = append(errs, c.comm.Abort())
	}
	errs = append(errs, c.s.Close())
	if left := c.d.Leaks(); len(left) > 0 {
		errs = append(errs, fmt.Errorf("gpu: left: %q", left))
	}
	return "nothing left", errors.Join(append(errs, c.d.Close())...)
}
