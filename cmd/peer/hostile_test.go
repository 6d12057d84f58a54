package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostileTime is how long TestHostileTraining measures, such as 20s; unset: not.
const hostileTime = "PEERMESH_HOSTILE"

// A hundred hostile connections at once do not slow down a world that trains by more than
// a tenth. Calm epochs and attacked ones take turns, and the median one counts; the attack
// is that of package node's tests, by a process that yields the processor.
func TestHostileTraining(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv(hostileTime))
	if err != nil {
		t.Skipf("needs %s, such as 20s, and a machine that does nothing else", hostileTime)
	}
	const turn = 3 * time.Second // of real time, of which the rate of epochs is the measure
	attacker := filepath.Join(t.TempDir(), "attacker")
	if out, err := exec.Command("go", "test", "-c", "-o", attacker, "peermesh/node").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f := newFleet(t, 2, "--transport", "tcp", "--data", writeSomeDigits(t, 1024, 10),
		"--epochs", manyEpochs, "--threads", "1", "--no-dropout")
	f.startAll()
	inTime(t, soon, "an epoch", func() bool { return f.has(0, func(e told) bool { return e.Event == "epoch" }) })
	address := strings.Replace(strings.TrimPrefix(f.addrs[0], "/ip4/"), "/tcp/", ":", 1)
	var calm, attacked []float64
	for begin := time.Now(); time.Since(begin) < length; {
		from := time.Now()
		time.Sleep(turn)
		to := time.Now()
		stop := harass(t, attacker, address)
		time.Sleep(turn / 3) // while they all come at once
		again := time.Now()
		time.Sleep(turn)
		until := time.Now()
		stop()
		for _, e := range f.events(0) {
			took := float64(*cmp.Or(e.Seconds, new(number)))
			switch first := e.at.Add(-time.Duration(took * float64(time.Second))); {
			case e.Event != "epoch":
			case first.After(from) && e.at.Before(to):
				calm = append(calm, took)
			case first.After(again) && e.at.Before(until):
				attacked = append(attacked, took)
			}
		}
	}
	for i := range f.keys {
		f.kill(i)
	}
	if len(calm) == 0 || len(attacked) == 0 {
		t.Fatalf("%d calm epochs and %d attacked ones: give it more time", len(calm), len(attacked))
	}
	slices.Sort(calm)
	slices.Sort(attacked)
	ratio := attacked[len(attacked)/2] / calm[len(calm)/2]
	fmt.Printf("attacked, an epoch takes %.3f times as long (%.0f ms, of %d, and %.0f ms, of %d)\n", ratio,
		1e3*attacked[len(attacked)/2], len(attacked), 1e3*calm[len(calm)/2], len(calm))
	if ratio > 1.1 {
		t.Errorf("slowed down by %.0f %%", 100*(ratio-1))
	}
}

// harass keeps up the attack of package node's TestHostileAttacker until stop is called.
func harass(t *testing.T, attacker, address string) (stop func()) {
	t.Helper()
	cmd := exec.Command("nice", "-n", "19", attacker, "-test.run", "^TestHostileAttacker$")
	cmd.Env = append(os.Environ(), "PEERMESH_HOSTILE_AT="+address)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s := watched(t, cmd)
	eventually(t, "the attack", func() bool { return strings.Contains(s.out(), "attacking\n") })
	return func() {
		stdin.Close()
		if status := s.wait(t); status != 0 {
			t.Errorf("the attacker ends with status %d", status)
		}
	}
}
