package trainer

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// hashed is the hash of parameters that can be read.
func hashed(t *testing.T, params ...*Param) [32]byte {
	t.Helper()
	h, err := Hash(params)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHashBytes spells out what is hashed.
func TestHashBytes(t *testing.T) {
	const bytes = "0200000000000000" + // two parameters
		"0100000000000000" + "77" + // "w"
		"0700000000000000" + "666c6f61743332" + // "float32"
		"0200000000000000" + "0100000000000000" + "0200000000000000" + // 1 by 2
		"0800000000000000" + "0000803f" + "000000c0" + // 1, -2
		"0000000000000000" + // no name
		"0500000000000000" + "696e743634" + // "int64"
		"0100000000000000" + "0000000000000000" + // of no elements
		"0000000000000000"
	p, err := hex.DecodeString(bytes)
	if err != nil {
		t.Fatal(err)
	}
	w := tensor.New(tensor.Float32, 1, 2)
	if err := tensor.Copy(w, tensor.Of([]float32{1, -2})); err != nil {
		t.Fatal(err)
	}
	if got := hashed(t, &Param{Name: "w", Value: w}, &Param{Value: tensor.Of[int64](nil)}); got != sha256.Sum256(p) {
		t.Errorf("%x", got)
	}
}

// TestHashTellsApart changes one thing at a time, among them what would be the
// same bytes without lengths, and what would be equal as numbers.
func TestHashTellsApart(t *testing.T) {
	one := func(name string, x tensor.Tensor) []*Param { return []*Param{{Name: name, Value: x}} }
	flat := tensor.Of([]float32{1, 2, 3, 4})
	tall, err := flat.Reshape(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	negative := math.Copysign(0, -1)
	seen := map[[32]byte]string{}
	for name, params := range map[string][]*Param{
		"none":             nil,
		"a value":          one("w", flat),
		"another value":    one("w", tensor.Of([]float32{1, 2, 3, math.Nextafter32(4, 5)})),
		"another name":     one("v", flat),
		"a longer name":    one("w1", flat),
		"another shape":    one("w", tall),
		"half":             one("w", flat.Slice(0, 2)),
		"two halves":       {{Name: "w", Value: flat.Slice(0, 2)}, {Name: "w", Value: flat.Slice(2, 4)}},
		"halves in turn":   {{Name: "w", Value: flat.Slice(2, 4)}, {Name: "w", Value: flat.Slice(0, 2)}},
		"zero":             one("w", tensor.Of([]float64{0})),
		"negative zero":    one("w", tensor.Of([]float64{negative})),
		"zero of integers": one("w", tensor.Of([]int64{0})),
		"names run on":     {{Name: "ab", Value: flat}, {Name: "c", Value: flat}},
		"names run":        {{Name: "a", Value: flat}, {Name: "bc", Value: flat}},
	} {
		h := hashed(t, params...)
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[h] = name
	}
}

// TestHashIsOfTheBits checks what must not matter: gradients, where the elements
// are, and that two NaNs are not equal.
func TestHashIsOfTheBits(t *testing.T) {
	x := tensor.Of([]float32{float32(math.NaN()), 1, 2})
	y := tensor.New(tensor.Float32, 5).Slice(1, 4)
	if err := tensor.Copy(y, x); err != nil {
		t.Fatal(err)
	}
	want := hashed(t, &Param{Name: "w", Value: x})
	for name, p := range map[string]*Param{
		"elsewhere":     {Name: "w", Value: y},
		"on a device":   {Name: "w", Value: onDevice(x)},
		"in its middle": {Name: "w", Value: tensor.In(device{y.Memory()}, tensor.Float32, 5).Slice(1, 4)},
		"with gradient": {Name: "w", Value: x, Grad: y},
	} {
		if got := hashed(t, p); got != want {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
	}
}

// TestHashUnreadable hashes more elements than a memory turns out to have.
func TestHashUnreadable(t *testing.T) {
	short := tensor.In(device{make(tensor.Host, 8)}, tensor.Float64, 2)
	_, err := Hash([]*Param{{Name: "w", Value: short}})
	if err == nil || !strings.HasPrefix(err.Error(), `trainer: hash of parameter "w": tensor: `) {
		t.Error(err)
	}
}
