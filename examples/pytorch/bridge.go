package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// frameTimeout bounds how long a frame may take once it has begun. Between frames a
// program may compute for as long as it wants.
const frameTimeout = 10 * time.Second

// A bridge is the rank of one program.
type bridge struct {
	g      *ops.Group
	conn   *net.UnixConn
	hello  bool // has been said
	memory shared
}

// serve does what a program asks on a connection until the program closes it, which is
// no error. Whatever ends it otherwise, the end of ctx too, the program is told.
func serve(ctx context.Context, g *ops.Group, conn *net.UnixConn) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
	b := &bridge{g: g, conn: conn}
	for {
		err := b.next(ctx)
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			return b.memory.close()
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		}
		// After an error the memory stays until the process ends: something of a broken
		// collective could still be writing to it.
		conn.SetWriteDeadline(time.Now().Add(frameTimeout))
		conn.Write(failure(err)) // a program that is gone cannot be told
		return err
	}
}

// next answers one request. It returns io.EOF if there is none.
func (b *bridge) next(ctx context.Context) error {
	var first [1]byte
	if _, err := io.ReadFull(b.conn, first[:]); err != nil {
		return err
	}
	b.conn.SetDeadline(time.Now().Add(frameTimeout))
	p, err := readFrame(first[0], b.conn)
	if err != nil {
		return err
	}
	b.conn.SetDeadline(time.Time{})
	if ctx.Err() != nil { // whose deadline may just have been lifted
		return context.Cause(ctx)
	}
	r, err := decode(p)
	if err != nil {
		return err
	}
	if b.hello == (r.kind == kindHello) {
		return fmt.Errorf("a request %q: want one hello, and it first", r.kind)
	}
	answer, rights, err := b.do(ctx, r)
	if err != nil {
		return err
	}
	b.conn.SetWriteDeadline(time.Now().Add(frameTimeout))
	_, _, err = b.conn.WriteMsgUnix(frame(append([]byte{kindOK}, answer...)), rights, nil)
	return err
}

// do does what is asked, and returns what the answer holds.
func (b *bridge) do(ctx context.Context, r request) (answer, rights []byte, err error) {
	switch r.kind {
	case kindHello:
		b.hello = true
		answer = binary.LittleEndian.AppendUint32(answer, uint32(b.g.Rank()))
		return binary.LittleEndian.AppendUint32(answer, uint32(b.g.Size())), nil, nil
	case kindShare:
		memory, err := share(int(r.n))
		if err != nil {
			return nil, nil, err
		}
		err = b.memory.close()
		b.memory = memory
		return nil, memory.rights(), err
	case kindBarrier:
		return nil, nil, b.g.Barrier(ctx).Wait()
	}
	x, err := b.tensor(r)
	if err != nil {
		return nil, nil, err
	}
	if r.kind == kindBroadcast {
		return nil, nil, b.g.Broadcast(ctx, x, int(r.src)).Wait()
	}
	return nil, nil, b.g.AllReduce(ctx, x, b.op(r.op)).Wait()
}

// tensor is the memory that a request is about.
func (b *bridge) tensor(r request) (tensor.Tensor, error) {
	if have := uint64(len(b.memory.data)); r.n*uint64(r.dtype.Size()) > have {
		return tensor.Tensor{}, fmt.Errorf("%d elements of %v, but %d bytes are shared", r.n, r.dtype, have)
	}
	return tensor.In(tensor.Host(b.memory.data), r.dtype, int(r.n)), nil
}

// op is a reduction by its number. An average is as PyTorch's DDP has it: divided first,
// and then summed.
func (b *bridge) op(number uint8) tensor.Op {
	switch number {
	case opAverage:
		return tensor.PremulSum(1 / float64(b.g.Size()))
	case opMin:
		return tensor.Min
	case opMax:
		return tensor.Max
	}
	return tensor.Sum
}
