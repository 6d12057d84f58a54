package mesh

import (
	"runtime"
	"testing"
)

// Ranks say which processors they have in readings of themselves, which tell no way.
func TestChartOfProcessors(t *testing.T) {
	rows := [][]reading{{processors(0, coreSet{2, 7}), {1, 0}}, {processors(1, coreSet{1 << 30, maxSet})}, {}}
	c := newChart(rows, nil)
	if c.Cores(0) != 2 || c.Cores(1) != maxCores || c.Cores(2) != 0 {
		t.Errorf("%d, %d and %d processors", c.Cores(0), c.Cores(1), c.Cores(2))
	}
	if c.CoreSet(0) != 7 || c.CoreSet(1) != maxSet || c.CoreSet(2) != 0 {
		t.Errorf("sets %d, %d and %d", c.CoreSet(0), c.CoreSet(1), c.CoreSet(2))
	}
	if c.Host(0) != c.Host(1) || c.Host(0) == c.Host(2) {
		t.Errorf("hosts %d, %d, %d", c.Host(0), c.Host(1), c.Host(2))
	}
	for _, set := range []coreSet{{64, 0}, {1, 12345}, {maxCores, maxSet}} {
		said := processors(1, set)
		got, err := takeReadings(&scanner{p: appendReadings(nil, []reading{said})}, 2)
		if err != nil || len(got) != 1 || got[0] != said || got[0].cores() != set {
			t.Errorf("%v of %v (%v)", got, said, err)
		}
	}
	if got := (reading{latency: 1<<32 - 1}).cores(); got.n > maxCores || got.set > maxSet {
		t.Errorf("believed %+v", got)
	}
}

func TestOwnCores(t *testing.T) {
	c := ownCores()
	if c.n != runtime.NumCPU() || c.set < 0 || c.set > maxSet || runtime.GOOS == "linux" && c.set == 0 {
		t.Errorf("%+v", c)
	}
	if again := ownCores(); again != c {
		t.Errorf("%+v, then %+v", c, again)
	}
}
