package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"peermesh/internal/programs"
)

// plainProgram is the command built as people have it, once for all tests.
var plainProgram struct {
	sync.Once
	dir string // to be removed when all tests are over
	err error
}

// program is what the processes of most tests run. They ask what peers tell each other
// and how they end; that is no question to the race detector, under which a process
// takes six times as long and starts for half a second. So these are built without it,
// where the test binary has it. Where there is no go command, the test binary has to do.
//
// The processes of racingPeer are watched for races: those of the main job, and of one
// that loses a rank.
func program(t *testing.T) string {
	t.Helper()
	if !raceDetector {
		return os.Args[0]
	}
	if _, err := exec.LookPath("go"); err != nil {
		return os.Args[0]
	}
	plainProgram.Do(func() { plainProgram.dir, plainProgram.err = build() })
	if plainProgram.err != nil {
		t.Fatal(plainProgram.err)
	}
	return filepath.Join(plainProgram.dir, "peer")
}

// build makes the command of this folder in a new one.
func build() (dir string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // with nothing in the cache
	defer cancel()
	if dir, err = os.MkdirTemp("", "peer-test"); err != nil {
		return "", err
	}
	return dir, programs.Put(ctx, dir, module+"/cmd/peer")
}

// unbuild removes what build has made, if it has.
func unbuild() error {
	if plainProgram.dir == "" {
		return nil
	}
	return os.RemoveAll(plainProgram.dir)
}

// peerCommand is a command that runs peer.
func peerCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return asCommand(program(t), args...)
}

// racingPeer is one that the race detector watches, if it watches the test.
func racingPeer(args ...string) *exec.Cmd { return asCommand(os.Args[0], args...) }

// asCommand has the test binary be peer, and means nothing to peer itself.
func asCommand(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), asPeer+"=1", atOnce)
	return cmd
}

// TestProgram is that of the tests: the one that was built says the same of itself.
func TestProgram(t *testing.T) {
	for _, cmd := range []*exec.Cmd{peerCommand(t, "--help"), racingPeer("--help")} {
		_, want, _ := in("--help")
		if got, err := cmd.Output(); err != nil || string(got) != want {
			t.Errorf("%s --help: %v, %q, want %q", cmd.Path, err, got, want)
		}
	}
}
