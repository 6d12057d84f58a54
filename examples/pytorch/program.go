package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"peermesh/ops"
)

// envSocket is where a program finds the path of its bridge's socket.
const envSocket = "PEERMESH_SOCKET"

// connectTimeout bounds how long a program may take to say hello.
const connectTimeout = 2 * time.Minute

// grace is what a program gets to end by itself when its rank has failed, and then again
// when it is interrupted. Only a test changes it.
var grace = 5 * time.Second

// errEnded ends a bridge whose program is gone, and was content.
var errEnded = errors.New("the program has ended")

// run runs a program with a bridge to a group. It returns when the program has ended,
// and with success when those of all ranks have ended well.
func run(ctx context.Context, g *ops.Group, out io.Writer, program string, args ...string) error {
	dir, err := os.MkdirTemp("", "peermesh-") // of mode 0700
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "bridge")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	cmd := exec.CommandContext(alive, program, args...)
	cmd.Env = append(os.Environ(), envSocket+"="+path)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace // from the interrupt to the kill
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := attend(ctx, g, l, cmd, kill); err != nil {
		return err
	}
	if err := g.Barrier(ctx).Wait(); err != nil {
		return fmt.Errorf("%s has ended, others have not: %w", program, err)
	}
	return nil
}

// attend serves a running program until it has ended. If its rank fails first, the
// program gets some time to end by itself.
func attend(ctx context.Context, g *ops.Group, l *net.UnixListener, cmd *exec.Cmd, kill func()) error {
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	served, exited := make(chan error, 1), make(chan error, 1)
	go func() { served <- accept(serving, g, l) }()
	go func() { exited <- cmd.Wait() }()
	var failed, exit error
	gone := errEnded // why the program is, where it ended first
	select {
	case failed = <-served:
		late := time.AfterFunc(grace, kill)
		if failed == nil { // it has closed its socket, and may go on without us
			late.Stop()
			defer context.AfterFunc(ctx, kill)()
		}
		exit = <-exited
		late.Stop()
	case exit = <-exited:
		if exit != nil {
			gone = fmt.Errorf("%s: %w", cmd.Path, exit)
		}
		stop(gone)
		l.Close()
		failed = <-served
	}
	switch {
	case exit != nil && (failed == nil || failed == gone || broken(failed)):
		return fmt.Errorf("%s: %w", cmd.Path, exit)
	case failed == gone:
		return nil
	}
	return failed
}

// broken tells an error that only says that the program is not there any more.
func broken(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) && !op.Timeout()
}

// accept serves the one connection that a program makes.
func accept(ctx context.Context, g *ops.Group, l *net.UnixListener) error {
	l.SetDeadline(time.Now().Add(connectTimeout))
	// A program that comes when all is over already is still told why.
	stop := context.AfterFunc(ctx, func() { l.SetDeadline(time.Now().Add(grace)) })
	conn, err := l.AcceptUnix()
	stop()
	l.Close() // also removes the socket: there is no second
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("the program has not connected to $%s: %w", envSocket, err)
	}
	return serve(ctx, g, conn)
}
