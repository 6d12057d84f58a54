package ops

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"peermesh/ops/schedule"
	"peermesh/testnet/memnet"
)

// contract is what an operation's schedules must do.
func contract(k Kind, root int) schedule.Contract {
	switch k {
	case KindAllReduce, KindAllReduceCoded:
		return schedule.AllReduceContract
	case KindReduceScatter:
		return schedule.ReduceScatterContract
	case KindAllGather:
		return schedule.AllGatherContract
	case KindReduce:
		return schedule.ReduceContract(root)
	case KindBroadcast:
		return schedule.BroadcastContract(root)
	case KindGather, KindGatherList:
		return schedule.GatherContract(root)
	case KindScatter, KindScatterList:
		return schedule.ScatterContract(root)
	case KindAllToAll, KindAllToAllV:
		return schedule.AllToAllContract
	default:
		return schedule.BarrierContract
	}
}

func hasRoot(k Kind) bool { return contract(k, 0) != contract(k, 1) }

func TestEveryCandidateIsProved(t *testing.T) {
	for _, k := range kinds() {
		for n := 1; n <= 17; n++ {
			for root := range n {
				if root > 0 && !hasRoot(k) {
					break
				}
				proveCandidates(t, k, n, root)
			}
		}
	}
}

func proveCandidates(t *testing.T, k Kind, n, root int) {
	t.Helper()
	ordered, seen := 0, map[uint64]bool{}
	for _, r := range rules[k] {
		if !r.allows(n) {
			continue
		}
		s, c := r.build(n, root, nearby(n, DefaultLinks)), contract(k, root)
		if r.canonical() {
			c = c.Canonical()
			ordered++
		}
		if err := schedule.Check(s, c); err != nil {
			t.Errorf("%v, %d ranks, root %d, %s: %v", k, n, root, r.name, err)
		}
		if s.Algorithm() != r.name {
			t.Errorf("%v: %s is known as %s", k, s.Algorithm(), r.name)
		}
		if k != KindAllReduce && k != KindAllReduceCoded && k != KindReduce && k != KindBroadcast && k != KindBarrier && s.Chunks != n {
			t.Errorf("%v, %s: %d chunks of %d ranks", k, r.name, s.Chunks, n)
		}
		id := uint64(s.Chunks)<<32 | uint64(s.Digest())
		seen[id] = true
	}
	if len(seen) == 0 || ordered == 0 {
		t.Errorf("%v, %d ranks: %d schedules, %d of them canonical", k, n, len(seen), ordered)
	}
}

// Every operation that can has a schedule of few rounds and one of few bytes, and
// in deterministic groups too.
func TestBoundByLatencyAndByBytes(t *testing.T) {
	const n = 16
	for _, k := range []Kind{KindAllReduce, KindReduceScatter, KindAllGather, KindReduce, KindBroadcast, KindGather, KindScatter, KindAllToAll} {
		for _, deterministic := range []bool{false, true} {
			var p plans
			p.init(n, 0, Config{Deterministic: deterministic, Links: DefaultLinks})
			rounds, bytes := 1<<30, 1<<30
			for _, r := range rules[k] {
				if !r.allows(n) || deterministic && !r.canonical() {
					continue
				}
				s := r.build(n, 0, nearby(n, DefaultLinks))
				rounds, bytes = min(rounds, len(s.Rounds)), min(bytes, busiest(s))
			}
			if rounds > 4 || bytes > 2*64 { // lg n, and twice the vector: of 64 parts
				t.Errorf("%v, deterministic %v: %d rounds, %d of 64 parts", k, deterministic, rounds, bytes)
			}
		}
	}
}

// busiest is what the busiest rank sends, in sixty-fourths of the vector.
func busiest(s schedule.Schedule) (most int) {
	sent := make([]int, s.Ranks)
	for _, round := range s.Rounds {
		for _, m := range round {
			sent[m.From] += m.N
			most = max(most, sent[m.From])
		}
	}
	return most * 64 / s.Chunks
}

// Small is bound by latency, large by bytes, and what would be held too much is
// not taken by itself.
func TestChoice(t *testing.T) {
	for _, c := range []struct {
		kind          Kind
		n             int
		bytes         int64
		deterministic bool
		want          string
	}{
		{KindAllReduce, 5, 8, false, "one-shot"},
		{KindAllReduce, 64, 8, false, "doubling"},
		{KindAllReduce, 64, 8, true, "doubling"},
		{KindAllReduce, 5, 512 << 10, false, "direct"},
		{KindAllReduce, 5, 64 << 20, false, "bruck"},
		{KindAllReduce, 4, 64 << 20, true, "halving"},
		{KindAllReduce, 8, 64 << 20, false, "halving"},
		{KindAllReduce, 5, 64 << 20, true, "cascade"},
		{KindReduceScatter, 6, 64 << 20, true, "cascade"},
		{KindBroadcast, 16, 8, false, "binomial"},
		{KindGather, 4, 8, false, "direct"},
		{KindGather, 64, 8, false, "binomial"},
		{KindAllToAll, 64, 64 * 4, false, "bruck"},
	} {
		var p plans
		p.init(c.n, 0, Config{Links: DefaultLinks, Deterministic: c.deterministic})
		got, err := p.choose(c.kind, 0, c.bytes)
		if err != nil || got.name != c.want {
			t.Errorf("%v among %d, %d bytes: %s, want %s (%v)", c.kind, c.n, c.bytes, got.name, c.want, err)
		}
	}
}

// What is encoded goes in one shot where the floats would, and not because it is less; but what
// is named counts.
func TestCodedChoice(t *testing.T) {
	for _, c := range []struct {
		algorithm      string
		bytes, encoded int64
		want           string
	}{
		{"", 16 << 10, 4 << 10, "one-shot"},
		{"", 64 << 10, 16 << 10, "direct"},
		{"", 64, 128, "binomial"},
		{"ring", 16 << 10, 4 << 10, "ring"},
		{"one-shot", 64 << 20, 16 << 20, "one-shot"},
		{"all_reduce_coded=ring", 16 << 10, 4 << 10, "ring"},
		{"all_reduce_coded=one-shot", 64 << 10, 16 << 10, "one-shot"},
		{"all_reduce=one-shot", 64 << 20, 16 << 20, "halving"},
	} {
		var p plans
		p.init(4, 0, Config{Links: DefaultLinks, Algorithm: c.algorithm})
		got, err := p.coded(c.bytes, c.encoded)
		if err != nil || got.name != c.want {
			t.Errorf("%q, %d bytes, %d encoded: %v, want %s (%v)", c.algorithm, c.bytes, c.encoded, got, c.want, err)
		}
	}
}

// All ranks choose alike, whatever they chose before, and what is kept is bounded.
func TestChoicesAgree(t *testing.T) {
	var a, b plans
	a.init(6, 0, Config{Links: DefaultLinks})
	b.init(6, 5, Config{Links: DefaultLinks})
	for n := int64(0); n < 1<<22; n = n*3 + 1 {
		for _, k := range kinds() {
			p, err := a.choose(k, 2, n)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = b.choose(k, 1, n/2)
			q, err := b.choose(k, 2, n)
			if err != nil || p.digest != q.digest || p.lanes != q.lanes {
				t.Errorf("%v of %d bytes: %s on one rank, %s on another (%v)", k, n, p.name, q.name, err)
			}
		}
	}
	if len(a.known) > len(kinds())*23 {
		t.Errorf("%d plans kept", len(a.known))
	}
}

// What a group chooses is the first of the candidates that it may take.
func TestCandidatesAreTheChoice(t *testing.T) {
	for _, k := range kinds() {
		for _, bytes := range []int64{1 << 10, 1 << 22} {
			var p plans
			p.init(7, 3, Config{Links: DefaultLinks})
			got, err := p.choose(k, 1, bytes)
			all := Candidates(k, 7, 1, bytes, DefaultLinks)
			if err != nil || len(all) == 0 {
				t.Fatalf("%v: %v", k, err)
			}
			for i, c := range all {
				if c.Schedule.Algorithm() == got.name {
					break
				}
				if a := c.Schedule.Algorithm(); i > 0 && all[i-1].Price > c.Price || a != "direct" && a != "one-shot" {
					t.Errorf("%v of %d bytes: %s was chosen, not %s", k, bytes, got.name, a)
				}
			}
		}
	}
	if all := Candidates(KindSend, 4, 0, 1, DefaultLinks); all != nil {
		t.Errorf("a message has %d schedules", len(all))
	}
}

func TestAlgorithmNames(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"ring":                            "",
		"ring,broadcast=tree":             "",
		"all_reduce=ring, broadcast=tree": "",
		"rung":                            `"rung" of Config.Algorithm or PEERMESH_ALGO: no operation has "rung"`,
		"all_reduce=pairwise":             `all_reduce has no "pairwise": want one of binomial, bruck`,
		"allreduce=ring":                  `"allreduce" is no operation`,
		"ring,tree":                       `"ring" and "tree" for all operations`,
		"ring,":                           `no operation has ""`,
		"send=ring":                       `"send" is no operation`,
	} {
		_, err := parseAlgorithms(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestNamedAlgorithms(t *testing.T) {
	for _, c := range []struct {
		names         string
		deterministic bool
		kind          Kind
		want, says    string
	}{
		{names: "ring", kind: KindAllReduce, want: "ring"},
		{names: "ring", kind: KindBarrier, want: "one-shot"}, // by price
		{names: "all_reduce=tree", kind: KindAllReduce, want: "tree"},
		{names: "ring,all_reduce=doubling", kind: KindAllReduce, want: "doubling"},
		{names: "reduce_scatter=halving", kind: KindReduceScatter, says: `reduce_scatter among 5 ranks has no "halving"`},
		{names: "halving", kind: KindReduceScatter, want: "direct"},
		{names: "ring", deterministic: true, kind: KindAllReduce, want: "one-shot"},
		{names: "ring", deterministic: true, kind: KindAllGather, want: "ring"},
		{names: "all_reduce=ring", deterministic: true, kind: KindAllReduce, says: "deterministic"},
	} {
		var p plans
		p.init(5, 0, Config{Links: DefaultLinks, Algorithm: c.names, Deterministic: c.deterministic})
		got, err := p.choose(c.kind, 0, 8)
		if err != nil {
			got = new(plan)
		}
		if got.name != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q, %v: %s (%v), want %s %s", c.names, c.kind, got.name, err, c.want, c.says)
		}
	}
}

// The variable counts where Config.Algorithm is empty.
func TestAlgorithmVariable(t *testing.T) {
	t.Setenv(AlgorithmVariable, "all_reduce=tree")
	for config, want := range map[string]string{"": "all_reduce=tree", "ring": "ring"} {
		if g := NewGroup(memnet.New(1)[0], Config{Algorithm: config}); g.c.Algorithm != want {
			t.Errorf("%q: %q", config, g.c.Algorithm)
		}
	}
	t.Setenv(AlgorithmVariable, "trie")
	synctest.Test(t, func(t *testing.T) {
		err := NewGroup(memnet.New(1)[0], Config{}).Barrier(t.Context()).Wait()
		if err == nil || !strings.Contains(err.Error(), AlgorithmVariable) || !strings.Contains(err.Error(), `"trie"`) {
			t.Error(err)
		}
	})
}

// What the first call of its kind and size costs a group; the next ones look it up.
func BenchmarkFirstChoice(b *testing.B) {
	for _, n := range []int{4, 16, 64, 256} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			links := survey(n, machine{n, n, 2})
			for b.Loop() {
				var p plans
				p.init(n, 0, Config{Links: links})
				if _, err := p.choose(KindAllReduce, 0, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
