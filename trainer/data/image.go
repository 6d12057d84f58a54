package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Shape is that of an image whose channels lie one after the other, each row by
// row, as PyTorch has them and CIFAR's files too.
type Shape struct{ Channels, Height, Width int }

// Len is the number of pixels times channels.
func (s Shape) Len() int { return s.Channels * s.Height * s.Width }

// MaxSide bounds an image's height and width, MaxChannels its channels.
const (
	MaxSide     = 1 << 14
	MaxChannels = 1 << 8
)

func (s Shape) check() error {
	if min(s.Channels, s.Height, s.Width) < 1 || s.Channels > MaxChannels || max(s.Height, s.Width) > MaxSide {
		return fmt.Errorf("data: images of %d channels, %d×%d", s.Channels, s.Height, s.Width)
	}
	return nil
}

// A Normalizer turns bytes into numbers about zero: v becomes (v/255 − mean)/std of
// its channel, computed in float32 and in the order of torchvision's ToTensor and
// Normalize, to the same bits.
type Normalizer struct {
	tables [][256]float32 // of each channel: a byte has no more values
}

// NewNormalizer has a mean and a deviation for each channel, of values between 0
// and 1. Deviations are not zero.
func NewNormalizer(mean, std []float32) (*Normalizer, error) {
	if len(mean) != len(std) || len(mean) == 0 || len(mean) > MaxChannels || slices.Contains(std, 0) {
		return nil, fmt.Errorf("data: means %v and deviations %v", mean, std)
	}
	n := &Normalizer{tables: make([][256]float32, len(mean))}
	for c := range n.tables {
		for v := range n.tables[c] {
			n.tables[c][v] = (float32(v)/255 - mean[c]) / std[c]
		}
	}
	return n, nil
}

// Apply sets dst to the image src. Both are of one length, a multiple of the number
// of channels; else it panics.
func (n *Normalizer) Apply(dst []float32, src []byte) {
	plane := len(src) / len(n.tables)
	if plane*len(n.tables) != len(src) || len(dst) != len(src) {
		panic(fmt.Sprintf("data: an image of %d bytes and %d channels, into %d numbers", len(src), len(n.tables), len(dst)))
	}
	for c := range n.tables {
		table, from, to := &n.tables[c], src[c*plane:][:plane], dst[c*plane:][:plane]
		for i, v := range from {
			to[i] = table[v]
		}
	}
}

// Augment is the usual way to see an image as often as there are epochs, each time
// a little different: a crop out of the image with a margin of zeros around it, as
// torchvision's RandomCrop with padding, and every other time its mirror image. The
// zero value but for Shape leaves images as they are.
//
// It works on bytes, before a [Normalizer]; so the margin becomes what black becomes.
type Augment struct {
	Shape Shape
	Pad   int  // width of the margin
	Flip  bool // left and right, with probability ½
}

// Check refuses shapes and margins that make no sense.
func (a Augment) Check() error {
	if err := a.Shape.check(); err != nil {
		return err
	}
	if a.Pad < 0 || a.Pad > MaxSide {
		return fmt.Errorf("data: a margin of %d: want 0 to %d", a.Pad, MaxSide)
	}
	return nil
}

// Apply sets dst to the image src, changed as r has it: with [Sample.Rand] the same
// for a sample and an epoch. dst and src do not overlap. It panics if they are not
// of the shape's length.
func (a Augment) Apply(dst, src []byte, r *rand.Rand) {
	down, right := a.Pad, a.Pad // in the middle
	if a.Pad > 0 {
		down, right = r.IntN(2*a.Pad+1), r.IntN(2*a.Pad+1)
	}
	a.crop(dst, src, down-a.Pad, right-a.Pad)
	if a.Flip && r.Uint64()&1 == 1 {
		a.mirror(dst)
	}
}

// crop sets dst to the image that is seen down and right of src's corner.
func (a Augment) crop(dst, src []byte, down, right int) {
	s := a.Shape
	if len(dst) != s.Len() || len(src) != s.Len() {
		panic(fmt.Sprintf("data: images of %d and %d bytes, want %d", len(dst), len(src), s.Len()))
	}
	for row := range s.Channels * s.Height {
		to := dst[row*s.Width:][:s.Width]
		y := row%s.Height + down
		if y < 0 || y >= s.Height || max(right, -right) >= s.Width {
			clear(to)
			continue
		}
		from := src[(row+down)*s.Width:][:s.Width]
		if right >= 0 {
			clear(to[copy(to, from[right:]):])
		} else {
			clear(to[:-right])
			copy(to[-right:], from)
		}
	}
}

func (a Augment) mirror(image []byte) {
	for row := range slices.Chunk(image, a.Shape.Width) {
		slices.Reverse(row)
	}
}
