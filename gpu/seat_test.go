package gpu

import (
	"reflect"
	"slices"
	"testing"
)

// TestArrange has hosts of several GPUs, of one that is shared, and of none.
func TestArrange(t *testing.T) {
	a, b, c := [16]byte{1}, [16]byte{2}, [16]byte{3}
	none := [16]byte{}
	for _, test := range []struct {
		name  string
		seats []Seat
		want  []Site
		heads [][]int
	}{
		{name: "nobody"},
		{"one without a GPU", []Seat{{"x", none}}, []Site{{"x", []Unit{{none, []int{0}}}}}, [][]int{nil}},
		{"two hosts, unequal", []Seat{{"x", a}, {"y", c}, {"x", b}},
			[]Site{{"x", []Unit{{a, []int{0}}, {b, []int{2}}}}, {"y", []Unit{{c, []int{1}}}}}, [][]int{{0, 2}, {1}}},
		{"a GPU that is shared", []Seat{{"x", a}, {"x", b}, {"x", a}, {"x", none}},
			[]Site{{"x", []Unit{{a, []int{0, 2}}, {b, []int{1}}, {none, []int{3}}}}}, [][]int{{0, 1}}},
		{"the same number on two hosts", []Seat{{"x", a}, {"y", a}},
			[]Site{{"x", []Unit{{a, []int{0}}}}, {"y", []Unit{{a, []int{1}}}}}, [][]int{{0}, {1}}},
	} {
		got := Arrange(test.seats)
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
			continue
		}
		for i, s := range got {
			if !slices.Equal(s.Heads(), test.heads[i]) {
				t.Errorf("%s: heads of %s: %v, want %v", test.name, s.Host, s.Heads(), test.heads[i])
			}
		}
	}
}
