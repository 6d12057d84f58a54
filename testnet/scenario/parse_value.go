package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"peermesh/internal/bytesize"
)

// parseSpan reads "3" or "0-7".
func parseSpan(w string) (Span, error) {
	a, b, two := strings.Cut(w, "-")
	if !two {
		b = a
	}
	first, err := parseInt(a, 0, MaxNodes-1)
	if err != nil {
		return Span{}, err
	}
	last, err := parseInt(b, first, MaxNodes-1)
	return Span{first, last}, err
}

func parseName(w string) (string, error) {
	if len(w) > maxName {
		return "", fmt.Errorf("name of %d bytes: want at most %d", len(w), maxName)
	}
	for _, r := range w {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' {
			return "", fmt.Errorf("name %q: want ASCII letters, digits, - and _", w)
		}
	}
	return w, nil
}

func parseInt(w string, least, most int) (int, error) {
	n, err := strconv.Atoi(w)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q: want a whole number from %d to %d", w, least, most)
	}
	return n, nil
}

func parseTime(w string) (time.Duration, error) {
	d, err := time.ParseDuration(w)
	if err != nil || d < 0 || d > maxTime {
		return 0, fmt.Errorf("%q: want a time from 0s to %v, such as 1.5s", w, maxTime)
	}
	return d, nil
}

// parseSkew reads a time that may be negative.
func parseSkew(w string) (time.Duration, error) {
	ahead, behind := strings.CutPrefix(w, "-")
	d, err := parseTime(ahead)
	if behind {
		d = -d
	}
	return d, err
}

// parseBytes reads a number of bytes such as 4096 or 1.5MiB.
func parseBytes(w string, most float64) (float64, error) {
	n, err := bytesize.Parse(w)
	if err != nil || n > most || n != math.Trunc(n) {
		return 0, fmt.Errorf("%q: want whole bytes up to %v, such as 4096 or 1MiB", w, most)
	}
	return n, nil
}

// parseRate reads bytes per second.
func parseRate(w string) (float64, error) { return parseBytes(w, 1e12) }
