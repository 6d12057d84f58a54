package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// muster starts helpers by name and waits for a line of each, so that they are
// past their beginnings.
func muster(t *testing.T, names ...string) *crew {
	t.Helper()
	c := new(crew)
	for _, name := range names {
		cmd := helper(t, name)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = w
		if err := c.enlist(len(c.children), cmd); err != nil {
			t.Fatal(err)
		}
		w.Close()
		t.Cleanup(func() { r.Close() })
		if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
			t.Fatalf("helper %s: %v", name, err)
		}
	}
	return c
}

func TestCrewSucceeds(t *testing.T) {
	c := muster(t, "succeed", "succeed", "succeed")
	if err := c.wait(t.Context()); err != nil {
		t.Errorf("wait: %v, want nil", err)
	}
}

// TestCrewFirstFailure has one child fail while another stays for good: the
// first is reported, its status passed on, and the other does not survive.
func TestCrewFirstFailure(t *testing.T) {
	c := muster(t, "fail", "stay")
	called := 0
	c.onFailure = func() {
		called++
		c.signal(syscall.SIGTERM) // what the mesh would do
	}
	err := c.wait(t.Context())
	failure, ok := errors.AsType[*childError](err)
	if !ok || failure.rank != 0 || failure.status != 3 || exitStatus(err) != 3 {
		t.Errorf("wait: %v, want rank 0 with status 3", err)
	}
	if want := fmt.Sprintf("process %d exited with status 3", c.children[0].Process.Pid); failure.how != want {
		t.Errorf("how: %q, want %q", failure.how, want)
	}
	if called != 1 {
		t.Errorf("onFailure was called %d times, want once", called)
	}
	gone(t, c)
}

// TestCrewKilled reports the signal of a child that was killed.
func TestCrewKilled(t *testing.T) {
	c := muster(t, "stay", "stay")
	c.onFailure = func() { c.signal(syscall.SIGTERM) }
	if err := c.children[1].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err := c.wait(t.Context())
	failure, ok := errors.AsType[*childError](err)
	if !ok || failure.rank != 1 || failure.status != statusFailed || !strings.Contains(failure.how, "signal 9 (killed)") {
		t.Errorf("wait: %v, want rank 1 killed by signal 9", err)
	}
}

// TestCrewInterrupted ends the context: the signal is passed on, and those that
// do not listen to it are killed.
func TestCrewInterrupted(t *testing.T) {
	for _, name := range []string{"stay", "deaf"} {
		t.Run(name, func(t *testing.T) {
			c := muster(t, name, name)
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(&interruptedError{syscall.SIGINT})
			err := c.wait(ctx)
			if exitStatus(err) != 130 {
				t.Errorf("wait: %v with status %d, want 130", err, exitStatus(err))
			}
			gone(t, c)
		})
	}
}

// TestCrewOwnGroups keeps a terminal's Ctrl-C from reaching children twice.
func TestCrewOwnGroups(t *testing.T) {
	c := muster(t, "stay")
	pid := c.children[0].Process.Pid
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the child's process group is %d, %v; want its own, %d", group, err, pid)
	}
	c.signal(syscall.SIGKILL)
	if err := c.wait(t.Context()); err == nil {
		t.Error("wait: nil after a kill")
	}
	c.signal(syscall.SIGKILL) // finds nobody, and must not find a stranger
}

func TestCrewCannotStart(t *testing.T) {
	c := new(crew)
	if err := c.enlist(0, exec.Command("/nonexistent/program")); err == nil || !strings.Contains(err.Error(), "starting rank 0") {
		t.Errorf("enlist: %v, want an error that names the rank", err)
	}
	if err := c.wait(t.Context()); err != nil {
		t.Errorf("wait for nobody: %v", err)
	}
}

// gone checks that no child is left, not even as a zombie.
func gone(t *testing.T, c *crew) {
	t.Helper()
	for rank, cmd := range c.children {
		if err := syscall.Kill(cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("rank %d, process %d, is still there: %v", rank, cmd.Process.Pid, err)
		}
	}
}

// tetheredHelper is a launched child that does nothing but stay: it prints its
// brief's world and what the launcher says, and ends when the launcher does.
func tetheredHelper() {
	tether, b, err := openTether(func() {
		fmt.Println("orphaned")
		os.Exit(0)
	})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(exitStatus(err))
	}
	addrs, err := tether.meet(context.Background(), []string{"/own"})
	fmt.Println(b.Train.World, b.Local, addrs, err)
	select {}
}

// tethered starts a tethered child.
func tethered(t *testing.T, b *brief) (l *launch, out *bufio.Reader) {
	t.Helper()
	l = new(launch)
	cmd := helper(t, "tethered")
	r, w := io.Pipe()
	cmd.Stdout = w
	t.Cleanup(func() { r.Close() })
	if err := l.begin(0, cmd, b); err != nil {
		t.Fatal(err)
	}
	return l, bufio.NewReader(r)
}

// TestTether plays launcher to one child that is told an address.
func TestTether(t *testing.T) {
	l, out := tethered(t, &brief{Train: &trainCmd{Joining: Joining{World: 3}}, Local: 2})
	if err := sendLine(l.tethers[0], []string{"/a", "/b"}); err != nil {
		t.Fatal(err)
	}
	expect(t, out, "3 2 [/a /b] <nil>")
	closeAll(l.tethers...)
	expect(t, out, "orphaned")
	if err := l.crew.wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTetherFirst plays launcher to the first child, which reports.
func TestTetherFirst(t *testing.T) {
	l, out := tethered(t, &brief{Train: &trainCmd{Joining: Joining{World: 1}}, First: true, Local: 1})
	expect(t, out, "1 1 [] <nil>")
	l.introducing.Go(func() { l.failed = l.introduce() })
	l.introducing.Wait()
	if l.failed != nil || !l.introduced.Load() {
		t.Errorf("introduce: %v", l.failed)
	}
	closeAll(l.tethers...)
	expect(t, out, "orphaned")
	if err := l.wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLaunchAbandons has the first child fail before it has reported: the others
// wait for an address that will not come, and no mesh can tell them. They end at
// once, and the first failure is the one that is told.
func TestLaunchAbandons(t *testing.T) {
	l := new(launch)
	l.onFailure = l.abandon
	for rank, name := range []string{"fail", "tethered", "tethered"} {
		if err := l.begin(rank, helper(t, name), &brief{First: rank == 0}); err != nil {
			t.Fatal(err)
		}
	}
	l.introducing.Go(func() { l.failed = l.introduce() })
	err := l.wait(t.Context())
	if failure, ok := errors.AsType[*childError](err); !ok || failure.rank != 0 || failure.status != 3 {
		t.Errorf("wait: %v, want rank 0 with status 3", err)
	}
	if l.failed == nil || !strings.Contains(l.failed.Error(), "rank 0 has not reported") {
		t.Errorf("the introduction: %v", l.failed)
	}
	gone(t, &l.crew)
}

// TestTetherCancelled ends the wait for the address.
func TestTetherCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&interruptedError{syscall.SIGINT})
	_, err := (&tether{bootstrap: make(chan []string)}).meet(ctx, nil)
	if exitStatus(err) != 130 {
		t.Errorf("meet: %v, want it interrupted", err)
	}
}

// TestSendLineToNobody finds the child gone, which its exit tells better.
func TestSendLineToNobody(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	closeAll(r)
	if err := sendLine(w, 1); err != nil {
		t.Errorf("to a child that is gone: %v, want nil", err)
	}
	closeAll(w, nil)
	if err := sendLine(w, 1); err == nil {
		t.Error("to a closed pipe: nil, want an error")
	}
}

// TestTetherMissing starts a child without a launcher.
func TestTetherMissing(t *testing.T) {
	cmd := helper(t, "tethered")
	cmd.Stdin = nil
	out, err := cmd.Output()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != statusUsage || !strings.Contains(string(out), "--launched is for the children of another peer") {
		t.Errorf("got %v and %q, want status 2 and a reason", err, out)
	}
}

func expect(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil || strings.TrimSuffix(line, "\n") != want {
		t.Fatalf("the child said %q, %v; want %q", line, err, want)
	}
}
