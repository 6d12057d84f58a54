package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Worlds too large to be run are priced, in the regions of a file or in eight.
func TestSimRanks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "two.txt")
	if err := os.WriteFile(file, []byte("region a 1ms\nregion b 2ms\nrtt a b 80ms\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"sim", "--ranks", "24"}, "among 24 ranks in 8 regions"},
		{[]string{"sim", "--ranks", "9", "--regions", file}, "among 9 ranks in 2 regions"},
	} {
		status, stdout, stderr := in(c.args...)
		if status != 0 || stderr != "" || !strings.Contains(stdout, c.want) || strings.Count(stdout, "priced at") < 9 {
			t.Errorf("%v: status %d, %q\n%s", c.args, status, stderr, stdout)
		}
	}
}

func TestSimRanksErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(file, []byte("region a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"sim", "--ranks", "-1"}, {"sim", "--ranks", "2000000"}, {"sim", "--regions", file},
		{"sim", "--ranks", "8", "--regions", file}, {"sim", "--ranks", "8", "--seed", "1"},
		{"sim", "--ranks", "8", "--regions", filepath.Join(t.TempDir(), "none")},
	} {
		if status, _, stderr := in(args...); status != 2 || stderr == "" {
			t.Errorf("%v: status %d, %q", args, status, stderr)
		}
	}
}
