package main

import (
	"cmp"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"
)

const (
	// faultTime is how long TestFaults disturbs a run; without it there is no such test.
	faultTime = "PEERMESH_FAULTS"
	// faultSeed repeats the choices of a run, faultTransport is for --transport.
	faultSeed      = "PEERMESH_FAULTS_SEED"
	faultTransport = "PEERMESH_FAULTS_TRANSPORT"
	// faultSamples are the samples of its data set, faultBound how much longer than the
	// faults a run may last, and faultTolerance how much accuracy they may cost, for
	// the ranks add up gradients in other orders.
	faultSamples   = 4096
	faultBound     = 10 * time.Minute
	faultTolerance = 0.02
)

// TestElasticGoesOn loses a peer of three, and lets it in again, while the race detector
// watches all.
func TestElasticGoesOn(t *testing.T) {
	const n = 512
	f := newFleet(t, 3, "--transport", "tcp", "--min", "2", "--data", writeSomeDigits(t, n, 50), "--epochs", manyEpochs, "--threads", "1", "--no-dropout")
	f.command = func(_ int, args ...string) *exec.Cmd { return racingPeer(args...) }
	f.startAll()
	f.train("at first", time.Time{})
	f.kill(0)
	for _, i := range []int{1, 2} {
		inTime(t, soon, "a step in a world of two", func() bool {
			return f.has(i, func(e told) bool { return e.Event == "ended" && e.LostPeer == f.ids[0] }) &&
				f.has(i, func(e told) bool { return e.Event == "resumed" && e.World == 2 })
		})
	}
	f.start(0)
	f.train("with the lost one", time.Now())
	f.interrupt()
	if !slices.ContainsFunc(f.events(1), func(e told) bool { return e.Event == "world" && e.Epoch > 2 && e.Size == 3 }) {
		t.Error("the world has not grown again")
	}
	f.audit(n, 1, f.last())
}

// TestFaults trains with four peers while random ones are killed, stopped, let go on
// and started again, whoever they are. In the end all is as if nothing had happened.
func TestFaults(t *testing.T) {
	lasting, err := time.ParseDuration(os.Getenv(faultTime))
	if os.Getenv(faultTime) == "" {
		t.Skipf("set %s to a time such as 30s, or make faults", faultTime)
	} else if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--data", writeSomeDigits(t, faultSamples, 500), "--threads", "1", "--no-dropout",
		"--transport", cmp.Or(os.Getenv(faultTransport), "tcp")}
	epochs := newFleet(t, 4, flags...).length(lasting * 2 / 3) // faults take their time, too
	flags = append(flags, "--epochs", strconv.Itoa(epochs))

	d := newDisturber(t, newFleet(t, 4, append(flags, "--min", "2", "--wait", "2m")...))
	d.run(lasting)
	d.audit(faultSamples, 1, epochs)
	d.apart()
	d.report()

	calm := newFleet(t, 1, flags...) // four would end with the same bits, and take longer
	calm.startAll()
	calm.finish(faultBound + 2*lasting)
	calm.audit(faultSamples, 1, epochs)
	if got, want := d.accuracy(), calm.accuracy(); got < want-faultTolerance {
		t.Errorf("accuracy %.4f, undisturbed %.4f", got, want)
	} else {
		t.Logf("accuracy %.4f, undisturbed %.4f", got, want)
	}
}

// A disturber is a fleet and what has been done to it.
type disturber struct {
	*fleet
	rng   *rand.Rand
	deeds []deed
	wakes []time.Time // when a peer is to be started or let go on; zero: not at all
}

// A deed is what was done to one peer, from when until when.
type deed struct {
	kill      bool // or else a stop
	peer      int
	from, end time.Time // end is zero as long as it is not undone
}

// during reports whether it lasted at some moment of a time.
func (d deed) during(from, end time.Time) bool {
	return d.from.Before(end) && (d.end.IsZero() || d.end.After(from))
}

func newDisturber(t *testing.T, f *fleet) *disturber {
	seed, err := strconv.ParseUint(os.Getenv(faultSeed), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("%s=%d repeats the choices", faultSeed, seed)
	return &disturber{fleet: f, rng: rand.New(rand.NewPCG(seed, 0)), wakes: make([]time.Time, len(f.keys))}
}

// run starts all, disturbs them for a time, and waits for the end.
func (d *disturber) run(lasting time.Duration) {
	d.startAll()
	begin := time.Now()
	next := begin
	inTime(d.t, faultBound+2*lasting, "the end of the run", func() bool {
		now := time.Now()
		over := d.over()
		for i := range d.keys {
			if !d.wakes[i].IsZero() && (now.After(d.wakes[i]) || over) {
				d.wake(i, over)
			}
		}
		if over {
			return d.rest()
		}
		// The first fault waits until there is something to disturb.
		if now.Sub(begin) < lasting && now.After(next) && d.has(0, func(e told) bool { return e.Event == "epoch" || len(d.deeds) > 0 }) {
			d.disturb(now)
			next = now.Add(time.Second + time.Duration(d.rng.Int64N(int64(4*time.Second))))
		}
		return false
	})
}

// disturb does something to one of those that are well. Two may be gone at once:
// that half of the world waits, or goes on, as the quorum says. But one of those that
// have the latest state is always well, for nothing brings it back once it is lost.
func (d *disturber) disturb(now time.Time) {
	var well []int
	for i := range d.keys {
		if d.wakes[i].IsZero() && !d.ended(i) {
			well = append(well, i)
		}
	}
	if len(well) < 3 {
		return
	}
	i := well[d.rng.IntN(len(well))]
	if !slices.ContainsFunc(d.holders(), func(j int) bool { return j != i && slices.Contains(well, j) }) {
		return
	}
	later := now.Add(time.Duration(d.rng.Int64N(int64(4 * time.Second))))
	if d.rng.IntN(3) > 0 {
		d.deeds = append(d.deeds, deed{kill: true, peer: i, from: d.kill(i)})
	} else {
		d.deeds = append(d.deeds, deed{peer: i, from: now})
		d.freeze(i)
	}
	d.wakes[i] = later
}

// holders are the peers that have taken a step in the latest world in which any has.
func (d *disturber) holders() (all []int) {
	eras := d.eras()
	latest := len(eras) - 1
	for latest >= 0 && eras[latest].first.IsZero() {
		latest--
	}
	for i := range d.keys {
		world, stepped := 0, false
		for _, e := range d.present(i) {
			if e.Event == "world" {
				world, stepped = e.Epoch, false
			}
			stepped = stepped || e.progress()
		}
		if stepped && world == eras[latest].number {
			all = append(all, i)
		}
	}
	return all
}

// wake undoes what was done to a peer; a run that is over needs no more peers.
func (d *disturber) wake(i int, over bool) {
	d.wakes[i] = time.Time{}
	for at := len(d.deeds) - 1; at >= 0; at-- {
		if d.deeds[at].peer == i {
			d.deeds[at].end = time.Now()
			break
		}
	}
	switch {
	case d.still[i]:
		d.thaw(i)
	case !over:
		d.start(i)
	}
}

// over reports whether some peer has come to the end.
func (d *disturber) over() bool {
	for i := range d.keys {
		if d.has(i, func(e told) bool { return e.Event == "done" }) {
			return true
		}
	}
	return false
}

// rest waits for those that are in the last world, and lets go of those that came
// too late to be let in.
func (d *disturber) rest() bool {
	for i := range d.keys {
		if d.down[i] || d.ended(i) {
			continue
		}
		events := d.events(i)
		if len(events) > 0 && time.Since(events[len(events)-1].at) > 30*time.Second {
			d.kill(i)
			continue
		}
		return false
	}
	return true
}
