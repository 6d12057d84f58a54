package schedule

import (
	"cmp"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden are the schedules whose text is kept under testdata, to be read by
// people and compared by the test.
func golden() map[string]Schedule {
	return map[string]Schedule{
		"all-reduce-ring-3":    AllReduce(Ring(3)),
		"all-reduce-halving-4": AllReduce(Halving(4)),
		"all-reduce-halving-6": AllReduce(Halving(6)),
		"doubling-5":           Doubling(5),
		"doubling-8":           Doubling(8),
		"binomial-6":           Binomial(6),
		"broadcast-6-root-2":   BinomialTo(6, 2).Reverse(),
		"binomial-gather-6":    BinomialGather(6),
		"gather-6-root-4":      BinomialGather(6).Rotate(4),
		"broadcast-ring-4":     Broadcast(Ring(4), 1),
		"reduce-cascade-3":     Reduce(Cascade(3), 2),
		"cascade-4":            Cascade(4),
		"cascade-5":            Cascade(5),
		"bruck-5":              Bruck(5),
		"bruck-all-to-all-6":   BruckAllToAll(6),
		"direct-3":             AllReduce(Direct(3)),
		"one-shot-4":           OneShot(4),
		"tree-6":               Tree(6, 4),
		"pairwise-4":           Pairwise(4),
		"dissemination-5":      Dissemination(5),
		"ring-11":              Ring(11),
		"cycle-3":              Cycle(3),
		"hierarchical-7": Hierarchical([][]int{{0, 1, 2}, {3, 4}, {5, 6}},
			func(n int) Schedule { return AllReduce(Ring(n)) }),
		"two-level-7": Hosts{{0, 1}, {2, 3}, {4, 5, 6}}.AllReduce(2, Bruck, func(n int) Schedule { return AllReduce(Bruck(n)) }),
		"alone":       AllReduce(Ring(1)),
	}
}

func TestGolden(t *testing.T) {
	for name, s := range golden() {
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(s.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if s.String() != string(text) {
			t.Errorf("%s prints as\n%vwant\n%s", name, s, text)
		}
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != len(golden()) {
		t.Errorf("%d golden files for %d schedules: %v", len(files), len(golden()), err)
	}
}

func TestParseIsTheInverseOfString(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 13} {
		for _, p := range append(basics(n), at(n, n-1)...) {
			got, err := Parse(p.s.String())
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != p.s.Name || got.Digest() != p.s.Digest() || got.String() != p.s.String() {
				t.Errorf("got %vwant %v", got, p.s)
			}
		}
	}
	odd := Schedule{Name: "a: b: 3 ranks, 2 chunks", Ranks: 2, Chunks: 4, Rounds: []Round{
		nil, {{From: 1, To: 0, Src: 0, Dst: 2, N: 2, Reduce: true}}, nil}}
	if got, err := Parse(odd.String()); err != nil || !reflect.DeepEqual(got, odd) {
		t.Errorf("%v: got %#v\nwant %#v", err, got, odd)
	}
}

func TestParseAcceptsSpaces(t *testing.T) {
	got, err := Parse("x: 2 ranks, 2 chunks\n0 0→1 [0:1]→[1:2]\n\t1   1→0   [0:2]+ ")
	want := "x: 2 ranks, 2 chunks\n  0   0→1 [0]→[1]\n  1   1→0 [0:2]+\n"
	if err != nil || got.String() != want {
		t.Errorf("%v: %v", err, got)
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "x: 2 ranks, 2 chunks\n"
	for text, want := range map[string]string{
		"":                                       "no colon",
		"x 2 ranks, 2 chunks":                    "no colon",
		"x: 2 ranks":                             "want \"name",
		"x: 2 ranks; 2 chunks":                   "want \"name",
		"x: -2 ranks, 2 chunks":                  "no number",
		"x: 2 ranks, +2 chunks":                  "no number",
		"x: 2 ranks, 0x2 chunks":                 "no number",
		"x: 2147483648 ranks, 2 chunks":          "no number",
		"x: 0 ranks, 2 chunks":                   "at least one",
		"x: 2 ranks, 0 chunks":                   "at least one",
		"x: 4194304 ranks, 2 chunks":             "at most",
		"x: 2000000000 ranks, 2000000000 chunks": "at most",
		head + "1 0→1 [0]":                       "want round 0",
		head + "\n0 0→1 [0]":                     "line 2: ends where the number should be",
		head + "0 0→1 [0]\n0 0→1 [0]":            "line 3: \"0\": want round 1",
		head + "0 0→1":                           "ends where the chunks should be",
		head + "0 0-1 [0]":                       "want from→to",
		head + "0 a→1 [0]":                       "no number",
		head + "0 0→ [0]":                        "no number",
		head + "0 0→1 0":                         "brackets",
		head + "0 0→1 [0":                        "brackets",
		head + "0 0→1 [0]-":                      "brackets",
		head + "0 0→1 [0]→":                      "brackets",
		head + "0 0→1 []":                        "no number",
		head + "0 0→1 [0:]":                      "no number",
		head + "0 0→1 [1:1]":                     "no chunks from 1 to 1",
		head + "0 0→1 [1:0]":                     "no chunks from 1 to 0",
		head + "0 0→1 [0:2]→[0]":                 "2 chunks leave, 1 land",
		head + "0 0→2 [0]":                       "no rank 2",
		head + "0 1→1 [0]":                       "sends to itself",
		head + "0 0→1 [0:3]":                     "outside",
		head + "0 0→1 [2]→[0]":                   "outside",
		strings.Repeat("x", MaxText+1):           "bytes of text",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "schedule: ") {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func TestDigest(t *testing.T) {
	s := AllReduce(Halving(6))
	renamed := s
	renamed.Name = "other"
	if s.Digest() != renamed.Digest() {
		t.Error("the name counts")
	}
	seen := map[uint32]string{}
	add := func(what string, s Schedule) {
		if other, ok := seen[s.Digest()]; ok {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[s.Digest()] = what
	}
	add("itself", s)
	change := func(what string, f func(*Schedule)) {
		c := clone(s)
		f(&c)
		add(what, c)
	}
	change("ranks", func(c *Schedule) { c.Ranks++ })
	change("chunks", func(c *Schedule) { c.Chunks++ })
	change("a round more", func(c *Schedule) { c.Rounds = append(c.Rounds, nil) })
	change("from", func(c *Schedule) { c.Rounds[1][0].From++ })
	change("to", func(c *Schedule) { c.Rounds[1][0].To++ })
	change("src", func(c *Schedule) { c.Rounds[1][0].Src++ })
	change("dst", func(c *Schedule) { c.Rounds[1][0].Dst++ })
	change("n", func(c *Schedule) { c.Rounds[1][0].N++ })
	change("reduce", func(c *Schedule) { c.Rounds[1][0].Reduce = false })
	change("order", func(c *Schedule) { c.Rounds[1][0], c.Rounds[1][1] = c.Rounds[1][1], c.Rounds[1][0] })
	change("a move into the next round", func(c *Schedule) {
		last := len(c.Rounds[0]) - 1
		c.Rounds[1] = append(Round{c.Rounds[0][last]}, c.Rounds[1]...)
		c.Rounds[0] = c.Rounds[0][:last]
	})
	// The digest is on the wire: ranks of different builds compare it.
	if got, want := Ring(3).Digest(), uint32(0xe18dc6e1); got != want {
		t.Errorf("digest of a ring of three is %#x, want %#x", got, want)
	}
}

// Whatever Parse accepts prints as itself, and Check may be asked about it: it
// does not hang, and what it accepts adds up.
func FuzzParse(f *testing.F) {
	for _, s := range golden() {
		f.Add(s.String())
	}
	f.Add("x: 3 ranks, 2 chunks\n0\n1 0→2 [0:2]→[0:2]+")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil || again.String() != s.String() || again.Digest() != s.Digest() || again.Name != s.Name {
			t.Fatalf("%v: %q became %q", err, s, again)
		}
		if s.Ranks*s.Chunks > 4096 {
			return
		}
		for _, c := range []Contract{AllReduceContract, ReduceContract(0), AllReduceContract.Canonical()} {
			if Check(s, c) != nil {
				continue
			}
			if err := cmp.Or(sums(s, c, 9), inexact(s, c, 9)); err != nil {
				t.Fatalf("accepted as %v, but %v:\n%v", c, err, s)
			}
		}
		if err := WriteSVG(io.Discard, s); err != nil {
			t.Fatalf("%v:\n%v", err, s)
		}
	})
}
