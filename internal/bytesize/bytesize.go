package bytesize

import (
	"fmt"
	"strconv"
	"strings"
)

// A unit is a word for so many bytes.
type unit struct {
	name string
	of   int64
}

// binary are the units of text for people, and units those that are read, each of the
// largest that divides a number before the smaller ones.
var (
	binary = []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
	units  = []unit{{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}}
)

// Text is n bytes for people, as 64 KiB: in the largest binary unit that divides n, so
// that nothing is rounded.
func Text(n int64) string {
	n, u := in(binary, n)
	return fmt.Sprintf("%d %s", n, u)
}

// Flag is n bytes as one writes them on a command line, as 64KiB or 500MB: in the largest
// unit that divides n. Parse reads it back.
func Flag(n int64) string {
	n, u := in(units, n)
	return fmt.Sprintf("%d%s", n, u)
}

// in is n in the first of some units that divides it.
func in(units []unit, n int64) (int64, string) {
	for _, u := range units {
		if n != 0 && n%u.of == 0 {
			return n / u.of, u.name
		}
	}
	return n, "B"
}

// Parse reads a number of bytes, as 4096, 12B, 64KiB or 1.5MB, which need not be whole:
// 0.3kB is, and 0.3B is not. It is neither negative nor infinite.
func Parse(text string) (float64, error) {
	// The digits end where the letters of a unit begin; ParseFloat sees to the rest.
	digits := strings.TrimRight(text, "BGKMik")
	of, known := factor(text[len(digits):])
	n, err := strconv.ParseFloat(digits, 64)
	if n *= of; err != nil || !known || !(n >= 0 && n-n == 0) {
		return 0, fmt.Errorf("%q is not a size: want a number of bytes, as 4096, 64KiB or 1.5MiB", text)
	}
	return n, nil
}

// factor is the bytes that a unit's name, or none, stands for.
func factor(name string) (of float64, known bool) {
	if name == "" || name == "B" {
		return 1, true
	}
	for _, u := range units {
		if u.name == name {
			return float64(u.of), true
		}
	}
	return 0, false
}
