package trainer

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// The encoding, byte by byte.
func TestHeadBytes(t *testing.T) {
	h := head{
		Progress: Progress{Step: 258, Epoch: 1, Consumed: 64}, random: []byte{9},
		tensors: []described{{"w", tensor.Float32, []int{2, 3}}, {"", tensor.Bool, []int{}}},
	}
	want := "PMST" + "\x01\x00\x00\x00" +
		"\x02\x01\x00\x00\x00\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x40\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\x00\x00\x00" + "\x09" + "\x02\x00\x00\x00" +
		"\x01\x00w" + "\x01\x02" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00" + "\x0d\x00"
	if got := string(h.encode()); got != want {
		t.Errorf("got %q", got)
	}
	back, err := decodeHead([]byte(want))
	if err != nil || !reflect.DeepEqual(back, h) {
		t.Errorf("read back %+v, %v", back, err)
	}
	for i := range len(want) { // cut short anywhere, it is refused
		if _, err := decodeHead([]byte(want[:i])); !errors.Is(err, ErrFormat) {
			t.Fatalf("%d bytes of it: %v", i, err)
		}
	}
}

func TestHeadRefuses(t *testing.T) {
	ok := string(head{tensors: []described{{"w", tensor.Float32, []int{2}}}}.encode())
	for says, p := range map[string]string{
		"does not begin":     "PMSX" + ok[4:],
		"version 2":          "PMST\x02" + ok[5:],
		"1 bytes after":      ok + "x",
		"the number -":       ok[:15] + "\x80" + ok[16:],
		"element type":       strings.Replace(ok, "w\x01\x01", "w\x63\x01", 1),
		"99 dimensions":      strings.Replace(ok, "w\x01\x01", "w\x01\x63", 1),
		"too large":          ok[:len(ok)-1] + "\x7f",
		"4294967295 bytes":   ok[:32] + "\xff\xff\xff\xff" + ok[36:],
		"4294967295 tensors": ok[:36] + "\xff\xff\xff\xff" + ok[40:],
	} {
		if _, err := decodeHead([]byte(p)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// What is accepted is what encode writes.
func FuzzHead(f *testing.F) {
	f.Add(head{}.encode())
	f.Add(head{Progress: Progress{1, 2, 3}, random: []byte{1, 2}, tensors: []described{{"a", tensor.Int8, []int{0, 7}}}}.encode())
	f.Fuzz(func(t *testing.T, p []byte) {
		h, err := decodeHead(p)
		if err != nil {
			return
		}
		if got := h.encode(); !bytes.Equal(got, p) {
			t.Errorf("%q is read as %+v, which is %q", p, h, got)
		}
	})
}

// A body is its tensors' bytes in a row, whatever piece of it is read or written.
func TestBody(t *testing.T) {
	var params []*Param
	var want []byte
	for i, n := range []int{0, 3, 0, 0, 5, 1, 0} {
		p := make([]uint8, n)
		for k := range p {
			p[k] = uint8(10*i + k)
		}
		want = append(want, p...)
		params = append(params, &Param{Value: tensor.Of(p)})
	}
	b := newBody(params)
	if b.size() != int64(len(want)) || newBody(nil).size() != 0 {
		t.Fatalf("%d bytes, want %d", b.size(), len(want))
	}
	for lo := range want {
		for hi := lo; hi <= len(want); hi++ {
			got := make([]byte, hi-lo)
			if err := b.read(got, int64(lo)); err != nil || !bytes.Equal(got, want[lo:hi]) {
				t.Fatalf("[%d:%d]: %v, %v, want %v", lo, hi, got, err, want[lo:hi])
			}
			for i := range got {
				got[i] += 100
				want[lo+i] += 100
			}
			if err := b.write(got, int64(lo)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What a failed step has done is undone.
func TestRemember(t *testing.T) {
	s := bulky(1, Progress{}, 0)
	var m memento
	before := labelOf(t, s)
	for range 2 {
		if err := s.remember(&m); err != nil {
			t.Fatal(err)
		}
		mean, _ := tensor.Data[float32](s.Buffers[0].Value)
		mean[0]++
		s.Random.(*rand.PCG).Uint64()
		if labelOf(t, s) == before {
			t.Fatal("nothing has changed")
		}
		if err := s.restore(&m); err != nil || labelOf(t, s) != before {
			t.Errorf("not as it was: %v", err)
		}
	}
	s.Random = nil
	if err := s.restore(&m); err == nil {
		t.Error("a random state was dropped")
	}
}

func TestUnloadRefuses(t *testing.T) {
	from := bulky(1, Progress{Step: 1}, 0)
	l, err := from.label()
	if err != nil {
		t.Fatal(err)
	}
	c := newCargo(l, newBody(from.all()).size())
	for says, s := range map[string]*State{
		"of 5 tensors, want 0":     {},
		`tensor 0 of the state is`: {Tensors: bulky(1, Progress{}, 1).Tensors, Buffers: bulky(1, Progress{}, 1).Buffers},
	} {
		if says[0] == 't' {
			s.Tensors[0] = &Param{Name: "other", Value: tensor.New(tensor.Int8, 3)}
		}
		if err := c.unload(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// A state that has another number of tensors says which those are.
func TestFitsNames(t *testing.T) {
	list := func(names string) *State {
		s := new(State)
		for _, n := range strings.Fields(names) {
			s.Tensors = append(s.Tensors, &Param{Name: n, Value: tensor.New(tensor.Float32, 1)})
		}
		return s
	}
	for _, c := range [][3]string{
		{"w b", "w b b.exp_avg", `a state of 2 tensors, want 3; it lacks "b.exp_avg"`},
		{"w b scale", "w b", `a state of 3 tensors, want 2; it also has "scale"`},
		{"a b c d e", "e", `it also has "a", "b", "c" and 1 more`},
		{"a b", "c", `it also has "a", "b"; it lacks "c"`},
	} {
		saved, err := list(c[0]).head()
		if err != nil {
			t.Fatal(err)
		}
		if err := list(c[1]).fits(saved); err == nil || !strings.HasSuffix(err.Error(), c[2]) {
			t.Errorf("%s for %s: %v, want %s", c[0], c[1], err, c[2])
		}
	}
}
