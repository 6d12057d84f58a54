package kern

// An Engine is one implementation of the kernels. Any machine can run Portable;
// Best says what else this one can. Engines round differently (AVX2 fuses each
// multiplication with its addition, and Dot spreads its sums), but each always
// gives one element the same bits, wherever in a tile it lies.
type Engine uint8

const (
	Portable Engine = iota // plain Go
	AVX2                   // amd64 assembly: 256-bit vectors with FMA
)

func (e Engine) String() string {
	if e == AVX2 {
		return "avx2"
	}
	return "portable"
}

// Offsets say where the rows of a matrix start within a slice. They need not be
// evenly spaced, and rows may overlap: that is how a convolution reads shifted
// views of an image as the rows of a matrix without copying one.
type Offsets struct {
	at   []int
	last int // the largest, so that one comparison bounds them all
}

// NewOffsets is the k offsets at(0) … at(k-1).
func NewOffsets(k int, at func(i int) int) Offsets {
	o := Offsets{at: make([]int, k)}
	for i := range o.at {
		o.at[i] = at(i)
		o.last = max(o.last, o.at[i])
	}
	return o
}

// Every is k rows, stride floats apart.
func Every(k, stride int) Offsets {
	return NewOffsets(k, func(i int) int { return i * stride })
}

// Len is the number of rows.
func (o Offsets) Len() int { return len(o.at) }

// At is where row i starts.
func (o Offsets) At(i int) int { return o.at[i] }

// First is the first k rows, without a copy.
func (o Offsets) First(k int) Offsets {
	f := Offsets{at: o.at[:k]}
	for _, at := range f.at {
		f.last = max(f.last, at)
	}
	return f
}
