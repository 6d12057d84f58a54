package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	sealed "github.com/libp2p/go-libp2p/core/record"

	"peermesh/node"
)

// A porch is a peer that waits for one more, and what it takes to be that one.
type porch struct {
	t      *testing.T
	first  *spawned
	addr   string
	secret string // file
	key    string // file, of a peer on the list
	data   string
}

func newPorch(t *testing.T) *porch {
	t.Helper()
	dir := t.TempDir()
	p := &porch{t: t, secret: filepath.Join(dir, "secret"), key: filepath.Join(dir, "key"), data: writeDigits(t)}
	write(t, p.secret, []byte("0123456789abcdef0123456789abcdef"))
	status, id, stderr := in("id", "--identity", p.key)
	if status != 0 {
		t.Fatal(stderr)
	}
	list := filepath.Join(dir, "allow")
	write(t, list, []byte(id))
	for _, private := range []string{p.secret, list} {
		if err := os.Chmod(private, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.first = spawn(t, "--listen", "/ip4/127.0.0.1/tcp/0", "--world", "2", "--secret", p.secret, "--allow", list, "--data", p.data, "--steps", "3")
	command := regexp.MustCompile(`(?m)^ +peer --bootstrap (\S+) .*$`)
	eventually(t, "the command for the others", func() bool { return command.MatchString(p.first.out()) })
	p.addr = command.FindStringSubmatch(p.first.out())[1]
	return p
}

// try starts a peer with the right data and bootstrap address, and returns when it has
// ended.
func (p *porch) try(args ...string) *spawned {
	s := spawn(p.t, append([]string{"--bootstrap", p.addr, "--world", "2", "--listen", "/ip4/127.0.0.1/tcp/0", "--data", p.data, "--steps", "3"}, args...)...)
	s.wait(p.t)
	return s
}

// TestStrangers has all kinds of peers come to one that lets in few. Each is told why
// not, and does not wait; the log of the one that refuses them says it, too, and not
// more often than once a second. Then the right one comes.
func TestStrangers(t *testing.T) {
	p := newPorch(t)
	other := filepath.Join(t.TempDir(), "other")
	write(t, other, []byte("another secret of many bytes"))
	if err := os.Chmod(other, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, c := range []struct {
		name string
		args []string
		want string // in its last line
	}{
		{"without the secret", []string{"--identity", p.key}, "secret"},
		{"with another secret", []string{"--identity", p.key, "--secret", other}, "secret"},
		{"not on the list", []string{"--secret", p.secret}, "this node is not on its allow list"},
		{"of another mesh", []string{"--identity", p.key, "--secret", p.secret, "--mesh", "elsewhere"}, `it is in mesh "default", this peer in mesh "elsewhere"`},
		{"for another world", []string{"--identity", p.key, "--secret", p.secret, "--world", "3"}, "it wants a world of 2, this peer one of 3"},
	} {
		begin := time.Now()
		s := p.try(c.args...)
		took := time.Since(begin).Round(time.Millisecond)
		line := lastLine(s.errs())
		if s.status != statusFailed || !strings.Contains(line, "mesh: refused by 12D3KooW") || !strings.Contains(line, c.want) {
			t.Errorf("%s: status %d and %q, want %d and %q", c.name, s.status, line, statusFailed, c.want)
		}
		t.Logf("%s: ended after %v: %s", c.name, took, line)
	}
	if why := p.older(); !strings.Contains(why, "this peer version 1") {
		t.Errorf("of an older version: told %q", why)
	}
	refusals := strings.Count(p.first.errs(), "refused")
	if most := 2 + int(time.Since(began)/time.Second); refusals == 0 || refusals > 2*most { // node and mesh have a line a second each
		t.Errorf("%d lines about refusals in %v", refusals, time.Since(began))
	}
	if s := p.try("--identity", p.key, "--secret", p.secret); s.status != 0 {
		t.Errorf("the right one: status %d", s.status)
	}
	if status := p.first.wait(t); status != 0 {
		t.Errorf("the first one: status %d", status)
	}
}

// TestOtherFlags has a peer with another learning rate come to a world that lacks a
// member. It is told so and ends; the world does not, and takes in the right one.
func TestOtherFlags(t *testing.T) {
	const n = 1024
	f := newFleet(t, 3, "--transport", "tcp", "--min", "2", "--data", writeSomeDigits(t, n, 50), "--epochs", manyEpochs, "--threads", "1", "--no-dropout")
	f.startAll()
	f.train("at first", time.Time{})
	f.kill(0)
	inTime(t, soon, "a step in a world of two", func() bool { return f.has(1, func(e told) bool { return e.Event == "resumed" && e.World == 2 }) })

	right := f.flags
	f.flags = append(slices.Clone(right), "--lr", "0.1")
	f.start(0)
	wrong := f.now(0)
	if status := wrong.wait(t); status != statusFailed || !strings.Contains(lastLine(wrong.errs()), "refused by 12D3KooW") || !strings.Contains(wrong.errs(), "its terms are --lr 0.5, this peer's --lr 0.1") {
		t.Errorf("the one with other flags: status %d", status)
	}
	for _, i := range []int{1, 2} {
		if f.ended(i) || f.has(i, func(e told) bool { return e.Event == "ended" && e.LostPeer != f.ids[0] }) {
			t.Errorf("peer %d was disturbed", i)
		}
	}
	f.flags = right
	f.start(0)
	f.train("with the right one", time.Now())
	f.interrupt()
	f.audit(n, 1, f.last())
}

// An oldAnnouncement is one of version 1, of which later versions read the beginning.
type oldAnnouncement struct{}

func (oldAnnouncement) Domain() string               { return "peermesh-announcement" }
func (oldAnnouncement) Codec() []byte                { return []byte{0x30, 0x00, 'p', 'm', 'a'} }
func (oldAnnouncement) UnmarshalRecord([]byte) error { return nil }
func (oldAnnouncement) MarshalRecord() ([]byte, error) {
	return append([]byte{1, 0, uint8(len(defaultMesh))}, defaultMesh...), nil
}

// older meets the first peer as one would that speaks an older version, and returns
// what it is told.
func (p *porch) older() string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), soon)
	defer cancel()
	secret, err := node.ReadSecret(p.secret)
	if err != nil {
		p.t.Fatal(err)
	}
	n, err := node.Start(ctx, node.Config{Identity: p.key, Secret: secret, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Transports: []string{node.TCP}})
	if err != nil {
		p.t.Fatal(err)
	}
	defer n.Close()
	to, err := node.ParseAddr(p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	why, err := greet(ctx, n, to)
	if err != nil {
		p.t.Fatal(err)
	}
	return why
}

// greet sends an old announcement and reads the answer: see mesh/SPEC.md.
func greet(ctx context.Context, n *node.Node, to peer.AddrInfo) (why string, err error) {
	e, err := sealed.Seal(oldAnnouncement{}, n.Host().Peerstore().PrivKey(n.ID()))
	if err != nil {
		return "", err
	}
	raw, err := e.Marshal()
	if err != nil {
		return "", err
	}
	if err := n.Connect(ctx, to); err != nil {
		return "", err
	}
	s, err := n.Open(ctx, to.ID, "/peermesh/meet/1")
	if err != nil {
		return "", err
	}
	defer s.Close()
	hello := binary.LittleEndian.AppendUint16([]byte{1, 0}, uint16(len(raw)))
	if _, err := s.Write(append(hello, raw...)); err != nil {
		return "", err
	}
	answer := make([]byte, 1+8+32+2)
	r := bufio.NewReader(s)
	if _, err := io.ReadFull(r, answer); err != nil {
		return "", err
	}
	text := make([]byte, min(512, binary.LittleEndian.Uint16(answer[41:])))
	if _, err := io.ReadFull(r, text); err != nil {
		return "", err
	}
	if answer[0] != 1 {
		return "", fmt.Errorf("answer %d: %s", answer[0], text)
	}
	return string(text), nil
}
