package trainer

import (
	"crypto/sha256"
	"fmt"
	"sort"
)

// partSize is the unit in which a state is verified, carried and kept: each part
// but the last has so many bytes of the body.
const partSize = 1 << 20

// A sum is a SHA-256.
type sum [sha256.Size]byte

func (s sum) String() string { return fmt.Sprintf("%x", s[:6]) }

// A label says exactly what a state is: its head and the hash of each part of its
// body. Two states are the same if the hashes of their labels are.
type label struct {
	head []byte
	sums []sum
}

// hash is over the head, which says itself how long it is, and the sums.
func (l label) hash() sum {
	h := sha256.New()
	h.Write(l.head)
	for i := range l.sums {
		h.Write(l.sums[i][:])
	}
	return sum(h.Sum(nil))
}

// A body is the values of tensors as if they were one after the other.
type body struct {
	params []*Param
	ends   []int64
}

func newBody(params []*Param) *body {
	b := &body{params: params}
	var end int64
	for _, p := range params {
		end += p.Value.Bytes()
		b.ends = append(b.ends, end)
	}
	return b
}

func (b *body) size() int64 {
	if len(b.ends) == 0 {
		return 0
	}
	return b.ends[len(b.ends)-1]
}

func (b *body) parts() int { return partsOf(b.size()) }

func partsOf(size int64) int { return int((size + partSize - 1) / partSize) }

// bounds are the bytes of part i, [lo, hi).
func bounds(size int64, i int) (lo, hi int64) {
	return int64(i) * partSize, min(int64(i+1)*partSize, size)
}

// each calls f for the pieces of p, which begins at off, tensor by tensor.
func (b *body) each(p []byte, off int64, f func(t *Param, piece []byte, at int64) error) error {
	for i := sort.Search(len(b.ends), func(i int) bool { return b.ends[i] > off }); len(p) > 0; i++ {
		t := b.params[i]
		at := off - (b.ends[i] - t.Value.Bytes())
		n := min(int64(len(p)), b.ends[i]-off)
		if err := f(t, p[:n], at); err != nil {
			return fmt.Errorf("trainer: state: %q: %w", t.Name, err)
		}
		p, off = p[n:], off+n
	}
	return nil
}

// read fills p with the bytes from off on, which must be there.
func (b *body) read(p []byte, off int64) error {
	return b.each(p, off, func(t *Param, piece []byte, at int64) error {
		_, err := t.Value.ReadAt(piece, at)
		return err
	})
}

// write is the reverse of read.
func (b *body) write(p []byte, off int64) error {
	return b.each(p, off, func(t *Param, piece []byte, at int64) error {
		_, err := t.Value.WriteAt(piece, at)
		return err
	})
}

// label hashes the state as it is now.
func (s *State) label() (label, error) {
	h, err := s.head()
	if err != nil {
		return label{}, err
	}
	b := newBody(s.all())
	l := label{head: h.encode(), sums: make([]sum, b.parts())}
	p := make([]byte, min(partSize, b.size()))
	for i := range l.sums {
		lo, hi := bounds(b.size(), i)
		if err := b.read(p[:hi-lo], lo); err != nil {
			return label{}, err
		}
		l.sums[i] = sha256.Sum256(p[:hi-lo])
	}
	return l, nil
}

// A cargo is a state on its way here: parts arrive in any order, and none is
// kept that does not have the label's hash. It becomes the state only as a whole.
type cargo struct {
	label
	whole sum
	body  []byte
	have  []bool
}

func newCargo(l label, size int64) *cargo {
	return &cargo{label: l, whole: l.hash(), body: make([]byte, size), have: make([]bool, len(l.sums))}
}

// part is the memory of part i.
func (c *cargo) part(i int) []byte {
	lo, hi := bounds(int64(len(c.body)), i)
	return c.body[lo:hi:hi]
}

// accept marks part i as here, if its memory holds what it should.
func (c *cargo) accept(i int) error {
	if got := sum(sha256.Sum256(c.part(i))); got != c.sums[i] {
		return fmt.Errorf("part %d of %d has the hash %v, want %v", i, len(c.sums), got, c.sums[i])
	}
	c.have[i] = true
	return nil
}

// unload makes the cargo, which is complete, the state. It reads back what it has
// written: memory that does not keep it would otherwise show at the next Carry,
// as a rank that has parted from the others.
func (c *cargo) unload(s *State) error {
	h, err := decodeHead(c.head)
	if err != nil {
		return err
	}
	if err := s.fits(h); err != nil {
		return err
	}
	if err := newBody(s.all()).write(c.body, 0); err != nil {
		return err
	}
	if err := s.setRandom(h.random); err != nil {
		return err
	}
	s.Progress = h.Progress
	l, err := s.label()
	if err == nil && l.hash() != c.whole {
		err = fmt.Errorf("trainer: state: written with the hash %v, read back with %v", c.whole, l.hash())
	}
	return err
}

// fits checks that a head describes the tensors of s.
func (s *State) fits(h head) error {
	own, err := s.head()
	if err != nil {
		return err
	}
	if len(h.tensors) != len(own.tensors) {
		return fmt.Errorf("trainer: a state of %d tensors, want %d%s", len(h.tensors), len(own.tensors), differ(h.tensors, own.tensors))
	}
	for i, t := range own.tensors {
		if got := h.tensors[i]; got.String() != t.String() {
			return fmt.Errorf("trainer: tensor %d of the state is %v, want %v", i, got, t)
		}
	}
	return nil
}

// differ names the tensors that one list alone has, a few of them: what tells a person which
// setting, or which part of the model, is another.
func differ(saved, wanted []described) string {
	text := ""
	for _, side := range []struct {
		what      string
		has, lack []described
	}{{"it also has", saved, wanted}, {"it lacks", wanted, saved}} {
		known := make(map[string]bool, len(side.lack))
		for _, t := range side.lack {
			known[t.name] = true
		}
		n := 0
		for _, t := range side.has {
			if known[t.name] {
				continue
			}
			if n++; n == 1 {
				text += fmt.Sprintf("; %s %.100q", side.what, t.name)
			} else if n <= maxNamed {
				text += fmt.Sprintf(", %.100q", t.name)
			}
		}
		if n > maxNamed {
			text += fmt.Sprintf(" and %d more", n-maxNamed)
		}
	}
	return text
}

// maxNamed bounds the tensors that an error names of each side.
const maxNamed = 3
