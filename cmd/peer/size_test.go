package main

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"0": 0, "4096": 4096, "12B": 12, "1kB": 1000, "64KiB": 65536,
		"1.5MiB": 3 << 19, "2MB": 2e6, "1GiB": 1 << 30, "3GB": 3e9} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "-1", "1e400", "1 MiB", "1TiB", "1mb", "NaN", "Inf", "99999999999GiB"} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q = %d, want an error", text, got)
		}
	}
}

func TestSizeString(t *testing.T) {
	for n, want := range map[size]string{0: "0B", 12: "12B", 1000: "1kB", 1024: "1KiB", 1536: "1536B", 3 << 19: "1536KiB",
		5e8: "500MB", 1 << 30: "1GiB", 1 << 40: "1024GiB"} {
		var back size
		if got := n.String(); got != want || back.UnmarshalText([]byte(got)) != nil || back != n {
			t.Errorf("%d is printed as %s, which is %d; want %s", int64(n), got, int64(back), want)
		}
	}
}
