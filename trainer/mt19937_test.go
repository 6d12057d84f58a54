package trainer

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
)

// digest is the SHA-256 of a permutation printed one number a line, as
// `for v in p: print(v)` would feed it to sha256sum.
func digest(p []int) string {
	h := sha256.New()
	for _, v := range p {
		fmt.Fprintln(h, v)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// The C++ standard fixes the 10,000th word of the default seed
// ([rand.predef]); the authors' mt19937ar.out begins with the keyed words.
func TestMT19937ReferenceOutputs(t *testing.T) {
	m := seededMT(5489)
	for range 9999 {
		m.uint32()
	}
	if got := m.uint32(); got != 4123659995 {
		t.Errorf("word 10000 of seed 5489 = %d, want 4123659995", got)
	}

	m = keyedMT([]uint32{0x123, 0x234, 0x345, 0x456})
	want := []uint32{1067595299, 955945823, 477289528, 4107218783, 4228976476}
	for i, w := range want {
		if got := m.uint32(); got != w {
			t.Errorf("keyed word %d = %d, want %d", i, got, w)
		}
	}
}

// A key longer than the state goes round it more than once:
// random.Random(sum(i << 32*i for i in range(701))).getrandbits(32).
func TestMT19937LongKey(t *testing.T) {
	key := make([]uint32, 701)
	for i := range key {
		key[i] = uint32(i)
	}
	if got := keyedMT(key).uint32(); got != 3778866940 {
		t.Errorf("first word = %d, want %d", got, 3778866940)
	}
}

// What torch.randperm(n, generator=torch.Generator().manual_seed(seed)) gives.
func TestTorchPerm(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		want []int
	}{
		{0, []int{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}},
		{1, []int{5, 6, 1, 2, 0, 8, 9, 3, 7, 4}},
		{1<<32 + 1, []int{5, 6, 1, 2, 0, 8, 9, 3, 7, 4}}, // only 32 bits count
	} {
		if got := torchPerm(10, c.seed); !slices.Equal(got, c.want) {
			t.Errorf("torchPerm(10, %d) = %v, want %v", c.seed, got, c.want)
		}
	}
	for _, c := range []struct {
		seed   uint64
		begin  []int
		digest string
	}{
		{0, []int{36044, 10678, 57327, 55074}, "b33143a6760d28650113b0096fb5c63b86eb070aa440cdce3e9078b6940b6eed"},
		{1, []int{35845, 27522, 33254, 23645}, "19a70cc7ccfedbf01436e98a55a06ac13ce9ecb6847ab439fc5081da938a42fb"},
		{42, []int{37542, 43087, 2992, 25810}, "2a0a93841b9c8717807c7672316efc827ef1cbffc22376b1574821375db7f4e9"},
	} {
		p := torchPerm(60000, c.seed)
		if !slices.Equal(p[:4], c.begin) || digest(p) != c.digest {
			t.Errorf("torchPerm(60000, %d) begins %v, digest %s; want %v, %s", c.seed, p[:4], digest(p), c.begin, c.digest)
		}
	}
}

// What Python leaves in x after x = list(range(n)); random.Random(seed).shuffle(x).
func TestPythonShuffle(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		want []int
	}{
		{0, []int{7, 8, 1, 5, 3, 4, 2, 0, 9, 6}},
		{1, []int{6, 8, 9, 7, 5, 3, 0, 4, 1, 2}},
		{1234, []int{2, 8, 3, 5, 6, 4, 9, 0, 1, 7}},
		{1<<32 - 1, []int{0, 7, 1, 5, 2, 6, 4, 8, 3, 9}},
		{1 << 32, []int{8, 9, 3, 2, 4, 7, 0, 6, 5, 1}}, // the key is two words from here
		{1<<64 - 1, []int{2, 6, 7, 9, 8, 1, 4, 5, 3, 0}},
	} {
		if got := pythonShuffle(10, c.seed); !slices.Equal(got, c.want) {
			t.Errorf("pythonShuffle(10, %d) = %v, want %v", c.seed, got, c.want)
		}
	}
	p := pythonShuffle(60000, 1234)
	if got, want := p[:5], []int{33712, 36159, 45528, 25849, 53734}; !slices.Equal(got, want) {
		t.Errorf("pythonShuffle(60000, 1234) begins %v, want %v", got, want)
	}
	if got, want := p[59996:], []int{490, 7657, 28883, 50997}; !slices.Equal(got, want) {
		t.Errorf("pythonShuffle(60000, 1234) ends %v, want %v", got, want)
	}
	if got, want := digest(p), "8624ec2b7e36bfe47376d212b89c98b24240290c7469ba40655477badd4d793c"; got != want {
		t.Errorf("digest = %s, want %s", got, want)
	}
}

func TestShufflesOfAlmostNothing(t *testing.T) {
	for n := range 2 {
		if got := torchPerm(n, 7); !slices.Equal(got, inOrder(n)) {
			t.Errorf("torchPerm(%d) = %v", n, got)
		}
		if got := pythonShuffle(n, 7); !slices.Equal(got, inOrder(n)) {
			t.Errorf("pythonShuffle(%d) = %v", n, got)
		}
	}
}
