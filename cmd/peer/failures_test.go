package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"peermesh/mesh"
)

// A failing is one way to start a peer wrong, and what its last line has to say: what
// is wrong, and what to do about it.
type failing struct {
	name   string
	args   func(h *host) []string // of the peer at fault
	cause  string
	remedy string
}

// A host is a first peer that waits for one more, and what one needs to be that.
type host struct {
	t    *testing.T
	addr string
	data string
	out  *spawned
}

// newHost starts a first peer of two.
func newHost(t *testing.T, args ...string) *host {
	h := &host{t: t, data: writeDigits(t)}
	h.out = spawn(t, append([]string{"--listen", "/ip4/127.0.0.1/tcp/0", "--world", "2", "--data", h.data, "--steps", "3"}, args...)...)
	command := regexp.MustCompile(`(?m)^ +peer --bootstrap (\S+) .*$`)
	eventually(t, "the command for the others", func() bool { return command.MatchString(h.out.out()) })
	h.addr = command.FindStringSubmatch(h.out.out())[1]
	return h
}

// joins is how the right peer is started; more flags change that.
func (h *host) joins(args ...string) []string {
	return append([]string{"--bootstrap", h.addr, "--world", "2", "--listen", "/ip4/127.0.0.1/tcp/0", "--data", h.data, "--steps", "3", "--wait", "5s"}, args...)
}

// at has the right peer dial somewhere else.
func (h *host) at(addr string) []string {
	args := h.joins()
	args[1] = addr
	return args
}

// parts are where the host listens, and who it is.
func (h *host) parts() (where, id string) {
	where, id, _ = strings.Cut(h.addr, "/p2p/")
	return where, id
}

var failings = []failing{
	{"wrong bootstrap ID", func(h *host) []string {
		where, _ := h.parts()
		_, id, _ := in("id", "--identity", filepath.Join(h.t.TempDir(), "key"))
		return h.at(where + "/p2p/" + strings.TrimSpace(id))
	}, "remote key matches", "copy the whole address"},
	{"unreachable bootstrap", func(h *host) []string { // a documentation address (RFC 5737)
		_, id := h.parts()
		return h.at("/ip4/192.0.2.1/tcp/4001/p2p/" + id)
	}, "cannot be reached", "peer doctor --bootstrap"},
	{"another machine's loopback address", func(h *host) []string {
		_, id := h.parts()
		return h.at("/ip4/127.0.0.1/tcp/" + strconv.Itoa(freePort(h.t)) + "/p2p/" + id)
	}, "connection refused", "a loopback address is this machine itself"},
	{"wrong mesh name", func(h *host) []string { return h.joins("--mesh", "elsewhere") },
		`it is in mesh "default", this peer in mesh "elsewhere"`, "the same --mesh"},
	{"another size", func(h *host) []string { return h.joins("--world", "3") },
		"it wants a world of 2, this peer one of 3", "the same --world"},
	{"different models", func(h *host) []string { return h.joins("--net", "tutorial") },
		"its terms are --net convnet", "the same flags and data"},
	{"different batch sizes", func(h *host) []string { return h.joins("--batch-size", "7") },
		"its terms are --batch-size 64, this peer's --batch-size 7", "the same flags and data"},
	{"different data lengths", func(h *host) []string { return h.joins("--data", writeSomeDigits(h.t, 100, 20)) },
		"its terms are 256 training images", "the same flags and data"},
	{"one too few", func(h *host) []string {
		return []string{"--listen", "/ip4/127.0.0.1/tcp/0", "--world", "2", "--data", h.data, "--wait", "2s"}
	}, "no world formed in 2s: 1 of 2 here", "start those that are missing"},
	{"port in use", func(h *host) []string {
		where, _ := h.parts()
		return h.joins("--listen", where)
	}, "address in use", "take another port with --listen"},
}

// TestFailures starts peers wrong in all ways, and wants of each one line, with cause and
// remedy. The peer that waits for them is there for the right one in the end.
func TestFailures(t *testing.T) {
	h := newHost(t)
	t.Run("wrong", func(t *testing.T) {
		for _, f := range failings {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel() // half of them wait until their time is over
				s := spawn(t, f.args(h)...)
				if s.wait(t) == 0 {
					t.Error("status 0")
				}
				says(t, s, f.cause, f.remedy)
			})
		}
	})
	s := spawn(t, h.joins()...)
	if s.wait(t) != 0 || h.out.wait(t) != 0 {
		t.Errorf("the right one: %s", s.errs())
	}
}

// says checks a peer's last line.
func says(t *testing.T, s *spawned, cause, remedy string) {
	t.Helper()
	line := lastLine(s.errs())
	if !strings.HasPrefix(line, "peer: ") || !strings.Contains(line, cause) || !strings.Contains(line, remedy) {
		t.Errorf("got %q, want %q and %q", line, cause, remedy)
	}
}

// TestFailureSecret is in an own world: one that has a secret.
func TestFailureSecret(t *testing.T) {
	t.Parallel()
	p := newPorch(t)
	says(t, p.try("--identity", p.key), "secret", "the same --secret file")
	says(t, p.try("--secret", p.secret), "not on its allow list", "to the --allow file there")
}

// TestFailureFull comes to a world that has all its ranks.
func TestFailureFull(t *testing.T) {
	t.Parallel()
	h := newHost(t, "--epochs", "1000000", "--steps", "1000000", "--threads", "1")
	endless := []string{"--epochs", "1000000", "--steps", "1000000", "--threads", "1"}
	second := spawn(t, h.joins(endless...)...)
	eventually(t, "a world", func() bool { return strings.Contains(second.out(), "rank ") })
	third := spawn(t, h.joins(endless...)...)
	third.wait(t)
	says(t, third, "the world of 2 is complete", "a larger --world")
}

// TestFailureTwin has two peers with one identity.
func TestFailureTwin(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	endless := []string{"--epochs", "1000000", "--steps", "1000000", "--threads", "1"}
	h := newHost(t, endless...)
	second := spawn(t, h.joins(append(endless, "--identity", key)...)...)
	eventually(t, "a world", func() bool { return strings.Contains(second.out(), "rank ") })
	twin := spawn(t, h.joins(append(endless, "--identity", key)...)...)
	twin.wait(t)
	says(t, twin, "two processes cannot share an identity", "an --identity of its own")
}

// TestFailureFiles lets a peer open next to nothing.
func TestFailureFiles(t *testing.T) {
	t.Parallel()
	s := watched(t, asCommand("sh", "-c", `ulimit -n 8; exec "$0" "$@"`, program(t), "--data", writeDigits(t), "--steps", "1"))
	if s.wait(t) == 0 {
		t.Error("status 0")
	}
	says(t, s, "too many open files", "ulimit -n")
}

// TestRemedied gives every error at most one remedy.
func TestRemedied(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("something"), "something"},
		{fmt.Errorf("open x: %w", syscall.EMFILE), "open x: too many open files: " + remedyFiles},
		{remedied(syscall.EADDRINUSE), "address already in use: " + remedyPort},
		{&mesh.RefusedError{Reason: "why", Err: mesh.ErrVersion}, "mesh: refused by : why: run the same release everywhere (peer version says which)"},
		{fmt.Errorf("%w: 1 of 2 here; bootstrap /ip6/::1/tcp/1 cannot be reached: x", mesh.ErrNoWorld),
			"mesh: no world formed: 1 of 2 here; bootstrap /ip6/::1/tcp/1 cannot be reached: x: " + remedyLoopback},
	} {
		got := remedied(c.err)
		if c.err == nil {
			if got != nil {
				t.Errorf("no error became %v", got)
			}
			continue
		}
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
