package data_test

import (
	"errors"
	"slices"
	"testing"

	"peermesh/trainer/data"
)

// all reads a whole set.
func all[T any](t *testing.T, set data.Dataset[T]) (x []T) {
	t.Helper()
	for i := range set.Len() {
		v, err := set.At(i)
		if err != nil {
			t.Fatal(err)
		}
		x = append(x, v)
	}
	return x
}

func TestSubset(t *testing.T) {
	indices := []int{3, 0, 3}
	s, err := data.NewSubset(numbers(4), indices)
	if err != nil {
		t.Fatal(err)
	}
	indices[0] = 9
	if got := all(t, s); !slices.Equal(got, []int{30, 0, 30}) {
		t.Error(got)
	}
	for _, i := range []int{-1, 4} {
		if _, err := data.NewSubset(numbers(4), []int{i}); err == nil {
			t.Errorf("took sample %d", i)
		}
	}
}

func TestSplit(t *testing.T) {
	split := func(seed uint64) []int {
		parts, err := data.Split(numbers(10), seed, 7, 0, 3)
		if err != nil {
			t.Fatal(err)
		}
		if parts[0].Len() != 7 || parts[1].Len() != 0 || parts[2].Len() != 3 {
			t.Errorf("%d, %d, %d", parts[0].Len(), parts[1].Len(), parts[2].Len())
		}
		return slices.Concat(all(t, parts[0]), all(t, parts[1]), all(t, parts[2]))
	}
	one := split(1)
	if !slices.Equal(one, split(1)) || slices.Equal(one, split(2)) {
		t.Errorf("%v, %v and %v", one, split(1), split(2))
	}
	if sorted := slices.Sorted(slices.Values(one)); !slices.Equal(sorted, all(t, numbers(10))) {
		t.Errorf("all parts have %v", sorted)
	}
	for _, lengths := range [][]int{{9}, {11}, {-1, 11}, {5, 6}, nil} {
		if _, err := data.Split(numbers(10), 0, lengths...); err == nil {
			t.Errorf("split into %v", lengths)
		}
	}
}

func TestZip(t *testing.T) {
	torn := errors.New("torn")
	bad := data.Func[string]{N: 2, F: func(i int) (string, error) {
		if i == 1 {
			return "", torn
		}
		return "a", nil
	}}
	z, err := data.Zip(numbers(2), bad)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := z.At(0); err != nil || p.X != 0 || p.Y != "a" {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := z.At(1); !errors.Is(err, torn) {
		t.Error(err)
	}
	back, err := data.Zip(bad, numbers(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := back.At(1); !errors.Is(err, torn) {
		t.Error(err)
	}
	if _, err := data.Zip(numbers(2), numbers(3)); err == nil {
		t.Error("2 and 3 were zipped")
	}
}
