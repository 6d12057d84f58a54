package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A size is a number of bytes with an optional unit: kB, MB, GB are powers of
// 1000, KiB, MiB, GiB of 1024.
type size int64

var units = map[string]float64{"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// UnmarshalText parses a size.
func (s *size) UnmarshalText(text []byte) error {
	// The digits end where the letters of a unit begin; ParseFloat sees to the rest.
	digits := strings.TrimRight(string(text), "BGKMik")
	unit, known := units[string(text[len(digits):])]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !known || !(n >= 0) || n*unit > math.MaxInt64/2 {
		return fmt.Errorf("%q is not a size: want a number of bytes, as 4096, 64KiB or 1.5MiB", text)
	}
	*s = size(n * unit)
	return nil
}

// String is the size in the largest unit of which it is a whole number.
func (s size) String() string {
	for _, unit := range []string{"GiB", "GB", "MiB", "MB", "KiB", "kB"} {
		if n := size(units[unit]); s > 0 && s%n == 0 {
			return fmt.Sprintf("%d%s", s/n, unit)
		}
	}
	return fmt.Sprintf("%dB", int64(s))
}
