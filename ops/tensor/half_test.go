package tensor_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"peermesh/ops/tensor"
)

// A half is a 16-bit type under test, by its definition and by its methods.
type half struct {
	name               string
	exponent, fraction int // bits
	to                 func(float32) uint16
	from               func(uint16) float32
}

var halves = []half{
	{"float16", 5, 10,
		func(x float32) uint16 { return uint16(tensor.ToF16(x)) },
		func(h uint16) float32 { return tensor.F16(h).Float32() }},
	{"bfloat16", 8, 7,
		func(x float32) uint16 { return uint16(tensor.ToBF16(x)) },
		func(h uint16) float32 { return tensor.BF16(h).Float32() }},
}

func (f half) infinity() uint16 { return uint16(1<<f.exponent-1) << f.fraction }

// magnitudes are the values of all patterns without a sign up to infinity, whose
// place is taken by the power of two that would follow: from halfway there on,
// rounding gives it.
func (f half) magnitudes() []float64 {
	bias := 1<<(f.exponent-1) - 1
	var all []float64
	for h := range int(f.infinity()) + 1 {
		e, m := h>>f.fraction, float64(h%(1<<f.fraction))
		if e == 0 {
			all = append(all, math.Ldexp(m, 1-bias-f.fraction))
			continue
		}
		all = append(all, math.Ldexp(math.Ldexp(1, f.fraction)+m, e-bias-f.fraction))
	}
	return all
}

// nearest is the definition of rounding: of the two neighbours the nearer one,
// or the even. float64 has their sum, and twice x, without rounding.
func nearest(all []float64, x float64) uint16 {
	i, exact := slices.BinarySearch(all, x)
	switch {
	case exact:
		return uint16(i)
	case i == len(all):
		return uint16(i - 1)
	}
	if tie := all[i-1] + all[i]; 2*x < tie || 2*x == tie && i%2 == 1 {
		return uint16(i - 1)
	}
	return uint16(i)
}

func TestHalfValues(t *testing.T) {
	for _, f := range halves {
		all := f.magnitudes()
		for i := range 1 << 16 {
			h := uint16(i)
			got, sign, m := float64(f.from(h)), i>>15, h&0x7fff
			switch {
			case m > f.infinity():
				if !math.IsNaN(got) {
					t.Errorf("%s %#x is %v, want NaN", f.name, h, got)
				}
			case math.Signbit(got) != (sign == 1),
				m == f.infinity() && !math.IsInf(got, 0),
				m < f.infinity() && math.Abs(got) != all[m]:
				t.Errorf("%s %#x is %v, want %v", f.name, h, got, all[m])
			case f.to(float32(got)) != h:
				t.Errorf("%s %#x is %v and comes back as %#x", f.name, h, got, f.to(float32(got)))
			}
		}
	}
}

// TestHalfRounding tries, between any two neighbours, the tie and what lies
// next to it; next to the values themselves; and numbers at random.
func TestHalfRounding(t *testing.T) {
	for _, f := range halves {
		all := f.magnitudes()
		try := func(x float32) {
			for range 2 {
				want := nearest(all, math.Abs(float64(x)))
				if math.Signbit(float64(x)) {
					want |= 0x8000
				}
				if got := f.to(x); got != want {
					t.Errorf("%s of %v is %#x, want %#x", f.name, x, got, want)
				}
				x = -x
			}
		}
		around := func(x float32) {
			try(math.Nextafter32(x, 0))
			try(x)
			try(math.Nextafter32(x, float32(math.Inf(1))))
		}
		for i, x := range all[:len(all)-1] {
			if x > 0 {
				around(float32(x))
			}
			around(float32(x/2 + all[i+1]/2))
		}
		try(math.MaxFloat32)
		try(math.SmallestNonzeroFloat32)
		try(float32(math.Inf(1)))
		r := rand.New(rand.NewPCG(1, 1))
		for range 100_000 {
			if x := math.Float32frombits(r.Uint32()); x == x {
				try(x)
			}
		}
	}
}

// TestHalfNaN checks that a NaN stays one, whatever its payload: the bits that
// remain may all be 0, which would make an infinity.
func TestHalfNaN(t *testing.T) {
	for _, f := range halves {
		quiet := uint16(1) << (f.fraction - 1)
		for _, b := range []uint32{0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffc12345, 0x7fa00000} {
			h := f.to(math.Float32frombits(b))
			kept := uint16(b>>(23-f.fraction)) & (1<<f.fraction - 1)
			if want := uint16(b>>16)&0x8000 | f.infinity() | quiet | kept; h != want {
				t.Errorf("%s of the NaN %#x is %#x, want %#x", f.name, b, h, want)
			}
		}
	}
}

func TestHalfString(t *testing.T) {
	for want, got := range map[string]string{
		"1.5":           tensor.ToF16(1.5).String(),
		"65504":         tensor.ToF16(65519).String(),
		"+Inf":          tensor.ToF16(65520).String(),
		"0.099975586":   tensor.ToF16(.1).String(),
		"-0":            tensor.ToF16(float32(math.Copysign(0, -1))).String(),
		"0.100097656":   tensor.ToBF16(.1).String(),
		"NaN":           tensor.ToBF16(float32(math.NaN())).String(),
		"5.9604645e-08": tensor.F16(1).String(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestHalfSums shows what rounding once an addition means: from 2048 on, float16
// has no odd numbers, and ones added one at a time are lost.
func TestHalfSums(t *testing.T) {
	x := []tensor.F16{tensor.ToF16(2047)}
	one := tensor.Of([]tensor.F16{tensor.ToF16(1)})
	for range 10 {
		p, _ := one.View(0, 2)
		if err := tensor.Of(x).ReduceAt(p, 0, tensor.Sum); err != nil {
			t.Fatal(err)
		}
	}
	if x[0].Float32() != 2048 {
		t.Errorf("2047 and ten times 1 make %v", x[0])
	}
}

// FuzzHalf holds both conversions to the definition.
func FuzzHalf(f *testing.F) {
	for _, b := range []uint32{0, 1, 0x33000000, 0x33000001, 0x38800000, 0x387fffff, 0x477fefff, 0x477ff000, 0x7f7fffff, 0x7f800000, 0x7f800001} {
		f.Add(b)
		f.Add(b | 1<<31)
	}
	all := [][]float64{halves[0].magnitudes(), halves[1].magnitudes()}
	f.Fuzz(func(t *testing.T, b uint32) {
		x := math.Float32frombits(b)
		for i, f := range halves {
			h := f.to(x)
			if x != x {
				if back := f.from(h); back == back {
					t.Errorf("%s of NaN %#x is %#x", f.name, b, h)
				}
				continue
			}
			if want := nearest(all[i], math.Abs(float64(x))) | uint16(b>>16)&0x8000; h != want {
				t.Errorf("%s of %v is %#x, want %#x", f.name, x, h, want)
			}
		}
	})
}
