package tensor_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// named are all kinds of Op, in the order of their codes.
var named = []struct {
	op   tensor.Op
	name string
}{
	{tensor.Sum, "sum"}, {tensor.Product, "product"}, {tensor.Min, "min"}, {tensor.Max, "max"},
	{tensor.Avg, "avg"}, {tensor.BitAnd, "band"}, {tensor.BitOr, "bor"}, {tensor.BitXor, "bxor"},
	{tensor.PremulSum(.5), "premul_sum"}, {tensor.Func("hypot", math.Hypot), "func(hypot)"},
}

// TestOpCodes pins what travels in messages.
func TestOpCodes(t *testing.T) {
	for i, c := range named {
		code := tensor.OpCode(i + 1)
		kind, _, _ := strings.Cut(c.name, "(")
		if c.op.Code() != code || !code.Valid() || code.String() != kind || c.op.String() != c.name || !c.op.Valid() {
			t.Errorf("%v has code %d, %v; want %s with %d", c.op, c.op.Code(), c.op.Code(), c.name, code)
		}
	}
	for _, code := range []tensor.OpCode{0, tensor.OpCode(len(named) + 1), 255} {
		if code.Valid() {
			t.Errorf("code %d is valid", code)
		}
	}
	if z := (tensor.Op{}); z.Valid() || z.Code() != 0 {
		t.Errorf("the zero Op is %v", z)
	}
}

func TestOpsCompare(t *testing.T) {
	add := func(a, b int8) int8 { return a + b }
	f := tensor.Func("add", add)
	for _, c := range []struct {
		a, b         tensor.Op
		equal, agree bool
	}{
		{tensor.Sum, tensor.Sum, true, true},
		{tensor.Sum, tensor.Avg, false, false},
		{tensor.PremulSum(2), tensor.PremulSum(2), true, true},
		{tensor.PremulSum(2), tensor.PremulSum(3), false, true}, // each rank's own
		{f, f, true, true},
		{f, tensor.Func("add", add), false, true}, // another rank's
		{f, tensor.Func("sub", add), false, false},
		{f, tensor.Func("add", func(a, b uint8) uint8 { return a + b }), false, false},
		{tensor.Op{}, tensor.Op{}, true, true},
	} {
		if (c.a == c.b) != c.equal || (c.a.Digest() == c.b.Digest()) != c.agree {
			t.Errorf("%v and %v: equal %v, digests %x %x", c.a, c.b, c.a == c.b, c.a.Digest(), c.b.Digest())
		}
	}
}

// TestDigests checks that the ranks of different ops notice.
func TestDigests(t *testing.T) {
	seen := make(map[uint32]tensor.Op)
	for _, c := range named {
		if other, ok := seen[c.op.Digest()]; ok {
			t.Errorf("%v and %v have one digest", c.op, other)
		}
		seen[c.op.Digest()] = c.op
	}
}

// TestGuideTable holds the table in doc.go, which has a dash where an element
// type lacks an op, to what Check says.
func TestGuideTable(t *testing.T) {
	guide, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	columns := [][]tensor.DType{
		{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64},
		{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64},
		{tensor.Bool},
	}
	if n := len(slices.Concat(columns...)); n != len(tensortest.DTypes()) {
		t.Errorf("the table has %d of %d types", n, len(tensortest.DTypes()))
	}
	for name, op := range map[string]tensor.Op{
		"Sum": tensor.Sum, "Product": tensor.Product, "Min": tensor.Min, "Max": tensor.Max, "Avg": tensor.Avg,
		"BitAnd": tensor.BitAnd, "BitOr": tensor.BitOr, "BitXor": tensor.BitXor, "PremulSum": tensor.PremulSum(3),
	} {
		cells := guideRow(string(guide), name)
		if cells == nil {
			t.Errorf("the table lacks %s", name)
			continue
		}
		for i, dtypes := range columns {
			for _, dt := range dtypes {
				if err := op.Check(dt); (err == nil) != (cells[i] != "–") {
					t.Errorf("%s of %v: the table says %s, Check %v", name, dt, cells[i], err)
				}
			}
		}
	}
}

// guideRow is the three cells of an op's row.
func guideRow(guide, name string) []string {
	for line := range strings.Lines(guide) {
		if f := strings.Fields(line); len(f) == 5 && f[0] == "//" && f[1] == name {
			return f[2:]
		}
	}
	return nil
}

func TestCheckSaysWhy(t *testing.T) {
	for _, c := range []struct {
		op   tensor.Op
		t    tensor.DType
		want string // empty: no error
	}{
		{tensor.BitAnd, tensor.Float32, "tensor: band of float32: it is for integers and bool"},
		{tensor.BitXor, tensor.BFloat16, "tensor: bxor of bfloat16: it is for integers and bool"},
		{tensor.Avg, tensor.Bool, "tensor: avg of bool: it is for numbers"},
		{tensor.PremulSum(1), tensor.Bool, "tensor: premul_sum of bool: it is for numbers"},
		{tensor.Func("f", math.Hypot), tensor.Float32, "tensor: func(f) of float32: it is for float64"},
		{tensor.Func[int8]("f", nil), tensor.Int8, "tensor: func(f) has no function"},
		{tensor.Op{}, tensor.Int8, "tensor: op(0) is no reduction"},
		{tensor.Sum, 99, "tensor: reduction of the unknown dtype(99)"},
		{tensor.PremulSum(.5), tensor.Int32, "tensor: premul_sum of int32: the factor 0.5 is not one of its values"},
		{tensor.PremulSum(-1), tensor.Uint64, "tensor: premul_sum of uint64: the factor -1 is not one of its values"},
		{tensor.PremulSum(128), tensor.Int8, "tensor: premul_sum of int8: the factor 128 is not one of its values"},
		{tensor.PremulSum(0x1p63), tensor.Int64, "tensor: premul_sum of int64: the factor 9.223372036854776e+18 is not one of its values"},
		{tensor.PremulSum(0x1p64), tensor.Uint64, "tensor: premul_sum of uint64: the factor 1.8446744073709552e+19 is not one of its values"},
		{tensor.PremulSum(math.NaN()), tensor.Int16, "tensor: premul_sum of int16: the factor NaN is not one of its values"},
		{tensor.PremulSum(math.Inf(1)), tensor.Uint8, "tensor: premul_sum of uint8: the factor +Inf is not one of its values"},
		{tensor.PremulSum(-128), tensor.Int8, ""},
		{tensor.PremulSum(-0x1p63), tensor.Int64, ""},
		{tensor.PremulSum(0x1p63), tensor.Uint64, ""},
		{tensor.PremulSum(math.NaN()), tensor.Float16, ""},
	} {
		err := c.op.Check(c.t)
		if c.want == "" && err != nil || c.want != "" && fmt.Sprint(err) != c.want {
			t.Errorf("%v of %v: %v, want %q", c.op, c.t, err, c.want)
		}
	}
}

// TestRefusedMovesNothing checks that what Check refuses, nothing does.
func TestRefusedMovesNothing(t *testing.T) {
	for _, dt := range tensortest.DTypes() {
		x := tensor.In(tensor.Host(bytes.Repeat([]byte{1}, 16*dt.Size())), dt, 16)
		before := make([]byte, x.Bytes())
		read(t, x, before)
		for _, c := range append(named[:8:8], named[9]) {
			if c.op.Check(dt) == nil {
				continue
			}
			if x.ReduceAt(before, 0, c.op) == nil || c.op.Before(x) == nil || c.op.After(x, 2) == nil ||
				x.Memory().ReduceAt(before, 0, dt, c.op) == nil {
				t.Errorf("%v of %v: no error", c.op, dt)
			}
		}
		after := make([]byte, x.Bytes())
		if read(t, x, after); !bytes.Equal(after, before) {
			t.Errorf("%v: a refused op changed the elements", dt)
		}
	}
}
