package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A spawned is a running command whose output is watched.
type spawned struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	status int // set before ended closes

	mu             sync.Mutex
	stdout, stderr bytes.Buffer
}

// spawn starts peer. Whatever happens, it is gone when the test ends.
func spawn(t *testing.T, args ...string) *spawned {
	t.Helper()
	return watched(t, peerCommand(t, args...))
}

// watched starts a command likewise.
func watched(t *testing.T, cmd *exec.Cmd) *spawned {
	t.Helper()
	s := &spawned{cmd: cmd, ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = locked{s, &s.stdout}, locked{s, &s.stderr}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		err := s.cmd.Wait()
		s.status = s.cmd.ProcessState.ExitCode()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			fmt.Fprintln(locked{s, &s.stderr}, "test:", err)
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // most have ended by then
		<-s.ended
		if t.Failed() {
			t.Logf("peer %s: status %d, stdout:\n%s\nstderr:\n%s", strings.Join(cmd.Args[1:], " "), s.status, s.out(), s.errs())
		}
	})
	return s
}

// locked writes to one of a spawned's buffers.
type locked struct {
	s *spawned
	b *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.b.Write(p)
}

func (s *spawned) out() string  { s.mu.Lock(); defer s.mu.Unlock(); return s.stdout.String() }
func (s *spawned) errs() string { s.mu.Lock(); defer s.mu.Unlock(); return s.stderr.String() }

func (s *spawned) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// wait is the exit status.
func (s *spawned) wait(t *testing.T) int {
	t.Helper()
	eventually(t, "the end of peer", func() bool {
		select {
		case <-s.ended:
			return true
		default:
			return false
		}
	})
	return s.status
}

var pidLine = regexp.MustCompile(`rank (\d+) is process (\d+)`)

// pids are a launch's children by rank, from its own log.
func (s *spawned) pids(t *testing.T, n int) []int {
	t.Helper()
	pids := make([]int, n)
	eventually(t, "a process for each rank", func() bool {
		all := pidLine.FindAllStringSubmatch(s.errs(), -1)
		for _, m := range all {
			rank, _ := strconv.Atoi(m[1])
			pids[rank], _ = strconv.Atoi(m[2])
		}
		return len(all) == n
	})
	return pids
}

// living reports whether a process runs: it is there, and no zombie whose
// parent takes its time.
func living(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	state := strings.TrimSpace(string(out))
	return err == nil && state != "" && state[0] != 'Z'
}

func allGone(t *testing.T, pids []int) {
	t.Helper()
	for rank, pid := range pids {
		eventually(t, fmt.Sprintf("the end of rank %d, process %d", rank, pid), func() bool { return !living(pid) })
	}
}

// lastLine is that of an output, without its end.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// endless are flags of a run that only its end by force ends.
func endless(data string) []string {
	return []string{"--data", data, "--net", "tutorial", "--epochs", "1000000", "--batch-size", "16", "--threads", "1"}
}

// launched starts an endless launch and waits until its first epoch is done.
func launched(t *testing.T, n int) (*spawned, []int) {
	t.Helper()
	s := spawn(t, append([]string{"launch", "-v", "-n", strconv.Itoa(n)}, endless(writeDigits(t))...)...)
	pids := s.pids(t, n)
	eventually(t, "an epoch", func() bool { return strings.Contains(s.out(), "[0] epoch 1/1000000: ") })
	return s, pids
}

// TestLaunchTrains runs the main job on a small scale: four processes find each
// other, and train.
func TestLaunchTrains(t *testing.T) {
	const n = 4
	s := watched(t, racingPeer("launch", "-n", strconv.Itoa(n), "--data", writeDigits(t), "--epochs", "2", "--steps", "5", "--batch-size", "16", "--log", "json"))
	if status := s.wait(t); status != 0 {
		t.Fatalf("status %d", status)
	}
	var events []*event
	for lines := bufio.NewScanner(strings.NewReader(s.out())); lines.Scan(); {
		e := new(event)
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(e); err != nil {
			t.Fatalf("not an event: %q: %v", lines.Text(), err)
		}
		events = append(events, e)
	}
	if len(events) != 4 || events[0].Event != "world" || events[0].Epoch != 1 || events[0].Size != n || events[0].Peer == "" {
		t.Fatalf("%d lines, want one of the world, one an epoch and a last one", len(events))
	}
	events = events[1:]
	for i, e := range events {
		want := event{Event: "epoch", World: n, Epoch: i + 1, Steps: min(4*(i+1), 5)}
		if samples := 256 - 192*i; i < 2 && e.Samples != samples {
			t.Errorf("line %d counts %d samples, want %d", i+1, e.Samples, samples)
		}
		if i == 2 {
			want = event{Event: "done", World: n, Epochs: 2, Steps: 5}
		}
		got := event{Event: e.Event, Rank: e.Rank, World: e.World, Epoch: e.Epoch, Epochs: e.Epochs, Steps: e.Steps}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("line %d is %+v, want %+v", i+1, got, want)
		}
		if e.Loss == nil || e.LastLoss == nil || len(e.Losses) != n || len(e.ParamsHash) != 64 || *e.Seconds <= 0 || (e.Accuracy != nil) != (i == 2) {
			t.Errorf("line %d lacks something: %+v", i+1, e)
		}
	}
}

// TestLaunchAnyNumber trains on the same batches with one, two and four
// processes: the parameters must be the same, to the bit.
func TestLaunchAnyNumber(t *testing.T) {
	data, hashes := writeDigits(t), make(map[int]string)
	for _, n := range []int{1, 2, 4} {
		s := spawn(t, "launch", "-n", strconv.Itoa(n), "--data", data, "--no-dropout", "--seed", "0", "--steps", "2", "--log", "json")
		if status := s.wait(t); status != 0 {
			t.Fatalf("%d ranks: status %d", n, status)
		}
		var e event
		if err := json.Unmarshal([]byte(lastLine(s.out())), &e); err != nil || e.ParamsHash == "" {
			t.Fatalf("%d ranks: %q: %v", n, s.out(), err)
		}
		hashes[n] = e.ParamsHash
	}
	if hashes[2] != hashes[1] || hashes[4] != hashes[1] {
		t.Errorf("parameters by the number of ranks: %v", hashes)
	}
}

// TestLaunchPrefixes reads what people see: a line's prefix is its rank.
func TestLaunchPrefixes(t *testing.T) {
	s := spawn(t, "launch", "-n", "3", "--data", writeDigits(t), "--net", "tutorial", "--steps", "4", "--transport", "quic")
	if status := s.wait(t); status != 0 {
		t.Fatalf("status %d", status)
	}
	for rank := range 3 {
		for _, want := range []string{"[%d] rank %[1]d of 3 is 12D3KooW", "[%d] Rank %[1]d , epoch 1 : "} {
			if want := fmt.Sprintf(want, rank); !strings.Contains(s.out(), want) {
				t.Errorf("stdout lacks %q", want)
			}
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(s.out()), "\n") {
		if !regexp.MustCompile(`^\[[012]\] `).MatchString(line) {
			t.Errorf("a line without prefix: %q", line)
		}
	}
}

// TestLaunchChildKilled kills one rank in mid-run. The others must name it
// before the launcher's patience with them ends, after which they could not.
func TestLaunchChildKilled(t *testing.T) {
	s, pids := launched(t, 4)
	if err := syscall.Kill(pids[2], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := s.wait(t); status != statusFailed {
		t.Errorf("status %d, want %d", status, statusFailed)
	}
	for _, rank := range []int{0, 1, 3} {
		if want := regexp.MustCompile(fmt.Sprintf(`(?m)^\[%d\] peer: .*rank 2 \(12D3KooW\w+\)`, rank)); !want.MatchString(s.errs()) {
			t.Errorf("rank %d has not named rank 2 and its peer ID", rank)
		}
	}
	if want := fmt.Sprintf("\npeer: rank 2 failed first: process %d was ended by signal 9 (killed)\n", pids[2]); !strings.Contains(s.errs(), want) {
		t.Errorf("stderr lacks %q", want)
	}
	allGone(t, pids)
}

// TestLaunchKilled kills the launcher, which has no say in it.
func TestLaunchKilled(t *testing.T) {
	s, pids := launched(t, 3)
	s.signal(t, syscall.SIGKILL)
	s.wait(t)
	allGone(t, pids)
}

// TestLaunchInterrupted ends a run by Ctrl-C and by SIGTERM.
func TestLaunchInterrupted(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		s, pids := launched(t, 2)
		s.signal(t, sig)
		if status := s.wait(t); status != want {
			t.Errorf("%v: status %d, want %d", sig, status, want)
		}
		allGone(t, pids)
	}
}

// TestInterruptedWaiting ends a peer whose world has not formed.
func TestInterruptedWaiting(t *testing.T) {
	s := spawn(t, append(endless(writeDigits(t)), "--world", "2", "--listen", "/ip4/127.0.0.1/tcp/0")...)
	eventually(t, "the command for the others", func() bool { return strings.Contains(s.out(), "peer --bootstrap ") })
	s.signal(t, syscall.SIGINT)
	if status := s.wait(t); status != 130 {
		t.Errorf("status %d, want 130", status)
	}
	if got := s.errs(); !strings.HasSuffix(got, "peer: interrupted\n") {
		t.Errorf("stderr does not end with the reason: %q", got)
	}
}

// TestJoinByHand starts a first peer, pastes its command for the second, and
// brings one peer too many.
func TestJoinByHand(t *testing.T) {
	data := writeDigits(t)
	first := spawn(t, append(endless(data), "--world", "2", "--listen", "/ip4/127.0.0.1/tcp/0")...)
	command := regexp.MustCompile(`(?m)^ +peer (--bootstrap .*)$`)
	eventually(t, "the command for the others", func() bool { return command.MatchString(first.out()) })
	args := append(strings.Fields(command.FindStringSubmatch(first.out())[1]), "--data", data, "--listen", "/ip4/127.0.0.1/tcp/0")
	second := spawn(t, args...)
	eventually(t, "an epoch", func() bool { return strings.Contains(first.out()+second.out(), "epoch 1/1000000: ") })

	third := spawn(t, args...)
	if status := third.wait(t); status != statusFailed || !strings.Contains(third.errs(), "peer: mesh: refused by 12D3KooW") {
		t.Errorf("a third peer of two ends with status %d", status)
	}
	second.signal(t, syscall.SIGINT)
	if status := second.wait(t); status != 130 {
		t.Errorf("the second peer: status %d, want 130", status)
	}
	if status := first.wait(t); status != statusFailed || !regexp.MustCompile(`(?m)^peer: .*rank [01] \(12D3KooW`).MatchString(first.errs()) {
		t.Errorf("the first peer: status %d, want %d and a line that names the other", status, statusFailed)
	}
}

// TestJoinStdoutIsJSON has the first peer tell its address to a program.
func TestJoinStdoutIsJSON(t *testing.T) {
	s := spawn(t, append(endless(writeDigits(t)), "--world", "2", "--listen", "/ip4/127.0.0.1/tcp/0", "--log", "json")...)
	eventually(t, "a line", func() bool { return strings.Contains(s.out(), "\n") })
	var e event
	if err := json.NewDecoder(strings.NewReader(s.out())).Decode(&e); err != nil || e.Event != "listening" || !strings.HasPrefix(strings.Join(e.Addrs, " "), "/ip4/127.0.0.1/tcp/") {
		t.Errorf("%+v, %v", e, err)
	}
	s.signal(t, syscall.SIGINT)
	s.wait(t)
}
