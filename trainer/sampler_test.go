package trainer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// deal is what every rank of a world gets in an epoch.
func deal(t testing.TB, n, world, epoch int, c SamplerConfig) [][]int {
	t.Helper()
	all := make([][]int, world)
	for rank := range world {
		s, err := NewDistributedSampler(n, world, rank, c)
		if err != nil {
			t.Fatal(err)
		}
		s.SetEpoch(epoch)
		all[rank] = s.Indices()
		if s.Len() != len(all[rank]) {
			t.Fatalf("Len = %d, but %d indices", s.Len(), len(all[rank]))
		}
	}
	return all
}

// Measured with torch.utils.data.DistributedSampler of PyTorch 1.13.1.
func TestDistributedSamplerDealsAsTorch(t *testing.T) {
	for _, c := range []struct {
		n, world, epoch int
		config          SamplerConfig
		want            string
	}{
		{10, 4, 0, SamplerConfig{}, "[[0 4 8] [1 5 9] [2 6 0] [3 7 1]]"},
		{10, 4, 0, SamplerConfig{DropLast: true}, "[[0 4] [1 5] [2 6] [3 7]]"},
		{2, 4, 0, SamplerConfig{}, "[[0] [1] [0] [1]]"},
		{10, 4, 0, SamplerConfig{Shuffle: true}, "[[4 3 6] [1 9 2] [7 0 4] [5 8 1]]"},
		{10, 4, 1, SamplerConfig{Shuffle: true}, "[[5 0 7] [6 8 4] [1 9 5] [2 3 6]]"},
		{10, 4, 0, SamplerConfig{Shuffle: true, Seed: 1}, "[[5 0 7] [6 8 4] [1 9 5] [2 3 6]]"},
		{10, 3, 2, SamplerConfig{Shuffle: true, Seed: 3, DropLast: true}, "[[1 6 0] [4 3 2] [9 5 8]]"},

		// Padding that wraps more than once, and nothing to deal at all.
		{2, 7, 0, SamplerConfig{}, "[[0] [1] [0] [1] [0] [1] [0]]"},
		{2, 4, 0, SamplerConfig{DropLast: true}, "[[] [] [] []]"},
		{0, 2, 0, SamplerConfig{Shuffle: true}, "[[] []]"},

		// In order, the epoch makes no difference.
		{4, 2, 9, SamplerConfig{Seed: 5}, "[[0 2] [1 3]]"},
	} {
		if got := fmt.Sprint(deal(t, c.n, c.world, c.epoch, c.config)); got != c.want {
			t.Errorf("%d samples, world %d, epoch %d, %+v:\n got %s\nwant %s", c.n, c.world, c.epoch, c.config, got, c.want)
		}
	}
}

// Whatever the sizes: as many for each rank, and each sample once, save that
// padding repeats less than a world's worth and dropping leaves out as little.
func TestDistributedSamplerIsFair(t *testing.T) {
	for n := 1; n <= 20; n++ {
		for world := 1; world <= 9; world++ {
			for _, c := range []SamplerConfig{
				{}, {DropLast: true}, {Shuffle: true, Seed: 3}, {Shuffle: true, DropLast: true},
			} {
				fair(t, n, world, c)
			}
		}
	}
}

func fair(t *testing.T, n, world int, c SamplerConfig) {
	t.Helper()
	count := make([]int, n)
	dealt := 0
	all := deal(t, n, world, n+world, c)
	for _, mine := range all {
		if len(mine) != len(all[0]) {
			t.Fatalf("n %d, world %d, %+v: unequal shares %v", n, world, c, all)
		}
		for _, i := range mine {
			count[i]++
			dealt++
		}
	}
	least, most := n, n+world-1
	if c.DropLast {
		least, most = n-world+1, n
	}
	if dealt < least || dealt > most {
		t.Fatalf("n %d, world %d, %+v: dealt %d, want %d to %d", n, world, c, dealt, least, most)
	}
	if slices.Min(count) < dealt/n || slices.Max(count) > (dealt+n-1)/n {
		t.Fatalf("n %d, world %d, %+v: some samples more often than others: %v", n, world, c, all)
	}
}

func TestNewDistributedSamplerRefuses(t *testing.T) {
	for _, c := range []struct {
		n, world, rank int
		want           string
	}{
		{-1, 1, 0, "-1 samples"},
		{MaxSamples + 1, 1, 0, "214748365 samples, want 0 to 214748364"},
		{10, 0, 0, "a world of 0"},
		{10, -2, 0, "a world of -2"},
		{10, 4, 4, "rank 4 is outside the world of 4"},
		{10, 4, -1, "rank -1 is outside the world of 4"},
	} {
		_, err := NewDistributedSampler(c.n, c.world, c.rank, SamplerConfig{})
		if err == nil || !strings.HasPrefix(err.Error(), "trainer: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewDistributedSampler(%d, %d, %d): %v, want %q", c.n, c.world, c.rank, err, c.want)
		}
	}
}

// The global batches of one step hold the same samples for every world size,
// which is why 1, 2 and 4 ranks can be compared at all.
func TestGlobalBatchesAreTheSameForAnyWorld(t *testing.T) {
	const n, global = 64, 16
	c := SamplerConfig{Shuffle: true, Seed: 11}
	steps := func(world int) (out [][]int) {
		out = make([][]int, n/global)
		for _, mine := range deal(t, n, world, 0, c) {
			step := 0
			for b := range Batches(mine, global/world, true) {
				out[step] = append(out[step], b...)
				step++
			}
		}
		for _, b := range out {
			slices.Sort(b)
		}
		return out
	}
	for _, world := range []int{2, 4} {
		if got, want := steps(world), steps(1); !reflect.DeepEqual(got, want) {
			t.Errorf("world %d:\n got %v\nwant %v", world, got, want)
		}
	}
}

func TestBatches(t *testing.T) {
	for _, c := range []struct {
		n, size  int
		dropLast bool
		want     string
	}{
		{7, 3, false, "[[0 1 2] [3 4 5] [6]]"},
		{7, 3, true, "[[0 1 2] [3 4 5]]"},
		{6, 3, false, "[[0 1 2] [3 4 5]]"},
		{6, 3, true, "[[0 1 2] [3 4 5]]"},
		{2, 3, true, "[]"},
		{0, 3, false, "[]"},
	} {
		got := slices.Collect(Batches(inOrder(c.n), c.size, c.dropLast))
		if s := fmt.Sprint(got); s != c.want {
			t.Errorf("Batches(%d, %d, %v) = %s, want %s", c.n, c.size, c.dropLast, s, c.want)
		}
	}
	for _, dropLast := range []bool{false, true} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a batch size of 0, dropLast %v, did not panic", dropLast)
				}
			}()
			Batches(inOrder(3), 0, dropLast)
		}()
	}
}

func ExampleDistributedSampler() {
	for rank := range 2 {
		s, err := NewDistributedSampler(10, 2, rank, SamplerConfig{Shuffle: true})
		if err != nil {
			panic(err)
		}
		for epoch := range 2 {
			s.SetEpoch(epoch)
			for batch := range Batches(s.Indices(), 3, false) {
				fmt.Println("rank", rank, "epoch", epoch, batch)
			}
		}
	}
	// Output:
	// rank 0 epoch 0 [4 7 3]
	// rank 0 epoch 0 [0 6]
	// rank 0 epoch 1 [5 1 0]
	// rank 0 epoch 1 [9 7]
	// rank 1 epoch 0 [1 5 9]
	// rank 1 epoch 0 [8 2]
	// rank 1 epoch 1 [6 2 8]
	// rank 1 epoch 1 [3 4]
}
