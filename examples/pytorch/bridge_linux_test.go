package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
	"peermesh/ops/tensor"
)

// A client is a program's side of a bridge, as peermesh.py is.
type client struct {
	conn   *net.UnixConn
	memory []byte
}

// ask sends a payload and returns what the answer, which is to be K, holds.
func (c *client) ask(payload []byte) ([]byte, error) {
	if _, err := c.conn.Write(frame(payload)); err != nil && !errors.Is(err, unix.EPIPE) {
		return nil, err // a broken pipe has the reason at its other end
	}
	return c.answer()
}

func (c *client) answer() ([]byte, error) {
	head, oob := make([]byte, 4), make([]byte, 64)
	_, n, _, _, err := c.conn.ReadMsgUnix(head[:1], oob)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		if err := c.receive(oob[:n]); err != nil {
			return nil, err
		}
	}
	p, err := readFrame(head[0], c.conn)
	if err == nil && p[0] != kindOK {
		err = errors.New(string(p[1:]))
	}
	return p[min(1, len(p)):], err
}

// receive maps the memory whose descriptor has come.
func (c *client) receive(oob []byte) error {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	defer unix.Close(fds[0])
	if err := unix.Ftruncate(fds[0], 0); err == nil {
		return errors.New("shared memory can be taken away")
	}
	var s unix.Stat_t
	if err := unix.Fstat(fds[0], &s); err != nil {
		return err
	}
	c.memory, err = unix.Mmap(fds[0], 0, int(s.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

func (c *client) hello() error {
	_, err := c.ask(request{kind: kindHello, n: version}.encode())
	return err
}

// bridged runs a program's part for each of n ranks; what it returns is the rank's
// result, unless that of its bridge is an error.
func bridged(t *testing.T, n int, program func(rank int, c *client) error) error {
	t.Helper()
	return ranks.Run(t.Context(), n, func(ctx context.Context, g *ops.Group) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		ends := make([]*net.UnixConn, 2)
		for i, fd := range pair {
			f := os.NewFile(uintptr(fd), "pair")
			conn, err := net.FileConn(f)
			f.Close()
			if err != nil {
				return err
			}
			ends[i] = conn.(*net.UnixConn)
		}
		served := make(chan error, 1)
		go func() { served <- serve(ctx, g, ends[0]) }()
		err = program(g.Rank(), &client{conn: ends[1]})
		ends[1].Close()
		if e := <-served; e != nil {
			return e
		}
		return err
	})
}

// A program learns its place, and its numbers are folded where they lie.
func TestServe(t *testing.T) {
	const n = 2
	err := bridged(t, n, func(rank int, c *client) error {
		place, err := c.ask(request{kind: kindHello, n: version}.encode())
		if err != nil {
			return err
		}
		le := binary.LittleEndian
		if got := [2]uint32{le.Uint32(place), le.Uint32(place[4:])}; got != [2]uint32{uint32(rank), n} {
			t.Errorf("rank and world are %v, want %d of %d", got, rank, n)
		}
		for _, bytes := range []uint64{16, 4096} { // the second takes the place of the first
			if _, err := c.ask(request{kind: kindShare, n: bytes}.encode()); err != nil {
				return err
			}
			if len(c.memory) != int(bytes) {
				t.Errorf("%d bytes are shared, want %d", len(c.memory), bytes)
			}
		}
		x, _ := tensor.Data[float32](tensor.In(tensor.Host(c.memory), tensor.Float32, 3))
		for _, step := range []struct {
			r    request
			want []float32
		}{
			{request{kind: kindReduce, dtype: tensor.Float32, op: opSum, n: 2}, []float32{1, 6, 5}},
			{request{kind: kindReduce, dtype: tensor.Float32, op: opAverage, n: 3}, []float32{0.5, 3, 5}},
			{request{kind: kindReduce, dtype: tensor.Float32, op: opMin, n: 3}, []float32{0, 3, 5}},
			{request{kind: kindReduce, dtype: tensor.Float32, op: opMax, n: 3}, []float32{1, 3, 5}},
			{request{kind: kindBroadcast, dtype: tensor.Float32, src: 1, n: 1}, []float32{1, 3, 5}},
			{request{kind: kindBarrier}, []float32{0 + float32(rank), 3, 5}},
		} {
			x[0], x[1], x[2] = float32(rank), 3, 5
			if _, err := c.ask(step.r.encode()); err != nil {
				return err
			}
			if !slices.Equal(x, step.want) {
				t.Errorf("rank %d: %+v leaves %v, want %v", rank, step.r, x, step.want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// What is no request gets one answer, an error that says why, and the connection ends.
func TestServeRefuses(t *testing.T) {
	hello := string(frame(request{kind: kindHello, n: version}.encode()))
	reduce := string(frame(request{kind: kindReduce, dtype: tensor.Float32, n: 5}.encode()))
	share := string(frame(request{kind: kindShare, n: 16}.encode()))
	cases := map[string]string{
		"\x00\x00\x00\x00":     "a frame of 0 bytes",
		"\x00\x00\x00\x80":     "a frame of 2147483648 bytes",
		"\x01\x00\x00\x00W":    "a request 'W': want one hello, and it first",
		hello + hello:          "a request 'H': want one hello, and it first",
		hello + reduce:         "5 elements of float32, but 0 bytes are shared",
		hello + share + reduce: "5 elements of float32, but 16 bytes are shared",
		hello + string(frame([]byte("B\x01\x07\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"))): "1 elements of float32, but 0",
	}
	for payload, want := range malformed {
		if payload != "" {
			cases[string(frame([]byte(payload)))] = want
		}
	}
	for sent, want := range cases {
		err := bridged(t, 1, func(_ int, c *client) error {
			if _, err := c.conn.Write([]byte(sent)); err != nil {
				return err
			}
			var err error
			for err == nil { // the answers to what comes before
				_, err = c.answer()
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is answered by %v, want %q", sent, err, want)
			}
			if _, after := c.answer(); !errors.Is(after, io.EOF) && !errors.Is(after, unix.ECONNRESET) {
				t.Errorf("%q: after the error comes %v", sent, after)
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the bridge returns %v, want %q", sent, err, want)
		}
	}
}

// An average of whole numbers is none; a broadcast has a source. Groups say so.
func TestServeGroupRefuses(t *testing.T) {
	for _, r := range []request{
		{kind: kindReduce, dtype: tensor.Int64, op: opAverage, n: 1},
		{kind: kindBroadcast, dtype: tensor.Int64, src: 2, n: 1},
	} {
		err := bridged(t, 2, func(_ int, c *client) error {
			if err := c.hello(); err != nil {
				return err
			}
			if _, err := c.ask(request{kind: kindShare, n: 8}.encode()); err != nil {
				return err
			}
			if _, err := c.ask(r.encode()); err == nil {
				t.Errorf("%+v is done", r)
			}
			return nil
		})
		if err == nil {
			t.Errorf("%+v: no error", r)
		}
	}
}

// A program that goes on computing learns of the world's end from an answer to nothing.
func TestServeWorldEnds(t *testing.T) {
	err := bridged(t, 2, func(rank int, c *client) error {
		if err := c.hello(); err != nil {
			return err
		}
		if rank == 0 {
			return errors.New("out of paper")
		}
		_, err := c.answer()
		if err == nil || !strings.Contains(err.Error(), "out of paper") {
			t.Errorf("told: %v", err)
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "rank 0: out of paper") {
		t.Errorf("got %v", err)
	}
}

// Ranks that ask for different things are both told of both.
func TestServeMismatch(t *testing.T) {
	err := bridged(t, 2, func(rank int, c *client) error {
		if err := c.hello(); err != nil {
			return err
		}
		if _, err := c.ask(request{kind: kindShare, n: 64}.encode()); err != nil {
			return err
		}
		_, err := c.ask(request{kind: kindReduce, dtype: tensor.Uint8, n: uint64(3 + rank)}.encode())
		if err == nil || !strings.Contains(err.Error(), "3") || !strings.Contains(err.Error(), "4") {
			t.Errorf("rank %d is told %v", rank, err)
		}
		return nil
	})
	if m, ok := errors.AsType[*ops.MismatchError](err); !ok || m.Ours.Count == m.Theirs.Count {
		t.Errorf("got %v", err)
	}
}

// A frame that ends in the middle is the program's end, not a wait.
func TestServeCut(t *testing.T) {
	err := bridged(t, 1, func(_ int, c *client) error {
		_, err := c.conn.Write([]byte("\x05\x00\x00\x00H"))
		return err
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || !broken(err) {
		t.Errorf("got %v", err)
	}
}
