package mesh

import (
	"hash/fnv"
	"os"
	"runtime"
	"strings"
	"time"
)

const (
	// coreBits are those of a number of processors, which is below maxCores or that, and
	// maxSet bounds the number that is said with it.
	coreBits = 17
	maxCores = 1 << (coreBits - 1)
	maxSet   = 1<<(32-coreBits) - 1
)

// A coreSet is what a rank says of the processors that it may use: how many they are, and
// a number for which. Ranks of a host with the same processors share them; those with
// others, as ranks are that were each bound to one, do not.
type coreSet struct{ n, set int }

// ownCores are this process's. What the system does not tell is 0.
func ownCores() coreSet {
	c := coreSet{n: runtime.NumCPU()}
	status, err := os.ReadFile("/proc/self/status") // of Linux, where alone ranks are bound
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			h := fnv.New32a()
			h.Write([]byte(strings.TrimSpace(list)))
			c.set = 1 + int(h.Sum32()%maxSet)
		}
	}
	return c
}

// processors is a rank's reading of itself.
func processors(rank int, c coreSet) reading {
	return reading{rank, time.Duration(min(c.n, maxCores)|c.set<<coreBits) * time.Microsecond}
}

// cores is what such a reading says.
func (r reading) cores() coreSet {
	said := int(r.latency / time.Microsecond)
	return coreSet{min(said&(1<<coreBits-1), maxCores), said >> coreBits}
}

// coresOf are the ranks' readings of themselves.
func coresOf(rows [][]reading) []coreSet {
	cores := make([]coreSet, len(rows))
	for rank, row := range rows {
		for _, r := range row {
			if r.rank == rank {
				cores[rank] = r.cores()
			}
		}
	}
	return cores
}

// Cores is how many processors a rank may use, or 0 if it has not said.
func (c *chart) Cores(rank int) int { return c.cores[rank].n }

// CoreSet is a number for which they are, or 0: ranks of one host that have the same share
// them.
func (c *chart) CoreSet(rank int) int { return c.cores[rank].set }

// Processors is how many processors this rank may use, and a number for which: see
// Group.Measure of package ops, which passes them on.
func (w *World) Processors() (n, set int) {
	c := ownCores()
	return c.n, c.set
}
