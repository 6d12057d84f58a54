package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxBenchSizes bounds the sizes of one run.
	maxBenchSizes = 256
	// maxBenchBytes bounds one buffer; a rank has a few of them.
	maxBenchBytes = 8 << 30
)

// A benchPlan is what to measure, and how thoroughly.
type benchPlan struct {
	ops     []benchOp
	sizes   []int64
	dtypes  []benchType
	iters   int // zero: by the budget
	warmup  int // negative: by iters
	budget  float64
	measure bool   // the links first
	over    string // what --transport says: between two ranks it takes both to have it so
}

// plan reads the flags' texts.
func (b *benchCmd) plan() (*benchPlan, error) {
	p := &benchPlan{iters: b.Iters, warmup: -1, budget: b.Budget, measure: b.Measure, over: b.Transport}
	set(&p.warmup, b.Warmup)
	var err error
	if p.ops, err = parseList("--op", b.Op, benchOps, benchOp.String); err != nil {
		return nil, err
	}
	if p.dtypes, err = parseList("--dtypes", b.DTypes, benchTypes, benchType.String); err != nil {
		return nil, err
	}
	p.sizes, err = parseSizes(b.Sizes)
	return p, err
}

// String is what all ranks must have alike, for agree.
func (p *benchPlan) String() string {
	return fmt.Sprintf("--op %v, --sizes %v, --dtypes %v, --iters %d, --warmup %d, --budget %v, --measure %v, --transport %s",
		p.ops, p.sizes, p.dtypes, p.iters, p.warmup, p.budget, p.measure, p.over)
}

// parseList finds each name of a list among those known; "all" is all of them.
// Names may be written as in Go's flags or as in torch's functions: all-reduce and
// all_reduce are one.
func parseList[T any](flag, text string, known []T, name func(T) string) (list []T, err error) {
	if text == "all" {
		return known, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		wanted := strings.ReplaceAll(word, "-", "_")
		i := slices.IndexFunc(known, func(k T) bool { return name(k) == cmp.Or(synonyms[wanted], wanted) })
		if i < 0 {
			return nil, fmt.Errorf("%s %q: want some of %s, or all", flag, word, namesOf(known, name))
		}
		list = append(list, known[i])
	}
	return list, nil
}

// namesOf lists what can be chosen from.
func namesOf[T any](known []T, name func(T) string) string {
	var names []string
	for _, k := range known {
		names = append(names, name(k))
	}
	return strings.Join(names, ", ")
}

// parseSizes reads sizes and ranges of sizes: 8, 1KiB..1MiB, 1KiB..64MiB*4.
func parseSizes(text string) (sizes []int64, err error) {
	for word := range strings.SplitSeq(text, ",") {
		some, err := parseRange(word)
		if err != nil {
			return nil, err
		}
		if sizes = append(sizes, some...); len(sizes) > maxBenchSizes {
			return nil, fmt.Errorf("--sizes has more than %d", maxBenchSizes)
		}
	}
	return sizes, nil
}

// parseRange reads FROM, FROM..TO or FROM..TO*FACTOR.
func parseRange(word string) (sizes []int64, err error) {
	first, rest, isRange := strings.Cut(word, "..")
	last, by, given := strings.Cut(rest, "*")
	factor := 2
	if given {
		if factor, err = strconv.Atoi(by); err != nil || factor < 2 || factor > 1<<20 {
			return nil, fmt.Errorf("--sizes %s: %q is not a factor of 2 or more", word, by)
		}
	}
	if !isRange {
		last = first
	}
	var from, to size
	if err := errors.Join(from.UnmarshalText([]byte(first)), to.UnmarshalText([]byte(last))); err != nil {
		return nil, fmt.Errorf("--sizes %s: %w", word, err)
	}
	if from < 1 || to < from || to > maxBenchBytes {
		return nil, fmt.Errorf("--sizes %s: want sizes from 1 to %v, the smaller first", word, size(maxBenchBytes))
	}
	for s := from; s <= to; s *= size(factor) {
		sizes = append(sizes, int64(s))
	}
	return sizes, nil
}
