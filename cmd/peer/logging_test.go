package main

import (
	"strings"
	"testing"
)

// TestLogLevels runs a peer alone, whose log says what is asked for, by subsystem.
func TestLogLevels(t *testing.T) {
	data := writeDigits(t)
	for _, c := range []struct {
		env    string
		args   []string
		has    string // empty: nothing at all
		lacks  string
		others bool // libp2p may say something
	}{
		{"", []string{"--log-level", "error"}, "", "", false},
		{"", nil, "\tINFO\tmesh\t", "\tDEBUG\t", false},
		{"", []string{"-v"}, "\tINFO\tmesh\t", "", false},
		{"error,mesh=info", nil, "\tINFO\tmesh\t", "\tINFO\ttrainer\t", true},
		{"error", []string{"-v"}, "", "", false},
		{"debug", nil, "\tDEBUG\trcmgr\t", "", true},
	} {
		cmd := peerCommand(t, append([]string{"--data", data, "--steps", "1", "--threads", "1", "--transport", "tcp"}, c.args...)...)
		for i, v := range cmd.Env {
			if strings.HasPrefix(v, "GOLOG_") {
				cmd.Env[i] = "GOLOG_UNUSED="
			}
		}
		if c.env != "" {
			cmd.Env = append(cmd.Env, "GOLOG_LOG_LEVEL="+c.env)
		}
		s := watched(t, cmd)
		if s.wait(t) != 0 {
			t.Fatalf("%q %q: %s", c.env, c.args, s.errs())
		}
		log := s.errs()
		switch {
		case c.has == "" && log != "":
			t.Errorf("%q %q: said %q", c.env, c.args, log)
		case !strings.Contains(log, c.has) || c.lacks != "" && strings.Contains(log, c.lacks):
			t.Errorf("%q %q: want %q and not %q in %q", c.env, c.args, c.has, c.lacks, log[:min(len(log), 2000)])
		}
		for line := range strings.Lines(log) {
			if fields := strings.Split(line, "\t"); !c.others && len(fields) > 2 && !isOurs(fields[2]) {
				t.Errorf("%q %q: from below: %q", c.env, c.args, line)
			}
		}
	}
}

// isOurs is true of Peermesh's subsystems, and of their parts.
func isOurs(subsystem string) bool {
	for _, name := range ours {
		if subsystem == name || strings.HasPrefix(subsystem, name+"/") {
			return true
		}
	}
	return false
}
