package main

import (
	"fmt"
	"math"

	"peermesh/internal/bytesize"
)

// A size is a flag's number of bytes, with an optional unit: kB, MB, GB are powers of
// 1000, KiB, MiB, GiB of 1024.
type size int64

// UnmarshalText parses a size.
func (s *size) UnmarshalText(text []byte) error {
	n, err := bytesize.Parse(string(text))
	if err != nil {
		return err
	}
	if n > math.MaxInt64/2 {
		return fmt.Errorf("%s are more bytes than anything holds", text)
	}
	*s = size(n)
	return nil
}

// String is the size in the largest unit of which it is a whole number.
func (s size) String() string { return bytesize.Flag(int64(s)) }
