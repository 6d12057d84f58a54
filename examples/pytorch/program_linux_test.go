package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
	"peermesh/ops/tensor"
)

// envPart has this test be a program, and says which.
const envPart = "PEERMESH_TEST_PART"

func TestMain(m *testing.M) {
	if part := os.Getenv(envPart); part != "" {
		if err := parts[part](); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		return
	}
	os.Exit(m.Run())
}

// parts are programs; the argument is the rank.
var parts = map[string]func() error{
	"well":      func() error { return join(func(int, *client) error { return nil }) },
	"elsewhere": func() error { return nil },
	"dies": func() error {
		return join(func(rank int, c *client) error {
			if rank == 1 {
				os.Exit(7)
			}
			_, err := c.ask([]byte{kindBarrier})
			return err
		})
	},
	"early": func() error {
		return join(func(rank int, c *client) error {
			if rank == 1 {
				return nil
			}
			_, err := c.ask(request{kind: kindReduce, dtype: tensor.Uint8, n: 4}.encode())
			return err
		})
	},
	"deaf": func() error { // but for the kill
		return join(func(rank int, c *client) error {
			if rank == 1 {
				os.Exit(7)
			}
			signal.Ignore(os.Interrupt)
			<-time.Tick(time.Hour)
			return nil
		})
	},
}

// join does what every program does first.
func join(then func(rank int, c *client) error) error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: os.Getenv(envSocket), Net: "unix"})
	if err != nil {
		return err
	}
	conn.SetDeadline(time.Now().Add(time.Minute))
	c := &client{conn: conn}
	place, err := c.ask(request{kind: kindHello, n: version}.encode())
	if err != nil {
		return err
	}
	if _, err := c.ask(request{kind: kindShare, n: 64}.encode()); err != nil {
		return err
	}
	return then(int(place[0]), c)
}

// programs runs a part as two ranks, and returns what is written and how it ends.
func programs(t *testing.T, part string) (string, error) {
	t.Helper()
	t.Setenv(envPart, part)
	var b strings.Builder
	out := &console{w: &b}
	err := ranks.Run(t.Context(), 2, func(ctx context.Context, g *ops.Group) error {
		s := &speaker{to: out, prefix: fmt.Sprintf("[%d] ", g.Rank())}
		err := run(ctx, g, s, os.Args[0])
		s.Close()
		return err
	})
	return b.String(), err
}

func TestRun(t *testing.T) {
	for _, part := range []string{"well", "elsewhere"} {
		if out, err := programs(t, part); out != "" || err != nil {
			t.Errorf("%s: %q, %v", part, out, err)
		}
	}
}

// A program's death ends the run, and every rank says why.
func TestRunDies(t *testing.T) {
	out, err := programs(t, "dies")
	if err == nil || !strings.Contains(err.Error(), "rank 1: "+os.Args[0]+": exit status 7") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out, "[0] ") || !strings.Contains(out, "exit status 7") {
		t.Errorf("rank 0's program is told %q", out)
	}
}

// A program that ends before the others is found out, not waited for.
func TestRunEarly(t *testing.T) {
	out, err := programs(t, "early")
	for _, want := range []string{"all_reduce", "barrier"} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(out, want) {
			t.Errorf("told %q, returned %v; want %q in both", out, err, want)
		}
	}
}

// A program that does not hear is killed in the end.
func TestRunDeaf(t *testing.T) {
	defer func(d time.Duration) { grace = d }(grace)
	grace = 300 * time.Millisecond
	_, err := programs(t, "deaf")
	if err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("got %v", err)
	}
}

func TestRunNoProgram(t *testing.T) {
	err := ranks.Run(t.Context(), 1, func(ctx context.Context, g *ops.Group) error {
		return run(ctx, g, &strings.Builder{}, "/no/such/program")
	})
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("got %v", err)
	}
}

func TestJobRefuses(t *testing.T) {
	for want, j := range map[string]job{
		"no program":       {local: 2},
		"want either -n":   {program: []string{"true"}},
		"for one of them":  {program: []string{"true"}, local: 1, world: 2},
		"ranks, want 1 to": {program: []string{"true"}, local: 1 << 30},
	} {
		if err := j.run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", j, err, want)
		}
	}
}
