package compress

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// bucket is one with those parameters, of zeros.
func bucket(index int, params ...*trainer.Param) trainer.Bucket {
	b := trainer.Bucket{Index: index, Params: params}
	n := 0
	for _, p := range params {
		n += p.Value.Len()
	}
	b.Data = tensor.New(params[0].Value.DType(), n)
	n = 0
	for _, p := range params {
		b.Parts = append(b.Parts, b.Data.Slice(n, n+p.Value.Len()))
		n += p.Value.Len()
	}
	return b
}

func param(name string, x ...float32) *trainer.Param {
	return &trainer.Param{Name: name, Value: tensor.Of(x), Grad: tensor.Of(slices.Clone(x))}
}

// Feedback follows its parameter into whatever bucket that is in, and is forgotten when
// it should be.
func TestFeedbackFollowsParameters(t *testing.T) {
	var f Feedback
	a, b, c := param("a", 1, 2), param("b", 3), param("c", 4, 5, 6)
	copy(host[float32](f.of(bucket(0, c, b))), []float32{6, 7, 8, 9})
	copy(host[float32](f.of(bucket(1, a))), []float32{1, 2})
	if got := host[float32](f.of(bucket(1, a))); !slices.Equal(got, []float32{1, 2}) {
		t.Errorf("the same bucket: %v", got)
	}
	again := bucket(0, a, c)
	if x, err := f.addTo(again); err != nil || !slices.Equal(host[float32](again.Data), []float32{1, 2, 6, 7, 8}) || !bytes.Equal(bytesOf(x), bytesOf(again.Data)) {
		t.Errorf("another bucket: %v, %v", again.Data, err)
	}
	if got := host[float32](f.of(bucket(1, b))); !slices.Equal(got, []float32{9}) {
		t.Errorf("what is left: %v", got)
	}
	wide := &trainer.Param{Name: "b", Value: tensor.New(tensor.Float64, 1)}
	if got := host[float64](f.of(bucket(1, wide))); !slices.Equal(got, []float64{0}) {
		t.Errorf("of another type: %v", got)
	}
	f.Reset()
	if got := host[float32](f.of(bucket(0, a, c))); !slices.Equal(got, make([]float32, 5)) {
		t.Errorf("after Reset: %v", got)
	}
}

func TestFeedbackIsSaved(t *testing.T) {
	var f, g Feedback
	a, b := param("a", 1, 2), &trainer.Param{Name: "b", Value: tensor.Of([]float64{3})}
	copy(host[float32](f.of(bucket(0, a))), []float32{6, 7})
	copy(host[float64](f.of(bucket(1, b))), []float64{8})
	p, err := f.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	g.of(bucket(0, param("gone", 1)))
	if err := g.UnmarshalBinary(p); err != nil {
		t.Fatal(err)
	}
	if q, err := g.MarshalBinary(); err != nil || !bytes.Equal(p, q) {
		t.Errorf("%x, then %x, %v", p, q, err)
	}
	if got := host[float32](g.of(bucket(0, param("x", 0), a))); !slices.Equal(got, []float32{0, 6, 7}) {
		t.Errorf("loaded: %v", got)
	}
	for i := range p {
		if err := g.UnmarshalBinary(p[:i]); !errors.Is(err, trainer.ErrFormat) {
			t.Fatalf("%d of %d bytes: %v", i, len(p), err)
		}
	}
	if err := g.UnmarshalBinary(append(p, 0)); !errors.Is(err, trainer.ErrFormat) || !strings.Contains(err.Error(), "after the end") {
		t.Error(err)
	}
	if _, err := (&Feedback{at: map[string]tensor.Tensor{strings.Repeat("x", maxName+1): a.Value}}).MarshalBinary(); err == nil {
		t.Error("a long name was saved")
	}
}

func FuzzFeedback(f *testing.F) {
	var some Feedback
	some.of(bucket(0, param("a", 1, 2), param("b", 3)))
	p, err := some.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p)
	f.Add([]byte(feedbackMagic + "\x01\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, p []byte) {
		var f Feedback
		if f.UnmarshalBinary(p) != nil {
			return
		}
		if q, err := f.MarshalBinary(); err != nil || !bytes.Equal(p, q) {
			t.Errorf("%x was read, %x written: %v", p, q, err)
		}
	})
}
