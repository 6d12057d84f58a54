package ops_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// A parity is a call and what torch.distributed made of it, rank by rank: a line
// of testdata/torch/golden.jsonl. generate.py, which wrote it, says what the
// fields are.
type parity struct {
	Call      string
	Ranks     int
	Group     []int
	DType, Op string
	Root      int
	Split     [][2][]int
	List      *bool
	Late      []int
	All       bool
	Steps     [][]string
	Batch     bool
	In, Out   []*string
	Place     []int
	Source    [][]int
	Error     []*string
	Tolerance float64
	Rule      string

	came atomic.Int64 // ranks, to a barrier
}

// lost is torch's error where another rank's arguments were wrong.
const lost = "connection lost"

// An outcome is what a call does on one rank here.
type outcome struct {
	rank   int
	out    string
	place  int
	source []int
	err    error
}

// after waits for a call that leaves its result in x.
func (o *outcome) after(w *ops.Work, x ...tensor.Tensor) { o.err, o.out = w.Wait(), encode(x...) }

// again waits for the same call in another form, which comes to the same.
func (o *outcome) again(w *ops.Work, x ...tensor.Tensor) {
	err, out := w.Wait(), encode(x...)
	if err != nil || out != o.out {
		o.err = fmt.Errorf("another form of the call leaves %q, error %v", out, err)
	}
}

// parities are the golden lines of each call.
func parities(t *testing.T) map[string][]*parity {
	f, err := os.Open("testdata/torch/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	all := make(map[string][]*parity)
	for lines.Scan() {
		c := new(parity)
		if err := json.Unmarshal(lines.Bytes(), c); err != nil {
			t.Fatal(err)
		}
		if c.Rule != "" && torchRules[c.Rule] == nil {
			t.Fatalf("no rule %q", c.Rule)
		}
		if c.Call != "" { // the first line is about the others
			all[c.Call] = append(all[c.Call], c)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Every call does what torch does, to the bit where arithmetic is exact, but for
// what a rule says.
func TestTorch(t *testing.T) {
	all := parities(t)
	for call := range torchCalls {
		if all[call] == nil {
			t.Errorf("the golden file has no %s", call)
		}
	}
	for call, cases := range all {
		t.Run(call, func(t *testing.T) {
			if torchCalls[call] == nil {
				t.Fatalf("%d cases of a call that is not made here", len(cases))
			}
			for _, c := range cases {
				var broken []error // told outside of the bubble, whose failure would be the last
				synctest.Test(t, func(*testing.T) { broken = c.try() })
				for r, err := range broken {
					if err != nil {
						t.Errorf("%s %s of %d, group %v, rank %d: %v", c.Op, c.DType, c.Ranks, c.Group, r, err)
					}
				}
			}
		})
	}
}

// try makes the call on every rank and says where what is agreed does not hold.
func (c *parity) try() []error {
	holds := agrees
	if c.Rule != "" {
		holds = torchRules[c.Rule]
	}
	return world(c.Ranks, ops.Config{}, func(g *ops.Group) error { return holds(c, c.play(g)) })
}

// play makes the call on this rank.
func (c *parity) play(g *ops.Group) *outcome {
	o := &outcome{rank: g.Rank()}
	if c.Group != nil {
		if g, o.err = g.Split(ctx, c.Group); o.err != nil {
			return o
		}
		o.place = g.Rank()
	}
	torchCalls[c.Call](c, g, o)
	if o.err == nil && (c.Rule == "counts agree" || text(at(c.Error, o.rank)) == lost) {
		// This rank's part was done, and right, before another's went wrong.
		time.Sleep(time.Second)
		if c.Call == "p2p" {
			o.err = g.Send(ctx, tensor.New(c.dtype(), 1), 1, 0)
		} else {
			o.err = g.Barrier(ctx).Wait()
		}
	}
	return o
}

// agrees says how an outcome differs from torch's.
func agrees(c *parity, o *outcome) error {
	if torch := at(c.Error, o.rank); torch != nil || o.err != nil {
		if torch == nil || o.err == nil {
			return fmt.Errorf("error %v, in torch %q", o.err, text(torch))
		}
		if c.inPlace() && o.out != *c.In[o.rank] {
			return fmt.Errorf("%q became %q, in spite of %w", *c.In[o.rank], o.out, o.err)
		}
		var told *ops.AbortedError
		return expect(*torch != lost || errors.As(o.err, &told), "error %v", o.err)
	}
	if c.Place != nil && o.place != c.Place[o.rank] {
		return fmt.Errorf("place %d, in torch %d", o.place, c.Place[o.rank])
	}
	if c.Source != nil && !slices.Equal(o.source, c.Source[o.rank]) {
		return fmt.Errorf("sources %v, in torch %v", o.source, c.Source[o.rank])
	}
	if want := at(c.Out, o.rank); want != nil && !c.near(o.out, *want) {
		return fmt.Errorf("left %q, in torch %q", o.out, *want)
	}
	if c.Call == "reduce" && o.rank != c.Root && o.out != *c.In[o.rank] {
		return fmt.Errorf("%q became %q, far from the root", *c.In[o.rank], o.out)
	}
	return nil
}

// near reports whether two texts are the same elements, or as near as rounding
// in another order leaves them.
func (c *parity) near(got, want string) bool {
	if c.Tolerance == 0 {
		return got == want
	}
	x, y := values(c.dtype(), got), values(c.dtype(), want)
	return slices.EqualFunc(x, y, func(x, y float64) bool { return math.Abs(x-y) <= c.Tolerance })
}

// torchRules are where we do other than torch on purpose. Each says how an outcome
// breaks the rule.
var torchRules = map[string]func(c *parity, o *outcome) error{
	// torch leaves partial sums with ranks that are not the root.
	"others keep theirs": func(c *parity, o *outcome) error {
		if o.rank == c.Root {
			return agrees(c, o)
		}
		return expect(o.err == nil && o.out == *c.In[o.rank] && o.out != *c.Out[o.rank], "%+v", o)
	},
	// In torch it depends on where the NaN is.
	"NaN wins": func(c *parity, o *outcome) error {
		for i, v := range values(c.dtype(), o.out) {
			nan := slices.ContainsFunc(c.In, func(in *string) bool { return math.IsNaN(values(c.dtype(), *in)[i]) })
			if math.IsNaN(v) != nan {
				return fmt.Errorf("element %d is %v", i, v)
			}
		}
		return expect(o.err == nil && o.out != *c.Out[o.rank], "%+v", o)
	},
	// torch divides by zero where all_gather has nothing to gather.
	"nothing is no trouble": func(c *parity, o *outcome) error {
		return expect(o.err == nil && o.out == "", "%+v", o)
	},
	// torch fills a part, or dies.
	"counts agree": func(c *parity, o *outcome) error {
		var m *ops.MismatchError
		return expect(errors.As(o.err, &m) && m.Ours.Count != m.Theirs.Count, "error %v", o.err)
	},
	// torch dies.
	"no message to oneself": func(c *parity, o *outcome) error {
		return expect((o.err != nil) == (len(c.Steps[o.rank]) > 0), "error %v", o.err)
	},
	// In torch rank 0 knows, and the others know of rank 0 alone.
	"all name the missing": func(c *parity, o *outcome) error {
		if slices.Contains(c.Late, o.rank) {
			return o.err
		}
		if c.All {
			return missing(o.err, c.Late...)
		}
		return missing(o.err, c.Late[0])
	},
}

func (c *parity) inPlace() bool {
	return c.Call == "broadcast" || c.Call == "reduce" || c.Call == "all_reduce"
}

func expect(ok bool, format string, got ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("got "+format, got...)
}

func at(texts []*string, rank int) *string {
	if texts == nil {
		return nil
	}
	return texts[rank]
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// decode is the tensor of a text: each element's bits in hexadecimal.
func decode(t tensor.DType, s string) tensor.Tensor {
	elements := strings.Fields(s)
	x := tensor.New(t, len(elements))
	for i, e := range elements {
		p, err := hex.DecodeString(e)
		slices.Reverse(p)
		if _, werr := x.WriteAt(p, int64(i*t.Size())); err != nil || werr != nil {
			panic(fmt.Sprint(s, err, werr))
		}
	}
	return x
}

// encode is the text of tensors.
func encode(xs ...tensor.Tensor) string {
	var texts []string
	for _, x := range xs {
		var elements []string
		if x.Len() == 0 {
			texts = append(texts, "")
			continue
		}
		for p := range slices.Chunk(bytesOf(x), x.DType().Size()) {
			slices.Reverse(p)
			elements = append(elements, hex.EncodeToString(p))
		}
		texts = append(texts, strings.Join(elements, " "))
	}
	return strings.Join(texts, " | ")
}

// values are the floats of a text.
func values(t tensor.DType, s string) (v []float64) {
	for _, e := range strings.Fields(s) {
		bits, err := strconv.ParseUint(e, 16, 64)
		if err != nil {
			panic(err)
		}
		switch t {
		case tensor.Float16:
			v = append(v, float64(tensor.F16(bits).Float32()))
		case tensor.Float32:
			v = append(v, float64(math.Float32frombits(uint32(bits))))
		default:
			v = append(v, math.Float64frombits(bits))
		}
	}
	return v
}
