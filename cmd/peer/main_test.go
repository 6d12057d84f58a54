package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is other processes that the tests need, too: with these
// variables set it is the command itself, or a helper with few manners.
const (
	asPeer   = "PEER_TEST_AS_PEER"
	asHelper = "PEER_TEST_AS_HELPER"
)

// atOnce keeps the race detector from delaying a process's exit by a second.
const atOnce = "GORACE=atexit_sleep_ms=0"

// soon bounds every wait for something that must happen; it is not a measure.
const soon = 2 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asPeer) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	if name := os.Getenv(asHelper); name != "" {
		helpers[name]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		if err := unbuild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = max(status, 1)
		}
		os.Exit(status)
	}))
}

// helpers are processes that behave in one certain way.
var helpers = map[string]func(){
	"succeed": func() { fmt.Println("fine") },
	"fail":    func() { fmt.Println("bad"); os.Exit(3) },
	"stay": func() { // until a signal
		fmt.Println("here")
		select {}
	},
	"deaf": func() { // to all signals that can be ignored
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
		fmt.Println("here")
		select {}
	},
	"busy": func() { // until it is ended by force
		interruptible(context.Background(), os.Stderr)
		fmt.Println("here")
		select {}
	},
	"tethered": tetheredHelper,
}

// helper is a command that runs the test binary as a helper.
func helper(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asHelper+"="+name, atOnce)
	return cmd
}

// eventually waits for a condition, looking often.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", soon, what)
		}
	}
}

// in runs the command line in this process.
func in(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(args, &out, &errs)
	return status, out.String(), errs.String()
}

// isOneLine checks what is printed about an error.
func isOneLine(t *testing.T, stderr string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "peer: ") || strings.Contains(stderr, "goroutine") {
		t.Errorf("stderr is not one line about the error: %q", stderr)
	}
}
