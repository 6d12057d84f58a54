package compress

import (
	"fmt"
	"slices"
	"strings"

	"peermesh/ops"
	"peermesh/trainer"
)

// namedStart is when the PowerSGD of New begins, in steps: short runs have few.
const namedStart = 10

// kinds are the hooks by their names on a command line.
var kinds = []struct {
	name string
	make func(params []*trainer.Param) (Hook, error)
}{
	{"float16", coded(Float16{})},
	{"bfloat16", coded(BFloat16{})},
	{"int8", coded(Int8(0))},
	{"int4", coded(Int4(0))},
	{"onebit", coded(OneBit(0))},
	{"topk", func([]*trainer.Param) (Hook, error) { return new(TopK), nil }},
	{"powersgd", func(params []*trainer.Param) (Hook, error) {
		return NewPowerSGD(params, PowerSGDConfig{Start: namedStart, Rank: 2})
	}},
}

func coded(c ops.Codec) func([]*trainer.Param) (Hook, error) {
	return func([]*trainer.Param) (Hook, error) { return &Coded{Codec: c}, nil }
}

// Names are what New knows.
func Names() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// New is the hook of a name, for parameters, with settings that do for most: codecs with
// feedback and their default blocks, TopK with its fraction, and a PowerSGD of rank 2 that
// begins at the tenth step.
func New(name string, params []*trainer.Param) (Hook, error) {
	for _, k := range kinds {
		if k.name == name {
			return k.make(params)
		}
	}
	return nil, fmt.Errorf("compress: no hook is called %q: want one of %s", name, strings.Join(slices.Sorted(slices.Values(Names())), ", "))
}
