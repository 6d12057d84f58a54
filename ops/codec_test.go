package ops_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// A bytewise codec makes a byte of each element of a block, in units that a float32
// ahead of them gives: the greatest has 127.
type bytewise int

func (b bytewise) Name() string      { return fmt.Sprintf("bytewise %d", int(b)) }
func (b bytewise) Block() (n, m int) { return int(b), int(b) + 4 }

func (b bytewise) Encode32(dst []byte, src []float32) { toBytes(int(b), dst, src) }
func (b bytewise) Encode64(dst []byte, src []float64) { toBytes(int(b), dst, src) }
func (b bytewise) Decode32(dst []float32, src []byte) { fromBytes(int(b), dst, src) }
func (b bytewise) Decode64(dst []float64, src []byte) { fromBytes(int(b), dst, src) }

func toBytes[T float32 | float64](per int, dst []byte, src []T) {
	for block := range slices.Chunk(src, per) {
		most := 0.
		for _, v := range block {
			most = max(most, math.Abs(float64(v)))
		}
		unit := float32(most / 127)
		binary.LittleEndian.PutUint32(dst, math.Float32bits(unit))
		clear(dst[4 : 4+per])
		for i, v := range block {
			if unit > 0 {
				dst[4+i] = byte(int8(math.Round(float64(v) / float64(unit))))
			}
		}
		dst = dst[4+per:]
	}
}

func fromBytes[T float32 | float64](per int, dst []T, src []byte) {
	for block := range slices.Chunk(dst, per) {
		unit := math.Float32frombits(binary.LittleEndian.Uint32(src))
		for i := range block {
			block[i] = T(int8(src[4+i])) * T(unit)
		}
		src = src[4+per:]
	}
}

// floats are the elements of a tensor as float64.
func floats(x tensor.Tensor) (all []float64) {
	single, _ := tensor.Data[float32](x)
	for _, v := range single {
		all = append(all, float64(v))
	}
	double, _ := tensor.Data[float64](x)
	return append(all, double...)
}

// Whatever the schedule, lanes, type, count and block: all ranks end with the same bits;
// what they have and what all have lost is the exact sum; no rank has lost more of an
// element than half the unit of what it encoded.
func TestCodedSumsAreExactButForWhatIsLost(t *testing.T) {
	for n := 2; n <= 6; n++ {
		for k, c := range ops.Candidates(ops.KindAllReduceCoded, n, 0, 1<<12, islands{n, 2}) {
			for _, lanes := range []int{1, 3} {
				count, block := []int{1, 0, 700, 4099}[(n+k+lanes)%4], []int{1, 7, 64}[(n+k)%3]
				dtype := []tensor.DType{tensor.Float32, tensor.Float64}[k%2]
				config := ops.Config{Algorithm: c.Schedule.Algorithm(), Lanes: lanes, Links: islands{n, 2}}
				t.Run(fmt.Sprintf("%s of %d %d lanes %d×%v by %d", c.Schedule.Algorithm(), n, lanes, count, dtype, block), func(t *testing.T) {
					codedSum(t, n, config, count, dtype, bytewise(block))
				})
			}
		}
	}
}

func codedSum(t *testing.T, n int, config ops.Config, count int, dtype tensor.DType, codec bytewise) {
	xs, lost, exact := make([]tensor.Tensor, n), make([]tensor.Tensor, n), make([]float64, count)
	most := 0.
	for r := range xs {
		xs[r], lost[r] = filled(dtype, count, uint64(r), false), filled(dtype, count, 99, false)
		for i, v := range floats(xs[r]) {
			exact[i] += v
			most = max(most, math.Abs(v))
		}
	}
	check(t, world(n, config, func(g *ops.Group) error {
		return g.AllReduceCoded(ctx, xs[g.Rank()], tensor.Sum, ops.Coding{Codec: codec, Lost: lost[g.Rank()]}).Wait()
	}))
	bound := float64(n) * most / 254 * 1.1 // a partial sum of n, and what was added by roundings
	for r := range xs {
		if string(bytesOf(xs[r])) != string(bytesOf(xs[0])) {
			t.Fatalf("ranks 0 and %d differ", r)
		}
		for i, v := range floats(lost[r]) {
			if exact[i] -= v; math.Abs(v) > bound {
				t.Fatalf("rank %d has lost %v of element %d: at most %v", r, v, i, bound)
			}
		}
	}
	for i, v := range floats(xs[0]) {
		if math.Abs(v-exact[i]) > 1e-5 {
			t.Fatalf("element %d is %v, want %v, with what was lost", i, v, exact[i])
		}
	}
}

// A ring of n sends 2(n−1) chunks of whole blocks a rank, and not a byte more.
func TestCodedBytesOnTheWire(t *testing.T) {
	const count, block = 10_007, 64
	for _, n := range []int{2, 3, 5} {
		blocks := (count + block - 1) / block
		chunk := func(c int) int64 { c %= n; return int64((c+1)*blocks/n-c*blocks/n) * (block + 4) }
		total := ops.EncodedBytes(bytewise(block), count)
		if total != int64(blocks)*(block+4) {
			t.Fatalf("%d bytes for %d elements", total, count)
		}
		for _, lanes := range []int{1, 4} {
			for r, c := range counted(t, n, ops.Config{Algorithm: "ring", Lanes: lanes}, func(g *ops.Group) error {
				return g.AllReduceCoded(ctx, tensor.New(tensor.Float32, count), tensor.Sum, ops.Coding{Codec: bytewise(block)}).Wait()
			}) {
				if want := 2*total - chunk(r) - chunk(r+n-1); c.bytes != want || len(c.rounds) != 2*(n-1) {
					t.Errorf("rank %d of %d sent %d bytes in %d rounds, want %d in %d", r, n, c.bytes, len(c.rounds), want, 2*(n-1))
				}
			}
		}
	}
}

// A chopper is a transport whose payloads come in pieces of 16 to 16·most bytes, as they
// may: ends of blocks are anywhere in them.
type chopper struct {
	ops.Transport
	most int
}

func (c chopper) Recv(ctx context.Context, from int, lane uint64, accept func(ops.Tag, int64) error, land func([]byte) error) error {
	rng := rand.New(rand.NewPCG(uint64(from), lane))
	return c.Transport.Recv(ctx, from, lane, accept, func(p []byte) error {
		for len(p) > 0 {
			k := min(16*(1+rng.IntN(c.most)), len(p))
			if err := land(p[:k]); err != nil {
				return err
			}
			p = p[k:]
		}
		return nil
	})
}

// Blocks come in pieces, and land when they are whole.
func TestCodedPieces(t *testing.T) {
	const n, count = 3, 3000
	for _, config := range []ops.Config{{Algorithm: "ring"}, {Algorithm: "direct", Lanes: 2}, {Algorithm: "halving", Lanes: 3}} {
		for _, block := range []int{1, 5, 64, 1000} {
			var got [2][]byte
			for i, most := range []int{1, 1 << 20} {
				groups := make([]*ops.Group, n)
				for r, w := range memnet.New(n) {
					groups[r] = ops.NewGroup(chopper{w, most}, config)
				}
				check(t, each(groups, func(g *ops.Group) error {
					x := filled(tensor.Float32, count, uint64(g.Rank()), false)
					err := g.AllReduceCoded(ctx, x, tensor.Sum, ops.Coding{Codec: bytewise(block)}).Wait()
					if g.Rank() == 1 {
						got[i] = bytesOf(x)
					}
					return err
				}))
			}
			if string(got[0]) != string(got[1]) {
				t.Errorf("%+v, blocks of %d: pieces change the sum", config, block)
			}
		}
	}
}

// What an op does before and after the fold counts for coded sums too; ops that do not
// add are exact where their results are on the grid; one rank loses nothing.
func TestCodedOps(t *testing.T) {
	const n = 3
	for _, c := range []struct {
		op   tensor.Op
		want float64
	}{{tensor.Sum, 6 * 127}, {tensor.Avg, 2 * 127}, {tensor.PremulSum(0.5), 3 * 127}, {tensor.Max, 3 * 127}, {tensor.Min, 127}} {
		check(t, world(n, ops.Config{}, func(g *ops.Group) error {
			x := []float64{127 * float64(g.Rank()+1)}
			err := g.AllReduceCoded(ctx, tensor.Of(x), c.op, ops.Coding{Codec: bytewise(1)}).Wait()
			if err == nil && math.Abs(x[0]-c.want) > 1e-9 {
				err = fmt.Errorf("%v is %v, want %v", c.op, x[0], c.want)
			}
			return err
		}))
	}
	check(t, world(1, ops.Config{}, func(g *ops.Group) error {
		x, lost := []float32{1, 0.001}, []float32{7, 7}
		err := g.AllReduceCoded(ctx, tensor.Of(x), tensor.Avg, ops.Coding{Codec: bytewise(2), Lost: tensor.Of(lost)}).Wait()
		if err == nil && (!slices.Equal(x, []float32{1, 0.001}) || !slices.Equal(lost, []float32{0, 0})) {
			err = fmt.Errorf("alone: %v, lost %v", x, lost)
		}
		return err
	}))
}

// Several in flight, of several groups, are as one after the other.
func TestCodedWorksInFlight(t *testing.T) {
	const n, many = 4, 6
	check(t, world(n, ops.Config{}, func(g *ops.Group) error {
		half, err := g.SplitBy(ctx, g.Rank()%2, 0)
		if err != nil {
			return err
		}
		var works []*ops.Work
		var xs [][]float32
		for i := range many {
			x := slices.Repeat([]float32{float32(i)}, 5000)
			on := []*ops.Group{g, half}[i%2]
			xs, works = append(xs, x), append(works, on.AllReduceCoded(ctx, tensor.Of(x), tensor.Sum, ops.Coding{Codec: bytewise(32)}))
		}
		for i, w := range works {
			if err := w.Wait(); err != nil {
				return err
			}
			if want := float64(i * []int{n, n / 2}[i%2]); math.Abs(float64(xs[i][4999])-want) > 1e-5 {
				return fmt.Errorf("sum %d is %v, want %v", i, xs[i][4999], want)
			}
		}
		return nil
	}))
}

// Ranks with other codecs, or with none, learn of each other.
func TestCodecsMustAgree(t *testing.T) {
	for name, odd := range map[string]func(g *ops.Group, x tensor.Tensor) *ops.Work{
		"another block": func(g *ops.Group, x tensor.Tensor) *ops.Work {
			return g.AllReduceCoded(ctx, x, tensor.Sum, ops.Coding{Codec: bytewise(32)})
		},
		"no codec": func(g *ops.Group, x tensor.Tensor) *ops.Work { return g.AllReduce(ctx, x, tensor.Sum) },
	} {
		for r, err := range world(3, ops.Config{Timeout: 20 * time.Second}, func(g *ops.Group) error {
			x := tensor.New(tensor.Float32, 1000)
			if g.Rank() == 1 {
				return odd(g, x).Wait()
			}
			return g.AllReduceCoded(ctx, x, tensor.Sum, ops.Coding{Codec: bytewise(31)}).Wait()
		}) {
			var mismatch *ops.MismatchError
			if !errors.As(err, &mismatch) || r != 1 && mismatch.Rank != 1 {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
	}
}

// What cannot be encoded is refused before anything moves.
func TestCodedArguments(t *testing.T) {
	f32, f64 := tensor.New(tensor.Float32, 4), tensor.New(tensor.Float64, 4)
	biggest := tensor.Func("biggest", func(a, b float32) float32 { return max(a, b) })
	for _, c := range []struct {
		x      tensor.Tensor
		op     tensor.Op
		coding ops.Coding
		want   string
	}{
		{f32, tensor.Sum, ops.Coding{}, "no codec"},
		{tensor.Tensor{}, tensor.Sum, ops.Coding{Codec: bytewise(4)}, "zero Tensor"},
		{tensor.New(tensor.Int32, 4), tensor.Sum, ops.Coding{Codec: bytewise(4)}, "float32 or float64"},
		{f32, tensor.Sum, ops.Coding{Codec: bytewise(0)}, "4 bytes of 0 elements"},
		{f32, tensor.Sum, ops.Coding{Codec: bytewise(ops.MaxBlock + 1)}, "want 1 to"},
		{f32, biggest, ops.Coding{Codec: bytewise(4)}, "package tensor's own"},
		{f32, tensor.Sum, ops.Coding{Codec: bytewise(4), Lost: f64}, "Lost is float64[4]"},
		{f32, tensor.Sum, ops.Coding{Codec: bytewise(4), Lost: f32.Slice(0, 3)}, "Lost is float32[3]"},
		{f32, tensor.Max, ops.Coding{Codec: bytewise(4), Lost: tensor.New(tensor.Float32, 4)}, "for what adds"},
	} {
		check(t, world(1, ops.Config{}, func(g *ops.Group) error {
			if err := g.AllReduceCoded(ctx, c.x, c.op, c.coding).Wait(); err == nil || !strings.Contains(err.Error(), c.want) {
				return fmt.Errorf("%v, want %q", err, c.want)
			}
			return g.Barrier(ctx).Wait()
		}))
	}
}

// Of steady state nothing is made anew for a message or a block, but only, for a call,
// its Work and what holds it together.
func TestCodedAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's pools drop what they are given")
	}
	const runs = 20
	for _, s := range []string{"ring", "direct"} {
		var per [2]float64
		for i, count := range []int{1 << 12, 1 << 18} {
			x := []tensor.Tensor{tensor.New(tensor.Float32, count), tensor.New(tensor.Float32, count), tensor.New(tensor.Float32, count)}
			check(t, world(3, ops.Config{Algorithm: s, Lanes: 1}, func(g *ops.Group) (failed error) {
				step := func() {
					failed = errors.Join(failed, g.AllReduceCoded(ctx, x[g.Rank()], tensor.Sum, ops.Coding{Codec: bytewise(64)}).Wait())
				}
				for range 3 {
					step()
				}
				if g.Rank() == 0 {
					per[i] = testing.AllocsPerRun(runs, step) / 3
					return failed
				}
				for range runs + 1 {
					step()
				}
				return failed
			}))
		}
		if per[0] > 16 || per[1] > per[0]+4 {
			t.Errorf("%s: %.1f allocations a rank for 64 blocks, %.1f for 4096", s, per[0], per[1])
		}
	}
}

var _ schedule.Links = islands{}

func BenchmarkAllReduceCoded(b *testing.B) {
	const n, count = 2, 1 << 20
	b.SetBytes(4 * count)
	for r, err := range on(memnet.New(n), ops.Config{}, func(g *ops.Group) error {
		x := tensor.New(tensor.Float32, count)
		for range b.N {
			if err := g.AllReduceCoded(ctx, x, tensor.Sum, ops.Coding{Codec: bytewise(256)}).Wait(); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			b.Errorf("rank %d: %v", r, err)
		}
	}
}
