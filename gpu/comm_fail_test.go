package gpu

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"peermesh/ops/tensor"
)

// TestAbort waits for members that never come: to join, in a collective, and to part.
func TestAbort(t *testing.T) {
	d := opened(t, Config{})
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	id, err := NewUniqueID()
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { cancel(gone) })
	if _, err := NewComm(ctx, d, id, 0, 2); !errors.Is(err, gone) {
		t.Errorf("alone in a communicator of two: %v", err)
	}
	if _, err := NewComm(ctx, d, id, 0, 1); !errors.Is(err, gone) {
		t.Errorf("when the context had ended: %v", err)
	}
	together(t, 2, func(ctx context.Context, m member) error {
		x, err := m.filled(tensor.Float32, 4, 1)
		if err != nil || m.Rank() == 1 {
			return errors.Join(err, m.Abort())
		}
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(10*time.Millisecond, func() { cancel(gone) })
		err = m.AllReduce(ctx, m.s, x, x, tensor.Sum)
		if err == nil {
			err = m.Finish(ctx, m.s)
		}
		if !errors.Is(err, gone) {
			t.Errorf("a member that does not come: %v", err)
		}
		if err := m.AllReduce(t.Context(), m.s, x, x, tensor.Sum); !errors.Is(err, ErrClosed) {
			t.Errorf("after the abort: %v", err)
		}
		return nil
	})
}

// TestBreak has a member's process die: NCCL says so between two calls.
func TestBreak(t *testing.T) {
	together(t, 1, func(ctx context.Context, m member) error {
		x, err := m.filled(tensor.Float32, 4, 1)
		if err != nil {
			return err
		}
		done := make(chan struct{})
		if err := m.s.Hold(done); err != nil {
			return err
		}
		tell(t, EnvNCCL, "fake_break", 6)
		err = m.Finish(ctx, m.s)
		close(done)
		var e *Error
		if !errors.As(err, &e) || e.Code != 6 || e.Library != "nccl" {
			t.Errorf("Finish: %v", err)
		}
		if err := m.Broadcast(ctx, m.s, x, 0); !errors.Is(err, ErrClosed) {
			t.Errorf("Broadcast: %v", err)
		}
		return nil
	})
}

// TestCommFails has each of NCCL's calls fail.
func TestCommFails(t *testing.T) {
	d := opened(t, Config{})
	s := streamed(t, d)
	x, err := d.Alloc(tensor.Float32, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		function string
		call     func(c *Comm) error
	}{
		{"ncclAllReduce", func(c *Comm) error { return c.AllReduce(t.Context(), s, x, x, tensor.Sum) }},
		{"ncclRedOpCreatePreMulSum", func(c *Comm) error { return c.AllReduce(t.Context(), s, x, x, tensor.PremulSum(2)) }},
		{"ncclRedOpDestroy", func(c *Comm) error { return c.AllReduce(t.Context(), s, x, x, tensor.PremulSum(2)) }},
		{"ncclReduce", func(c *Comm) error { return c.Reduce(t.Context(), s, x, x, tensor.Sum, 0) }},
		{"ncclReduceScatter", func(c *Comm) error { return c.ReduceScatter(t.Context(), s, x, x, tensor.Sum) }},
		{"ncclAllGather", func(c *Comm) error { return c.AllGather(t.Context(), s, x, x) }},
		{"ncclBroadcast", func(c *Comm) error { return c.Broadcast(t.Context(), s, x, 0) }},
		{"ncclGroupStart", func(c *Comm) error { return c.Exchange(t.Context(), s) }},
		{"ncclSend", func(c *Comm) error { return c.Exchange(t.Context(), s, Transfer{Send: x}) }},
		{"ncclRecv", func(c *Comm) error { return c.Exchange(t.Context(), s, Transfer{Recv: x}) }},
		{"ncclGroupEnd", func(c *Comm) error { return c.Exchange(t.Context(), s) }},
		{"ncclCommGetAsyncError", func(c *Comm) error { return c.Broadcast(t.Context(), s, x, 0) }},
		{"ncclCommFinalize", (*Comm).Close},
		{"ncclCommDestroy", (*Comm).Close},
		{"ncclCommAbort", (*Comm).Abort},
		{"ncclCommInitRankScalable", func(*Comm) error { _, err := NewComm(t.Context(), d, UniqueID{}, 0, 1); return err }},
		{"ncclGetUniqueId", func(*Comm) error { _, err := NewUniqueID(); return err }},
	} {
		id, err := NewUniqueID()
		if err != nil {
			t.Fatal(err)
		}
		comm, err := NewComm(t.Context(), d, id, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		fail(t, EnvNCCL, c.function, 1, 3)
		err = c.call(comm)
		var e *Error
		if !errors.As(err, &e) || e.Call != c.function || e.Code != 3 || !strings.Contains(err.Error(), "(nccl 3)") {
			t.Errorf("%s fails: %v", c.function, err)
		}
		if err := comm.Abort(); err != nil {
			t.Error(err)
		}
	}
}

// TestInitByValue is for versions of NCCL that take the id itself, all 128 bytes of it.
func TestInitByValue(t *testing.T) {
	needFakes(t)
	n, err := nccl()
	if err != nil {
		t.Fatal(err)
	}
	scalable := n.functions["ncclCommInitRankScalable"]
	delete(n.functions, "ncclCommInitRankScalable")
	defer func() { n.functions["ncclCommInitRankScalable"] = scalable }()
	together(t, 2, func(context.Context, member) error { return nil })
	d := opened(t, Config{Chunk: 1024, Depth: 1})
	fail(t, EnvNCCL, "ncclCommInitRankConfig", 1, 3)
	var e *Error
	if _, err := NewComm(t.Context(), d, UniqueID{}, 0, 1); !errors.As(err, &e) || e.Call != "ncclCommInitRankConfig" || e.Code != 3 {
		t.Errorf("it fails: %v", err)
	}
}

// TestFinishAborted waits for what another goroutine's Abort has ended.
func TestFinishAborted(t *testing.T) {
	together(t, 1, func(ctx context.Context, m member) error {
		done := make(chan struct{})
		defer close(done)
		if err := errors.Join(m.s.Hold(done), m.Abort()); err != nil {
			return err
		}
		if err := m.Finish(ctx, m.s); !errors.Is(err, ErrClosed) {
			t.Errorf("Finish: %v", err)
		}
		return nil
	})
}

// TestScalar has no factor for what is not multiplied, which the callers have refused before.
func TestScalar(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a factor that is a bool")
		}
	}()
	scalar(tensor.Bool, 2)
}
