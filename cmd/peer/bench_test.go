package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// benched runs a plan on n ranks of an in-memory world, and returns what rank 0
// reports.
func benched(t *testing.T, n int, c benchCmd, each func(rank int, b *bench)) ([]measurement, []error) {
	t.Helper()
	worlds := memnet.New(n)
	var all sync.WaitGroup
	var rows []measurement
	errs := make([]error, n)
	for rank, w := range worlds {
		plan, err := c.plan()
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{plan: plan, group: ops.NewGroup(w, ops.Config{}), report: discard, peer: func(rank int) string { return fmt.Sprint("peer-", rank) }}
		if rank == 0 {
			b.report = func(m measurement) error { rows = append(rows, m); return nil }
		}
		if each != nil {
			each(rank, b)
		}
		all.Go(func() { errs[rank] = b.run(t.Context()) })
	}
	all.Wait()
	return rows, errs
}

// TestBenchEveryOperation runs all operations with every type, among worlds of any
// size, and finds every result right.
func TestBenchEveryOperation(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		rows, errs := benched(t, n, benchCmd{Op: "all", Sizes: "1,8,1000", DTypes: "float32,bfloat16,int8,uint64", Iters: 2, Warmup: new(1)}, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		want := 4 * (3*12 + 1) // all but the barrier at each size
		if n == 1 {
			want -= 4 * 3 * 2 // no pairs
		}
		if len(rows) != want {
			t.Errorf("%d ranks: %d lines, want %d", n, len(rows), want)
		}
		for _, m := range rows {
			if !m.OK || m.Iters != 2 || m.World != n || m.Total == 0 && m.Op != "barrier" {
				t.Errorf("%d ranks: %+v", n, m)
			}
		}
	}
}

// TestBenchTotals counts bytes as the other systems' scripts do: whole elements,
// and for what is in parts, equal ones.
func TestBenchTotals(t *testing.T) {
	rows, errs := benched(t, 3, benchCmd{Op: "all_reduce,all_gather,pingpong", Sizes: "1,1000", DTypes: "float32", Iters: 1}, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"all_reduce 1": 4, "all_reduce 1000": 1000, "all_gather 1": 12, "all_gather 1000": 996, "pingpong 1": 4, "pingpong 1000": 1000}
	for _, m := range rows {
		if name := fmt.Sprint(m.Op, " ", m.Bytes); m.Total != want[name] {
			t.Errorf("%s: %d bytes in all, want %d", name, m.Total, want[name])
		}
	}
}

// TestBenchFindsWrong has one rank add what it should not: all end with an error,
// and the line says so.
func TestBenchFindsWrong(t *testing.T) {
	spoilt := benchOp{name: "spoilt", bus: once, prepare: func(s *stage) trial {
		x := s.some(1)
		return trial{
			run:    func(ctx context.Context) error { return s.g.AllReduce(ctx, x, tensor.Sum).Wait() },
			before: func() { s.typ.added(0).fill(x) }, // on rank 1, too
			right:  func() bool { return s.typ.sum(0, s.n).fills(x) }}
	}}
	rows, errs := benched(t, 2, benchCmd{Op: "all_reduce", Sizes: "1KiB", DTypes: "int32", Iters: 1}, func(_ int, b *bench) { b.plan.ops = []benchOp{spoilt} })
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "1 of the results were wrong") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if len(rows) != 1 || rows[0].OK {
		t.Errorf("%+v, want one line that is not ok", rows)
	}
}

// TestBenchDisagree has one rank measure something else, or over something else: every
// rank is told.
func TestBenchDisagree(t *testing.T) {
	names := []string{"all", "tcp"}
	for flag, c := range map[string]struct {
		spoil func(rank int, b *bench)
		of    func(rank int) string
	}{
		"--iters":     {func(rank int, b *bench) { b.plan.iters += rank }, func(rank int) string { return fmt.Sprint(1 + rank) }},
		"--transport": {func(rank int, b *bench) { b.plan.over = names[rank] }, func(rank int) string { return names[rank] }},
	} {
		_, errs := benched(t, 2, benchCmd{Op: "barrier", Sizes: "8", DTypes: "float32", Iters: 1}, c.spoil)
		for rank, err := range errs {
			want := fmt.Sprintf("rank %d (peer-%[1]d) was started with %s %s", 1-rank, flag, c.of(1-rank))
			if exitStatus(err) != statusUsage || !strings.Contains(err.Error(), want) {
				t.Errorf("rank %d: %v, want %q", rank, err, want)
			}
		}
	}
}

// TestBenchWarmup: a tenth of the runs goes before them, up to a bound, and of what is
// small between two ranks more; or what is asked for.
func TestBenchWarmup(t *testing.T) {
	group, pair := benchOp{}, benchOp{pair: true}
	for _, c := range []struct {
		op   benchOp
		size int64
		asks int
		runs int
		want int
	}{
		{group, 8, -1, 50, 5},
		{group, 8, -1, maxRuns, maxWarmup},
		{pair, smallMessage, -1, 50, 50},
		{pair, smallMessage, -1, maxRuns, maxPairWarmup},
		{pair, smallMessage + 1, -1, maxRuns, 1},
		{group, 8, 0, 50, 0},
		{pair, 8, 7, 50, 7},
	} {
		b := &bench{plan: &benchPlan{warmup: c.asks}}
		if got := b.warmup(c.op, c.size, c.runs); got != c.want {
			t.Errorf("%+v: %d runs", c, got)
		}
	}
}

// TestBenchBudget takes as many runs as the budget allows, within bounds.
func TestBenchBudget(t *testing.T) {
	rows, errs := benched(t, 2, benchCmd{Op: "barrier,pingpong", Sizes: "8", DTypes: "float32", Budget: 1e-9, Measure: true}, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, m := range rows {
		if m.Iters != minRuns {
			t.Errorf("%+v, want %d runs", m, minRuns)
		}
	}
}

// TestBenchProcesses measures as people do, small: two processes over each of what
// processes can have between them, JSON on stdout.
func TestBenchProcesses(t *testing.T) {
	for _, transport := range []string{"tcp", "quic", "shm"} {
		t.Run(transport, func(t *testing.T) {
			if transport == "shm" && runtime.GOOS != "linux" {
				t.Skip("Linux has it")
			}
			s := spawn(t, "bench", "-n", "2", "--op", "all_reduce,barrier", "--sizes", "8,64KiB", "--iters", "3", "--transport", transport, "--json")
			if status := s.wait(t); status != 0 {
				t.Fatalf("status %d: %s", status, s.errs())
			}
			lines := strings.Split(strings.TrimSpace(s.out()), "\n")
			if len(lines) != 3 {
				t.Fatalf("%d lines, want 3: %s", len(lines), s.out())
			}
			for _, line := range lines {
				var m measurement
				if err := json.Unmarshal([]byte(line), &m); err != nil || !m.OK || m.World != 2 || m.Transport != transport || m.Median <= 0 {
					t.Errorf("%s: %v", line, err)
				}
			}
		})
	}
}

// TestBenchMesh measures among peers that were started by hand.
func TestBenchMesh(t *testing.T) {
	first := spawn(t, "bench", "--world", "2", "--listen", "/ip4/127.0.0.1/tcp/0", "--op", "broadcast", "--sizes", "1KiB", "--iters", "2")
	var command string
	eventually(t, "the command for the others", func() bool {
		_, rest, found := strings.Cut(first.errs(), "    peer ")
		command, _, found = strings.Cut(rest, "\n")
		return found
	})
	second := spawn(t, append(strings.Fields(command), "--listen", "/ip4/127.0.0.1/tcp/0")...)
	if a, b := first.wait(t), second.wait(t); a != 0 || b != 0 {
		t.Fatalf("status %d and %d", a, b)
	}
	if out := first.out() + second.out(); strings.Count(out, "2 ranks, peers of a mesh; transport all") != 1 || strings.Count(out, "broadcast ") != 1 {
		t.Errorf("want one table:\n%s", out)
	}
}

// TestBenchInProcess has all ranks in this process.
func TestBenchInProcess(t *testing.T) {
	before := filepath.Join(t.TempDir(), "before")
	write(t, before, []byte(`{"op":"all_gather","world":3,"bytes":1024,"dtype":"float32","median_us":100}`))
	status, stdout, stderr := in("bench", "-n", "3", "--transport", "memory", "--op", "all_gather", "--sizes", "1KiB", "--iters", "2", "--against", before)
	if status != 0 || !strings.Contains(stdout, "3 ranks, ranks of one process; transport memory") || !strings.Contains(stdout, "×") {
		t.Errorf("status %d, stdout:\n%s\nstderr: %s", status, stdout, stderr)
	}
}

// TestBenchIdle: the harness costs next to nothing beside what it measures.
func TestBenchIdle(t *testing.T) {
	if got := idle(context.Background()); got <= 0 || got > 1000 {
		t.Errorf("nothing takes %v µs", got)
	}
}
