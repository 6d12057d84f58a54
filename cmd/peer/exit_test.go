package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestExitStatus(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("some error"), 1},
		{usagef("some flag"), 2},
		{fmt.Errorf("wrapped: %w", usagef("some flag")), 2},
		{errors.Join(errors.New("a"), &childError{rank: 2, who: "rank 2", status: 7}), 7},
		{&interruptedError{syscall.SIGINT}, 130},
		{&interruptedError{syscall.SIGTERM}, 143},
		{usagef("cut short: %w", &interruptedError{syscall.SIGINT}), 130},
	}
	for _, test := range tests {
		if got := exitStatus(test.err); got != test.want {
			t.Errorf("exitStatus(%v) = %d, want %d", test.err, got, test.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for _, test := range [][2]string{
		{"plain", "peer: plain"},
		{"peer: named already", "peer: named already"},
		{"two\nlines", "peer: two; lines"},
		{"\n\nmany\r\n\n\nlines\n", "peer: many; lines"},
	} {
		if got := oneLine(errors.New(test[0])); got != test[1] {
			t.Errorf("oneLine(%q) = %q, want %q", test[0], got, test[1])
		}
	}
}

// TestInterruptible ends the context with the signal as its cause.
func TestInterruptible(t *testing.T) {
	ctx, stop := interruptible(t.Context(), nil)
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if got := exitStatus(context.Cause(ctx)); got != 143 {
		t.Errorf("the cause is %v with status %d, want 143", context.Cause(ctx), got)
	}
}

func TestInterruptibleStops(t *testing.T) {
	ctx, stop := interruptible(t.Context(), nil)
	stop()
	if ctx.Err() == nil {
		t.Error("the context goes on after stop")
	}
}

// TestInterruptForced interrupts a run that does not listen: it ends by force,
// after its patience or at the second signal.
func TestInterruptForced(t *testing.T) {
	for _, signals := range []int{1, 2} {
		cmd := helper(t, "busy")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		for range signals {
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
		err = cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 130 || errs.String() != "peer: interrupted\n" {
			t.Errorf("%d signals: %v, stderr %q", signals, err, errs.String())
		}
	}
}
