package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ipfs/go-log/v2"
)

// TestNoTerminal has a file and a pipe, which are none: no width, no colour.
func TestNoTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(r, w)
	for name, out := range map[string]io.Writer{"file": file, "pipe": w, "buffer": new(strings.Builder)} {
		if columns, ok := terminal(out); ok || columns != 0 {
			t.Errorf("a %s is a terminal of %d columns", name, columns)
		}
		if got := rankPrefix(out, 12); got != "[12] " {
			t.Errorf("the prefix for a %s is %q", name, got)
		}
	}
}

// TestTerminal opens one, where there is the means.
func TestTerminal(t *testing.T) {
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("needs pseudo-terminals: ", err)
	}
	defer pty.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if columns, ok := terminal(pty); !ok || columns != 80 {
		t.Errorf("a terminal that does not know its size has %d columns, %v; want 80", columns, ok)
	}
	first, again, other := rankPrefix(pty, 0), rankPrefix(pty, len(palette)), rankPrefix(pty, 1)
	if !strings.HasPrefix(first, "\x1b[36m[0]") || !strings.HasSuffix(first, "m ") || !strings.HasPrefix(again, "\x1b[36m") || strings.HasPrefix(other, "\x1b[36m") {
		t.Errorf("the prefixes are %q, %q and %q", first, again, other)
	}
	t.Setenv("NO_COLOR", "1")
	if got := rankPrefix(pty, 0); got != "[0] " {
		t.Errorf("with NO_COLOR the prefix is %q", got)
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if got := rankPrefix(pty, 0); got != "[0] " {
		t.Errorf("on a dumb terminal the prefix is %q", got)
	}
}

// TestSetupLogging keeps libp2p quiet, and ours as loud as asked for.
func TestSetupLogging(t *testing.T) {
	before := log.GetConfig()
	t.Cleanup(func() { log.SetupLogging(before) })
	t.Setenv("GOLOG_LOG_LEVEL", "")
	theirs, swarm := log.Logger("basichost"), log.Logger("swarm2")
	for _, test := range []struct {
		flags Training
		ours  log.LogLevel
	}{
		{Training{Common: Common{LogLevel: "info"}}, log.LevelInfo},
		{Training{Common: Common{LogLevel: "error"}, Log: "json"}, log.LevelError},
		{Training{Common: Common{LogLevel: "error", Verbose: true}}, log.LevelDebug},
	} {
		setupLogging(&test.flags.Common, test.flags.Log)
		quieter := test.ours - 1
		if !logger.LevelEnabled(test.ours) || quieter >= log.LevelDebug && logger.LevelEnabled(quieter) {
			t.Errorf("%+v: our level is not %v", test.flags, test.ours)
		}
		if theirs.LevelEnabled(log.LevelWarn) || !theirs.LevelEnabled(log.LevelError) {
			t.Errorf("%+v: libp2p warns, or does not tell of errors", test.flags)
		}
		if swarm.LevelEnabled(log.LevelError) {
			t.Errorf("%+v: every close of a node will be called an error", test.flags)
		}
		if json := log.GetConfig().Format == log.JSONOutput; json != (test.flags.Log == "json") {
			t.Errorf("%+v: the log is JSON: %v", test.flags, json)
		}
	}
	t.Setenv("GOLOG_LOG_LEVEL", "warn")
	setupLogging(&Common{LogLevel: "error"}, "text")
	if levels := log.GetConfig().SubsystemLevels; len(levels) > 0 && levels["peer"] == log.LevelError {
		t.Error("the flag overrides GOLOG_LOG_LEVEL")
	}
}
