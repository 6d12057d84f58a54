package compress

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"peermesh/ops"
	"peermesh/trainer/internal/finite"
)

var codecs = []ops.Codec{Int8(0), Int8(7), Int4(0), Int4(5), OneBit(0), OneBit(13), Float16{}, BFloat16{}}

var nan, inf = math.NaN(), math.Inf(1)

// What is on the wire, byte by byte; 42fe0000 is 127, 40e00000 is 7.
func TestGoldenBytes(t *testing.T) {
	for _, c := range []struct {
		codec ops.Codec
		x     []float64
		want  string
	}{
		{Int8(4), []float64{127, -127, 0.5, 1.5}, "0000803f" + "7f810002"}, // halves go to even
		{Int8(4), []float64{-254, 3}, "00000040" + "81020000"},             // 3/2 is 2, and two are missing
		{Int8(2), []float64{0, 0, 127, 1}, "00000000" + "0000" + "0000803f" + "7f01"},
		{Int8(2), []float64{1e-40, 0}, "00000000" + "0000"},
		{Int4(4), []float64{7, -7, 1, -1}, "0000803f" + "97f1"},
		{Int4(4), []float64{14, 2, -5.1}, "00000040" + "170d"},
		{Int4(3), []float64{0, 0, 7, -3.5}, "0000803f" + "0007" + "0000003f" + "0900"},
		{OneBit(8), []float64{1, -2, 3, -4, 0, 0, 0, 0}, "0000a03f" + "0a"}, // 1.25
		{OneBit(9), []float64{-1, -1, -1, -1, -1, -1, -1, -1, -1}, "0000803f" + "ff01"},
	} {
		_, size := c.codec.Block()
		n := int(ops.EncodedBytes(c.codec, len(c.x)))
		for _, got := range [][]byte{encode64(c.codec, c.x), encode32(c.codec, c.x)} {
			if hex.EncodeToString(got) != c.want || len(got) != n || n%size != 0 {
				t.Errorf("%s of %v is %x, want %s", c.codec.Name(), c.x, got, c.want)
			}
		}
	}
	if got := encode32(Float16{}, []float64{1, -2}); hex.EncodeToString(got[:6]) != "003c00c00000" || len(got) != 128 {
		t.Errorf("float16: %x", got)
	}
	if got := encode64(BFloat16{}, []float64{1, -2}); hex.EncodeToString(got[:6]) != "803f00c00000" || len(got) != 128 {
		t.Errorf("bfloat16: %x", got)
	}
}

func encode64(c ops.Codec, x []float64) []byte {
	p := garbage(int(ops.EncodedBytes(c, len(x))))
	c.Encode64(p, x)
	return p
}

func encode32(c ops.Codec, x []float64) []byte {
	p := garbage(int(ops.EncodedBytes(c, len(x))))
	c.Encode32(p, singles(x))
	return p
}

func garbage(n int) []byte { return slices.Repeat([]byte{0xA5}, n) }

func singles(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// normals are n numbers of a normal distribution, times an integer power of 10.
func normals(n int, seed uint64, scale float64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64() * scale
	}
	return x
}

// No element is further off than its codec says, of the greatest of its block.
func TestErrorBounds(t *testing.T) {
	for _, c := range codecs {
		per, _ := c.Block()
		for _, n := range []int{1, per - 1, per, per + 1, 3*per + 2} {
			for _, scale := range []float64{1e-30, 1, 1e4} {
				x := normals(max(n, 1), uint64(n), scale)
				if c == ops.Codec(Float16{}) && scale < 1 {
					continue // below its range
				}
				single, double := make([]float32, len(x)), make([]float64, len(x))
				c.Decode32(single, encode32(c, x))
				c.Decode64(double, encode64(c, x))
				for i, v := range x {
					block := x[i/per*per : min((i/per+1)*per, len(x))]
					limit := bound(c, block, v)
					if math.Abs(double[i]-v) > limit || math.Abs(float64(single[i])-v) > limit {
						t.Fatalf("%s: element %d of %d, %v, became %v and %v: at most %v off", c.Name(), i, n, v, single[i], double[i], limit)
					}
				}
			}
		}
	}
}

// bound is how far v may be off in a block.
func bound(c ops.Codec, block []float64, v float64) float64 {
	most, sum := 0., 0.
	for _, w := range block {
		most, sum = max(most, math.Abs(w)), sum+math.Abs(w)
	}
	const slack = 1 + 1e-5
	switch c.(type) {
	case Int8:
		return most / 254 * slack
	case Int4:
		return most / 14 * slack
	case OneBit:
		return math.Abs(math.Abs(v)-sum/float64(len(block))) + 1e-5*most // the sign is right
	case Float16:
		return math.Abs(v)/2048*slack + 0x1p-25
	}
	return math.Abs(v) / 256 * slack
}

// What is no number is none on any rank: its whole block, so that who scales the loss
// sees it; and no other block.
func TestWhatIsNoNumberIsSeen(t *testing.T) {
	for _, c := range codecs {
		per, _ := c.Block()
		for _, bad := range []float64{nan, inf, -inf, -nan, 1e300} {
			x := normals(3*per, 1, 1)
			x[per] = bad
			y := make([]float64, len(x))
			c.Decode64(y, encode64(c, x))
			if y[per]-y[per] == 0 {
				t.Errorf("%s: %v became %v", c.Name(), bad, y[per])
			}
			if !finite.All(y[:per]) || !finite.All(y[2*per:]) {
				t.Errorf("%s: %v has spread to other blocks", c.Name(), bad)
			}
			if _, blocks := c.(interface{ per() int }); blocks && !math.IsNaN(y[2*per-1]) {
				t.Errorf("%s: beside %v there is %v", c.Name(), bad, y[2*per-1])
			}
		}
	}
}

// Encoding and decoding make nothing.
func TestCodecsAllocateNothing(t *testing.T) {
	for _, c := range codecs {
		x := singles(normals(4096, 1, 1))
		p := make([]byte, ops.EncodedBytes(c, len(x)))
		if n := testing.AllocsPerRun(10, func() { c.Encode32(p, x); c.Decode32(x, p) }); n > 0 {
			t.Errorf("%s: %v allocations", c.Name(), n)
		}
	}
}

// Codecs differ in name if in anything.
func TestNamesTellCodecsApart(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range codecs {
		if seen[c.Name()] {
			t.Errorf("two are called %s", c.Name())
		}
		seen[c.Name()] = true
	}
	if Int8(0).Name() != Int8(DefaultInt8Block).Name() {
		t.Error("the default is called otherwise than what it is")
	}
}

// Any bytes decode, to what is in range of their unit, or to no number.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x3f, 1, 2, 3}, uint16(3), uint8(1))
	f.Add(encode32(Int4(5), []float64{1, 2, 3, 4, 5, 6}), uint16(6), uint8(3))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, uint16(100), uint8(4))
	f.Fuzz(func(t *testing.T, p []byte, n uint16, which uint8) {
		c := codecs[int(which)%len(codecs)]
		p = append(p, make([]byte, max(0, int(ops.EncodedBytes(c, int(n)))-len(p)))...)
		single, double := make([]float32, n), make([]float64, n)
		c.Decode32(single, p)
		c.Decode64(double, p)
		per, size := c.Block()
		for i, v := range double {
			if s := single[i]; s != float32(v) && s == s {
				t.Fatalf("%s: element %d is %v as float32, %v as float64", c.Name(), i, s, v)
			}
			if _, blocks := c.(interface{ per() int }); blocks {
				if u := math.Abs(float64(unitOf(p[i/per*size:]))); math.Abs(v) > 128*u {
					t.Fatalf("%s: element %d is %v, of units of %v", c.Name(), i, v, u)
				}
			}
		}
	})
}

// Floats of either width encode to the same bytes, and so do those that kernels take and
// those that they do not: there are none for float64.
func FuzzEncode(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf}, uint8(100), uint8(0))
	f.Add([]byte{0, 0, 0xc0, 0x7f, 1, 0, 0x80, 0xff, 1, 2, 3, 4}, uint8(65), uint8(3))
	f.Add([]byte{0xff, 0xff, 0x7f, 0x7f, 1, 0, 0, 0}, uint8(255), uint8(1))
	f.Fuzz(func(t *testing.T, bits []byte, n, which uint8) {
		c := codecs[int(which)%len(codecs)]
		bits = append(bits, make([]byte, 4)...)
		x, y := make([]float32, 3*int(n)), make([]float64, 3*int(n))
		for i := range x {
			at := 4 * i % (len(bits) - 3) // not of whole elements, for more to follow from few
			x[i] = unitOf(bits[at:])
			y[i] = float64(x[i])
		}
		p, q := garbage(int(ops.EncodedBytes(c, len(x)))), garbage(int(ops.EncodedBytes(c, len(x))))
		c.Encode32(p, x)
		c.Encode64(q, y)
		if !bytes.Equal(p, q) {
			t.Errorf("%s: %x of float32, %x of float64", c.Name(), p, q)
		}
	})
}

func benchmarkCodecs(b *testing.B, f func(c ops.Codec, p []byte, x []float32)) {
	for _, c := range []ops.Codec{Int8(0), Int4(0), OneBit(0), Float16{}, BFloat16{}} {
		b.Run(c.Name(), func(b *testing.B) {
			x := singles(normals(1<<16, 1, 1))
			p := make([]byte, ops.EncodedBytes(c, len(x)))
			c.Encode32(p, x)
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				f(c, p, x)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	benchmarkCodecs(b, func(c ops.Codec, p []byte, x []float32) { c.Encode32(p, x) })
}

func BenchmarkDecode(b *testing.B) {
	benchmarkCodecs(b, func(c ops.Codec, p []byte, x []float32) { c.Decode32(x, p) })
}
