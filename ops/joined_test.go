package ops

import (
	"bytes"
	"testing"

	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// bytePieces are n bytes as tensors in memories of their own, each with something before
// and after that is not theirs.
func bytePieces(n int) (parts []tensor.Tensor) {
	for k := 8; n > 0; k = k*3 + 8 {
		k = min(k, n)
		parts = append(parts, tensor.New(tensor.Uint8, k+16).Slice(8, 8+k), tensor.New(tensor.Uint8, 0))
		n -= k
	}
	return parts
}

// Tensors that are joined are a memory as any other.
func TestJoinedIsAMemory(t *testing.T) {
	tensortest.TestMemory(t, func(n int) tensor.Memory { return join(tensor.Uint8, bytePieces(n)).Memory() })
}

// What is written to the whole is in the parts, and nothing beside them.
func TestJoined(t *testing.T) {
	around := tensor.New(tensor.Int32, 10)
	a, b := around.Slice(1, 3), around.Slice(6, 9)
	x := join(tensor.Int32, []tensor.Tensor{a, tensor.New(tensor.Int32, 0), b})
	if x.Len() != 5 || x.DType() != tensor.Int32 {
		t.Fatalf("joined are %v", x)
	}
	if err := tensor.Copy(x, tensor.Of([]int32{1, 2, 3, 4, 5})); err != nil {
		t.Fatal(err)
	}
	got, _ := tensor.Data[int32](around)
	want := []int32{0, 1, 2, 0, 0, 0, 3, 4, 5, 0}
	if !bytes.Equal(bytesOfInts(got), bytesOfInts(want)) {
		t.Errorf("got %v, want %v", got, want)
	}
	for off, run := range map[int64]int64{0: 8, 4: 4, 8: 12, 16: 4} {
		if got := stretch(x, off, x.Bytes()-off); got != run {
			t.Errorf("at %d: a stretch of %d, want %d", off, got, run)
		}
	}
	if one := join(tensor.Int32, []tensor.Tensor{a}); one.Memory() == nil || stretch(one, 0, 8) != 8 || one.Offset() != a.Offset() {
		t.Errorf("one part is not itself: %v", one)
	}
	if none := join(tensor.Int32, nil); none.Len() != 0 || stretch(none, 0, 0) != 0 {
		t.Errorf("no parts are %v", none)
	}
}

func bytesOfInts(x []int32) []byte {
	p := make([]byte, 4*len(x))
	_, _ = tensor.Of(x).ReadAt(p, 0)
	return p
}

// Reading and landing go through parts as if they were one, whether lent or not.
func TestLayoutOfAList(t *testing.T) {
	for _, hide := range []bool{false, true} {
		src, dst := bytePieces(1000), bytePieces(1000)
		if hide {
			src, dst = hiddenParts(src), hiddenParts(dst)
		}
		whole := join(tensor.Uint8, src)
		for i := range whole.Len() {
			_, _ = whole.WriteAt([]byte{byte(i * 7)}, int64(i))
		}
		from, to := newLayout(whole, 3, 2), newLayout(join(tensor.Uint8, dst), 3, 2)
		for lane := range 2 {
			var into landing
			into.start(&to, lane, schedule.Move{N: 3}, tensor.Op{})
			var sent int64
			all := from.each(lane, 0, 3, func(p []byte, err error) bool {
				if err == nil {
					sent += int64(len(p))
					err = into.land(p)
				}
				if err != nil {
					t.Error(err)
				}
				return err == nil
			})
			if !all || sent != from.bytes(lane, 0, 3) {
				t.Errorf("lane %d: %d bytes, want %d", lane, sent, from.bytes(lane, 0, 3))
			}
			if into.land([]byte{1}) == nil {
				t.Error("a byte too many was taken")
			}
		}
		for i := range to.x.Len() {
			var b [1]byte
			if _, err := to.x.ReadAt(b[:], int64(i)); err != nil || b[0] != byte(i*7) {
				t.Fatalf("byte %d is %d (%v)", i, b[0], err)
			}
		}
	}
}

// hiddenParts are the same bytes in memories that lend nothing.
func hiddenParts(parts []tensor.Tensor) (all []tensor.Tensor) {
	type plain struct{ tensor.Memory }
	for _, x := range parts {
		all = append(all, tensor.In(plain{tensor.New(x.DType(), x.Len()).Memory()}, x.DType(), x.Len()))
	}
	return all
}
