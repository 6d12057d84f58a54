package safetensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/safetensors"
)

// written is a file of the parameters, opened.
func written(t *testing.T, o safetensors.Options, params ...*trainer.Param) *safetensors.File {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, params, o); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.New(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func param[T tensor.Element](name string, x ...T) *trainer.Param {
	return &trainer.Param{Name: name, Value: tensor.Of(x)}
}

func data[T tensor.Element](t *testing.T, x tensor.Tensor) []T {
	t.Helper()
	s, ok := tensor.Data[T](x)
	if !ok {
		t.Fatalf("%v is of another type", x)
	}
	return s
}

func TestLoad(t *testing.T) {
	f := written(t, safetensors.Options{}, param[float32]("a", 1, 2), param[float64]("b", 3), param("c", true, false))
	model := []*trainer.Param{param[float64]("c", 9, 9), param[float32]("b", 9), param[float32]("a", 9, 9)}
	if err := f.Load(model, safetensors.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"[1 0]", "[3]", "[1 2]"} {
		got := fmt.Sprint(func() any {
			if i == 0 {
				return data[float64](t, model[i].Value)
			}
			return data[float32](t, model[i].Value)
		}())
		if got != want {
			t.Errorf("%s = %s, want %s", model[i].Name, got, want)
		}
	}
}

func TestLoadListsAllThatDiffers(t *testing.T) {
	f := written(t, safetensors.Options{}, param[float32]("a", 1, 2), param[float32]("b", 3), param[float32]("x", 4), param[float32]("w", 5))
	model := []*trainer.Param{param[float32]("b", 9), param[float32]("a", 9, 9, 9), param[float32]("z", 9), param[float32]("y", 9), param[int32]("x", 9)}
	err := f.Load(model, safetensors.LoadOptions{})
	wrong, ok := errors.AsType[*safetensors.LoadError](err)
	if !ok {
		t.Fatalf("%v is no LoadError", err)
	}
	want := &safetensors.LoadError{
		Missing: []string{"y", "z"}, Unexpected: []string{"w"},
		Different: []string{
			`"a": its shape is [2] in the file, want [3]`,
			`"x": its elements are float32 in the file, which do not become int32`,
		},
	}
	if !reflect.DeepEqual(wrong, want) {
		t.Errorf("%#v", wrong)
	}
	if text := err.Error(); !strings.HasPrefix(text, "safetensors: ") || !strings.Contains(text, "2 missing (y, z), 1 unexpected (w), 2 different (") {
		t.Error(text)
	}
	if got := data[float32](t, model[0].Value); got[0] != 9 {
		t.Errorf("b is %v already", got)
	}
}

func TestLoadErrorIsShort(t *testing.T) {
	e := &safetensors.LoadError{Missing: strings.Split("abcdefghij", "")}
	if got := e.Error(); !strings.Contains(got, "10 missing (a, b, c, d, e, …)") {
		t.Error(got)
	}
}

func TestLoadPartialAndRenamed(t *testing.T) {
	f := written(t, safetensors.Options{Rename: strings.ToUpper}, param[float32]("a", 1), param[float32]("b", 2))
	model := []*trainer.Param{param[float32]("a", 9), param[float32]("z", 9)}
	o := safetensors.LoadOptions{Partial: true, Rename: strings.ToUpper}
	if err := f.Load(model, o); err != nil {
		t.Fatal(err)
	}
	if a, z := data[float32](t, model[0].Value), data[float32](t, model[1].Value); a[0] != 1 || z[0] != 9 {
		t.Errorf("a = %v, z = %v", a, z)
	}
	model[1] = param[float32]("b", 9, 9)
	if _, ok := errors.AsType[*safetensors.LoadError](f.Load(model, o)); !ok {
		t.Error("another shape was taken as a part")
	}
	model[1] = param[float32]("A", 9)
	if err := f.Load(model, o); err == nil || !strings.Contains(err.Error(), `want the tensor "A"`) {
		t.Error(err)
	}
}

// Each row is what the elements become; none: an error.
func TestConversions(t *testing.T) {
	third := 1.0 / 3
	for _, c := range []struct {
		from, to, want *trainer.Param
	}{
		{param("x", third, 1e300, math.Inf(-1)), param[float32]("x", 0, 0, 0), param("x", float32(third), float32(math.Inf(1)), float32(math.Inf(-1)))},
		{param("x", float32(third)), param[float64]("x", 0), param("x", float64(float32(third)))},
		{param[float32]("x", 1, 65519, 65520), param[tensor.F16]("x", 0, 0, 0), param("x", tensor.ToF16(1), tensor.ToF16(65504), tensor.ToF16(float32(math.Inf(1))))},
		{param("x", tensor.ToBF16(-2.5)), param[tensor.F16]("x", 0), param("x", tensor.ToF16(-2.5))},
		{param("x", tensor.ToF16(-2.5)), param[tensor.BF16]("x", 0), param("x", tensor.ToBF16(-2.5))},
		{param[int64]("x", -7, 1<<53), param[float64]("x", 0, 0), param[float64]("x", -7, 1<<53)},
		{param[uint64]("x", 1<<63), param[float32]("x", 0), param[float32]("x", 1<<63)},
		{param[int8]("x", -7), param[int64]("x", 0), param[int64]("x", -7)},
		{param[int64]("x", 255, 0), param[uint8]("x", 0, 0), param[uint8]("x", 255, 0)},
		{param[uint64]("x", 1<<63-1), param[int64]("x", 0), param[int64]("x", 1<<63-1)},
		{param("x", true), param[uint16]("x", 0), param[uint16]("x", 1)},
		{param[int64]("x", 256), param[uint8]("x", 0), nil},
		{param[int64]("x", -1), param[uint64]("x", 0), nil},
		{param[uint64]("x", 1<<63), param[int64]("x", 0), nil},
		{param[uint8]("x", 1), param("x", false), nil},
		{param[float32]("x", 1), param[int32]("x", 0), nil},
	} {
		f := written(t, safetensors.Options{}, c.from)
		err := f.ReadInto(c.to.Value, "x")
		if (err != nil) != (c.want == nil) {
			t.Errorf("%v to %v: %v", c.from.Value, c.to.Value, err)
		} else if err == nil && !bytes.Equal(elements(t, c.to.Value), elements(t, c.want.Value)) {
			t.Errorf("%v to %v: %x, want %x", c.from.Value, c.to.Value, elements(t, c.to.Value), elements(t, c.want.Value))
		}
	}
}

// Every integer type takes its least and its greatest value from an int64, and
// nothing beyond.
func TestIntegerRanges(t *testing.T) {
	for _, c := range []struct {
		to       tensor.DType
		min, max int64
	}{
		{tensor.Int8, -128, 127}, {tensor.Uint8, 0, 255}, {tensor.Int16, -32768, 32767}, {tensor.Uint16, 0, 65535},
		{tensor.Int32, math.MinInt32, math.MaxInt32}, {tensor.Uint32, 0, math.MaxUint32},
	} {
		for x, fits := range map[int64]bool{c.min: true, c.max: true, c.min - 1: false, c.max + 1: false} {
			f := written(t, safetensors.Options{}, param("x", x))
			narrow := tensor.New(c.to, 1)
			if err := f.ReadInto(narrow, "x"); (err == nil) != fits {
				t.Errorf("%d to %v: %v", x, c.to, err)
			}
			if fits {
				back := make([]int64, 1)
				g := written(t, safetensors.Options{}, &trainer.Param{Name: "x", Value: narrow})
				if err := g.ReadInto(tensor.Of(back), "x"); err != nil || back[0] != x {
					t.Errorf("%d by way of %v: %d, %v", x, c.to, back[0], err)
				}
			}
		}
	}
}

// Tensors longer than a block, converted both ways, by several goroutines at once.
func TestLongTensors(t *testing.T) {
	const n = 1<<17 + 3
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i % 251)
	}
	f := written(t, safetensors.Options{DType: tensor.BFloat16}, param("x", x...), param[int32]("i", 1))
	if i, _ := f.Lookup("x"); i.DType != tensor.BFloat16 {
		t.Fatalf("%v", i)
	}
	if i, _ := f.Lookup("i"); i.DType != tensor.Int32 {
		t.Fatalf("%v", i)
	}
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			y := make([]float32, n)
			if err := f.ReadInto(tensor.Of(y), "x"); err != nil || !slices.Equal(x, y) {
				t.Errorf("%v, or it differs", err)
			}
		})
	}
	readers.Wait()
}

// blind is memory that lends no bytes, as a GPU's does not.
type blind struct{ tensor.Memory }

func TestOtherMemory(t *testing.T) {
	x := tensor.In(blind{tensor.Host(elements(t, tensor.Of([]float32{1, 2, 3})))}, tensor.Float32, 3)
	f := written(t, safetensors.Options{}, &trainer.Param{Name: "x", Value: x})
	y := tensor.In(blind{make(tensor.Host, 12)}, tensor.Float32, 3)
	if err := f.Load([]*trainer.Param{{Name: "x", Value: y}}, safetensors.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(elements(t, x), elements(t, y)) {
		t.Errorf("%x, want %x", elements(t, y), elements(t, x))
	}
}

func TestBoolsAreMadeBools(t *testing.T) {
	var b bytes.Buffer
	if err := safetensors.Write(&b, []*trainer.Param{param("x", true)}, safetensors.Options{}); err != nil {
		t.Fatal(err)
	}
	b.Bytes()[b.Len()-1] = 7
	f, err := safetensors.New(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	x, err := f.Read("x")
	if err != nil || !data[bool](t, x)[0] {
		t.Errorf("%v, %v", x, err)
	}
}

// broken fails where there is data.
type broken struct{ io.ReaderAt }

var errDisk = errors.New("broken disk")

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off >= 64 {
		return 0, errDisk
	}
	return b.ReaderAt.ReadAt(p, off)
}

func TestReadErrorsArePassedOn(t *testing.T) {
	var b bytes.Buffer
	if err := safetensors.Write(&b, []*trainer.Param{param("x", 1.0)}, safetensors.Options{}); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.New(broken{bytes.NewReader(b.Bytes())}, int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"same":      f.ReadInto(tensor.Of([]float64{0}), "x"),
		"converted": f.ReadInto(tensor.Of([]float32{0}), "x"),
		"params":    func() error { _, err := f.Params(); return err }(),
		"load":      f.Load([]*trainer.Param{param("x", 1.0)}, safetensors.LoadOptions{}),
	} {
		if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = f.Read("none")
	if err == nil || f.ReadInto(tensor.Of([]float64{0}), "none") == nil {
		t.Error("a tensor that is not there was read")
	}
}

func TestWriteRefuses(t *testing.T) {
	wide := tensor.New(tensor.Uint8, slices.Repeat([]int{1}, safetensors.MaxDims+1)...)
	for want, c := range map[string]struct {
		params []*trainer.Param
		o      safetensors.Options
	}{
		"no value":            {[]*trainer.Param{{Name: "x"}}, safetensors.Options{}},
		"has no value":        {[]*trainer.Param{nil}, safetensors.Options{}},
		`"x" is taken`:        {[]*trainer.Param{param("x", 1.0), param("x", 1.0)}, safetensors.Options{}},
		"__metadata__":        {[]*trainer.Param{param("__metadata__", 1.0)}, safetensors.Options{}},
		`"\xff" is not UTF-8`: {[]*trainer.Param{param("\xff", 1.0)}, safetensors.Options{}},
		"metadata: \"\\xfe\"": {nil, safetensors.Options{Metadata: map[string]string{"a": "\xfe"}}},
		"33 dimensions":       {[]*trainer.Param{{Name: "x", Value: wide}}, safetensors.Options{}},
		"all become int8":     {nil, safetensors.Options{DType: tensor.Int8}},
	} {
		err := safetensors.Write(io.Discard, c.params, c.o)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "safetensors: ") {
			t.Errorf("%v, want %q", err, want)
		}
		if err := safetensors.Save(t.TempDir()+"/x", c.params, c.o); err == nil {
			t.Errorf("%q was saved", want)
		}
	}
}

// full fails at the n-th byte.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestWriteErrorsArePassedOn(t *testing.T) {
	for _, o := range []safetensors.Options{{}, {DType: tensor.Float32}} {
		for _, n := range []int{0, 66} {
			if err := safetensors.Write(&full{n}, []*trainer.Param{param("x", 1.0)}, o); !errors.Is(err, errDisk) {
				t.Errorf("%+v, after %d bytes: %v", o, n, err)
			}
		}
	}
}

func TestNothingIsAFile(t *testing.T) {
	f := written(t, safetensors.Options{})
	if len(f.Tensors()) != 0 || len(f.Metadata()) != 0 || f.Close() != nil {
		t.Errorf("%v, %v", f.Tensors(), f.Metadata())
	}
}

// What a File hands out is the caller's.
func TestFilesAreNotChangedFromOutside(t *testing.T) {
	f := written(t, safetensors.Options{Metadata: metadata}, param("x", 1.0))
	f.Tensors()[0].Shape[0] = 9
	i, _ := f.Lookup("x")
	i.Shape[0] = 9
	f.Metadata()["format"] = "9"
	if i, _ := f.Lookup("x"); i.String() != `"x" float64[1]` || f.Metadata()["format"] != "pt" {
		t.Errorf("%v, %v", i, f.Metadata())
	}
}
