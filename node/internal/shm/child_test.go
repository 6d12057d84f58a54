//go:build linux && (amd64 || arm64)

package shm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	"go.uber.org/goleak"
)

// childEnv says what a process is for that a test starts: for the handling of
// streams by that name, or, where an address and a peer come after it, for that of one
// that it opens there itself.
const childEnv = "PEERMESH_SHM_CHILD"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childEnv); kind != "" {
		fmt.Fprintln(os.Stderr, serveChild(kind))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// handlers are what a child does with a stream.
var handlers = map[string]func(s network.MuxedStream){
	"sink":   func(s network.MuxedStream) { _, _ = io.CopyBuffer(plain{io.Discard}, s, make([]byte, 1<<20)) },
	"source": func(s network.MuxedStream) { flood(s) },
	"both": func(s network.MuxedStream) {
		go flood(s)
		_, _ = io.CopyBuffer(plain{io.Discard}, s, make([]byte, 1<<20))
	},
}

// plain hides that io.Discard would bring a buffer of its own.
type plain struct{ io.Writer }

func flood(s network.MuxedStream) {
	p := make([]byte, 1<<20)
	for {
		if _, err := s.Write(p); err != nil {
			return
		}
	}
}

// serveChild listens, says where on standard output, and handles streams for as
// long as standard input is open: until the test process ends.
func serveChild(kind string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	kind, where, calls := strings.Cut(kind, " ")
	handle := handlers[kind]
	if size, ok := strings.CutPrefix(kind, "echo"); ok {
		n, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		handle = func(s network.MuxedStream) { echoes(s, n) }
	}
	key, _, err := crypto.GenerateEd25519Key(nil)
	if err != nil {
		return err
	}
	t, err := New(key, &network.NullResourceManager{}, nil, nil)
	if err != nil {
		return err
	}
	l, err := t.Listen(t.place.address(anyName))
	if err != nil {
		return err
	}
	fmt.Println(l.Multiaddr(), t.id)
	if calls {
		return call(t, where, handle)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			for {
				s, err := c.AcceptStream()
				if err != nil {
					return
				}
				go handle(s)
			}
		}()
	}
}

// call opens a stream to who listens there.
func call(t *Transport, where string, handle func(network.MuxedStream)) error {
	addr, id, err := parsePeer(where)
	if err != nil {
		return err
	}
	c, err := t.Dial(context.Background(), addr, id)
	if err != nil {
		return err
	}
	s, err := c.OpenStream(context.Background())
	if err != nil {
		return err
	}
	handle(s)
	return nil
}

// parsePeer reads an address and a peer.
func parsePeer(text string) (multiaddr.Multiaddr, peer.ID, error) {
	where, who, _ := strings.Cut(strings.TrimSpace(text), " ")
	addr, err := multiaddr.NewMultiaddr(where)
	if err != nil {
		return nil, "", err
	}
	id, err := peer.Decode(who)
	return addr, id, err
}

// A child is a process with a listener.
type child struct {
	cmd  *exec.Cmd
	in   io.Closer // its standard input
	addr multiaddr.Multiaddr
	id   peer.ID
}

func startChild(t testing.TB, kind string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(exe, "-test.run=^$")}
	c.cmd.Env = append(os.Environ(), childEnv+"="+kind)
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in = in
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.cmd.Wait() // however it ended
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if c.addr, c.id, err = parsePeer(line); err != nil {
		t.Fatal(err)
	}
	return c
}

// dial connects to the child and opens a stream.
func (c *child) dial(t testing.TB) (*Conn, *Stream) {
	t.Helper()
	a, _ := transports(t)
	conn, err := a.Dial(t.Context(), c.addr, c.id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s, err := conn.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*Conn), s.(*Stream)
}
