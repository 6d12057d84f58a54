package data

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNormalizer(t *testing.T) {
	n, err := NewNormalizer([]float32{0.1307, 0.5}, []float32{0.3081, 0.5})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 6)
	n.Apply(got, []byte{0, 51, 255, 0, 255, 255})
	// torchvision: Normalize((mean,), (std,))(ToTensor()(v)), to the last bit.
	if want := []float32{-0.42421296, 0.22492696, 2.8214867, -1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, bad := range [][2][]float32{{nil, nil}, {{1}, {0}}, {{1, 2}, {1}}, {make([]float32, 257), slices.Repeat([]float32{1}, 257)}} {
		if _, err := NewNormalizer(bad[0], bad[1]); err == nil {
			t.Errorf("took %v", bad)
		}
	}
	panics(t, "short dst", func() { n.Apply(make([]float32, 5), make([]byte, 6)) })
	panics(t, "half a pixel", func() { n.Apply(make([]float32, 5), make([]byte, 5)) })
}

func panics(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", name)
		}
	}()
	f()
}

// naive is the definition of a crop: where the image is not, there is zero.
func naive(s Shape, src []byte, down, right int) []byte {
	dst := make([]byte, s.Len())
	for c := range s.Channels {
		for y := range s.Height {
			for x := range s.Width {
				if v, u := y+down, x+right; v >= 0 && v < s.Height && u >= 0 && u < s.Width {
					dst[(c*s.Height+y)*s.Width+x] = src[(c*s.Height+v)*s.Width+u]
				}
			}
		}
	}
	return dst
}

func TestCropIsItsDefinition(t *testing.T) {
	for _, s := range []Shape{{1, 1, 1}, {2, 3, 4}, {3, 4, 2}} {
		src := make([]byte, s.Len())
		for i := range src {
			src[i] = byte(i + 1)
		}
		for down := -6; down <= 6; down++ {
			for right := -6; right <= 6; right++ {
				dst := slices.Repeat([]byte{99}, s.Len())
				Augment{Shape: s}.crop(dst, src, down, right)
				if want := naive(s, src, down, right); !slices.Equal(dst, want) {
					t.Errorf("%v at %d, %d: %v, want %v", s, down, right, dst, want)
				}
			}
		}
	}
}

// All crops and both sides come, about equally often, and the same for one seed.
func TestAugment(t *testing.T) {
	a := Augment{Shape: Shape{1, 3, 3}, Pad: 1, Flip: true}
	src := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}
	seen := make(map[string]int)
	for i := range uint64(1800) {
		one, two := make([]byte, 9), make([]byte, 9)
		a.Apply(one, src, rand.New(rand.NewPCG(1, i)))
		a.Apply(two, src, rand.New(rand.NewPCG(1, i)))
		if !slices.Equal(one, two) {
			t.Fatalf("%v, then %v", one, two)
		}
		seen[string(one)]++
	}
	if len(seen) != 18 {
		t.Errorf("%d images, want 9 crops of 2 sides", len(seen))
	}
	for image, n := range seen {
		if n < 50 || n > 150 {
			t.Errorf("%v came %d times of 1800, want about 100", []byte(image), n)
		}
	}
	same := make([]byte, 9)
	Augment{Shape: a.Shape}.Apply(same, src, nil)
	if !slices.Equal(same, src) {
		t.Errorf("without any change: %v", same)
	}
	a.mirror(same)
	if !slices.Equal(same, []byte{3, 2, 1, 6, 5, 4, 9, 8, 7}) {
		t.Errorf("mirrored: %v", same)
	}
	panics(t, "short", func() { a.Apply(same[:8], src, rand.New(rand.NewPCG(0, 0))) })
}

func TestAugmentCheck(t *testing.T) {
	good := Augment{Shape: Shape{3, 32, 32}, Pad: 4}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(a *Augment){
		"channels": func(a *Augment) { a.Shape.Channels = 0 }, "many": func(a *Augment) { a.Shape.Channels = MaxChannels + 1 },
		"height": func(a *Augment) { a.Shape.Height = -1 }, "width": func(a *Augment) { a.Shape.Width = MaxSide + 1 },
		"pad": func(a *Augment) { a.Pad = -1 }, "wide": func(a *Augment) { a.Pad = MaxSide + 1 },
	} {
		a := good
		if change(&a); a.Check() == nil {
			t.Errorf("%s: %+v is fine", name, a)
		}
	}
}
