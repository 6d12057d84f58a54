package main

import (
	"testing"

	"peermesh/ops/tensor"
)

func TestSummarize(t *testing.T) {
	hundred := make([]float64, 101)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, test := range []struct {
		times []float64
		want  summaryOf
	}{
		{hundred, summaryOf{median: 50, least: 0, p10: 10, p99: 99}},
		{[]float64{3}, summaryOf{3, 3, 3, 3}},
		{[]float64{2, 1}, summaryOf{median: 2, least: 1, p10: 1, p99: 2}},
		{[]float64{5, 1, 3}, summaryOf{median: 3, least: 1, p10: 1, p99: 5}},
	} {
		if got := summarize(test.times); got != test.want {
			t.Errorf("%v: %+v, want %+v", test.times, got, test.want)
		}
	}
}

// TestBandwidth repeats the example of nccl-tests' PERFORMANCE.md: an all-reduce
// among n ranks moves 2(n-1)/n of the bytes over each link.
func TestBandwidth(t *testing.T) {
	for op, want := range map[string]float64{"all_reduce": 1.5, "all_gather": 0.75, "reduce_scatter": 0.75, "broadcast": 1, "reduce": 1,
		"gather": 0.75, "scatter": 0.75, "all_to_all": 0.75, "pingpong": 1, "stream": 1, "sendrecv": 1, "barrier": 0} {
		ops, err := parseList("--op", op, benchOps, benchOp.String)
		if err != nil {
			t.Fatal(err)
		}
		m := measurement{Total: 4e6}
		m.finish([]float64{1000, 1000}, ops[0].bus(4)) // 4 MB in a millisecond
		if m.Alg != 4 || m.Bus != 4*want || m.Iters != 2 {
			t.Errorf("%s: %+v, want 4 GB/s and %v times that", op, m, want)
		}
	}
	var none measurement
	if none.finish([]float64{0}, 1); none.Alg != 0 {
		t.Errorf("in no time: %v GB/s", none.Alg)
	}
}

func TestSignificant(t *testing.T) {
	for x, want := range map[float64]float64{1.23456789: 1.2346, 0.000123456: 0.00012346, 0: 0, 98765.4: 98765} {
		if got := significant(x); got != want {
			t.Errorf("%v is %v, want %v", x, got, want)
		}
	}
}

// TestPatterns: a filled tensor is right, and any changed element of it wrong.
func TestPatterns(t *testing.T) {
	for _, typ := range benchTypes {
		for _, n := range []int{1, 60, 61, 62, 1000} {
			x := tensor.New(typ.dtype, n)
			p := typ.moved(3)
			if p.fill(x); !p.fills(x) {
				t.Errorf("%v × %d: what was filled in is not there", typ, n)
			}
			if n > 1 && typ.moved(4).fills(x) {
				t.Errorf("%v × %d: another rank's pattern is the same", typ, n)
			}
			bytesOf(x)[len(bytesOf(x))-1] ^= 0x10
			if p.fills(x) {
				t.Errorf("%v × %d: a changed bit is not seen", typ, n)
			}
		}
	}
}

// TestSums adds the ranks' patterns up in each type, as a group would: the result
// is the pattern of the sum, to the bit.
func TestSums(t *testing.T) {
	for _, typ := range benchTypes {
		for _, n := range []int{1, 2, 5, 256} {
			x := tensor.New(typ.dtype, 2*period)
			typ.added(7).fill(x)
			for rank := 8; rank < 7+n; rank++ {
				y := tensor.New(typ.dtype, 2*period)
				typ.added(rank).fill(y)
				if err := x.ReduceAt(bytesOf(y), 0, tensor.Sum); err != nil {
					t.Fatal(err)
				}
			}
			if !typ.sum(7, n).fills(x) {
				t.Errorf("%v: the sum of %d ranks is not its pattern", typ, n)
			}
		}
	}
}
