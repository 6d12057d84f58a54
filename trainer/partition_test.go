package trainer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Measured with the tutorial's class on CPython 3.11.
func TestDataPartitionerCutsAsTheTutorial(t *testing.T) {
	for _, c := range []struct {
		n         int
		fractions []float64
		want      string
	}{
		{10, []float64{1}, "[[2 8 3 5 6 4 9 0 1 7]]"},
		{10, []float64{0.5, 0.5}, "[[2 8 3 5 6] [4 9 0 1 7]]"},
		{10, []float64{1. / 3, 1. / 3, 1. / 3}, "[[2 8 3] [5 6 4] [9 0 1]]"}, // 7 is nobody's
		{10, []float64{0.7, 0.2, 0.1}, "[[2 8 3 5 6 4 9] [0 1] [7]]"},        // the class's default
		{10, []float64{0, 0.25}, "[[] [2 8]]"},
		{0, []float64{1}, "[[]]"},
		{3, nil, "[]"},
	} {
		p, err := NewDataPartitioner(c.n, c.fractions, 1234)
		if err != nil {
			t.Errorf("%d in %v: %v", c.n, c.fractions, err)
			continue
		}
		got := make([][]int, len(c.fractions))
		for i := range got {
			got[i] = p.Use(i)
		}
		if s := fmt.Sprint(got); s != c.want {
			t.Errorf("%d in %v: %s, want %s", c.n, c.fractions, s, c.want)
		}
	}
}

func TestDataPartitionerOfMNIST(t *testing.T) {
	p, err := NewDataPartitioner(60000, []float64{0.5, 0.5}, 1234)
	if err != nil {
		t.Fatal(err)
	}
	first, second := p.Use(0), p.Use(1)
	if want := []int{33712, 36159, 45528, 25849, 53734}; !slices.Equal(first[:5], want) {
		t.Errorf("the first half begins %v, want %v", first[:5], want)
	}
	if want := []int{490, 7657, 28883, 50997}; !slices.Equal(second[len(second)-4:], want) {
		t.Errorf("the second half ends %v, want %v", second[len(second)-4:], want)
	}
	all := slices.Concat(first, second)
	slices.Sort(all)
	if !slices.Equal(all, inOrder(60000)) {
		t.Error("the halves are not the whole")
	}
}

// A part must not run into its neighbour when somebody appends to it.
func TestUseLendsAClippedSlice(t *testing.T) {
	p, err := NewDataPartitioner(10, []float64{0.5, 0.5}, 1234)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(p.Use(0), -1)
	if got := p.Use(1)[0]; got != 4 {
		t.Errorf("the second part begins with %d, want 4", got)
	}
}

func TestNewDataPartitionerRefuses(t *testing.T) {
	for _, c := range []struct {
		n         int
		fractions []float64
		want      string
	}{
		{-1, nil, "-1 samples"},
		{MaxSamples + 1, nil, "samples, want 0 to"},
		{10, []float64{0.5, -0.1}, "fraction 1 is -0.1"},
		{10, []float64{1.5}, "fraction 0 is 1.5"},
		{10, []float64{math.NaN()}, "fraction 0 is NaN"},
		{10, []float64{math.Inf(1)}, "fraction 0 is +Inf"},
		{10, []float64{0.6, 0.6}, "add up to more than 1"},
	} {
		_, err := NewDataPartitioner(c.n, c.fractions, 0)
		if err == nil || !strings.HasPrefix(err.Error(), "trainer: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewDataPartitioner(%d, %v): %v, want %q", c.n, c.fractions, err, c.want)
		}
	}
}

func TestUseOfNoPartPanics(t *testing.T) {
	p, err := NewDataPartitioner(4, []float64{0.5, 0.5}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Use(2) of 2 parts did not panic")
		}
	}()
	p.Use(2)
}

func ExampleDataPartitioner() {
	p, err := NewDataPartitioner(10, []float64{0.5, 0.5}, 1234)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Use(0), p.Use(1))
	// Output: [2 8 3 5 6] [4 9 0 1 7]
}
