package bytesize

import (
	"math"
	"testing"
)

func TestText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 5: "5 B", 1000: "1000 B", 1536: "1536 B", 64 << 10: "64 KiB", 16 << 20: "16 MiB",
		2 << 30: "2 GiB", 1 << 40: "1024 GiB", -4096: "-4 KiB"} {
		if got := Text(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestFlag(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 12: "12B", 1000: "1kB", 1024: "1KiB", 1536: "1536B", 3 << 19: "1536KiB",
		5e8: "500MB", 1 << 30: "1GiB", 1 << 40: "1024GiB"} {
		got := Flag(n)
		if back, err := Parse(got); got != want || err != nil || back != float64(n) {
			t.Errorf("%d is written %s, which is %v, %v; want %s", n, got, back, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "4096": 4096, "12B": 12, "1kB": 1000, "64KiB": 65536, "0.5B": 0.5,
		"1.5MiB": 3 << 19, "2MB": 2e6, "1GiB": 1 << 30, "3GB": 3e9, "1e3kB": 1e6} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "-1", "1e400", "1e308GiB", "1 MiB", "1TiB", "1mb", "1kiB", "NaN", "Inf", "0x"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q = %v, want an error", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"4096", "1.5MiB", "64KiB", "500MB", "-0", "1e308GiB", "BGKMik"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Parse(text)
		if err != nil {
			return
		}
		if !(n >= 0) || math.IsInf(n, 0) {
			t.Fatalf("%q = %v", text, n)
		}
		if n != math.Trunc(n) || n >= 1<<53 {
			return // Flag has whole bytes
		}
		if back, err := Parse(Flag(int64(n))); err != nil || back != n {
			t.Fatalf("%q = %v, written %s, read %v, %v", text, n, Flag(int64(n)), back, err)
		}
	})
}
