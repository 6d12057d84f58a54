package local

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"peermesh/ops"
	"peermesh/trainer"
)

// The defaults of methods' settings, where these are zero.
const (
	DefaultEvery    = 100 // steps, but for SMA and PairAveraging: 1
	DefaultRate     = 0.7 // DiLoCo's outer rate
	DefaultMomentum = 0.9 // and its momentum
	DefaultKeep     = 0.5 // of a model whose synchronisation is late
	DefaultParts    = 4
	DefaultAlpha    = 0.1 // SMA's pull
)

const (
	// MaxEvery bounds the steps from one synchronisation to the next.
	MaxEvery = 1 << 30
	// MaxParts bounds the parts of a model that are synchronised in turn.
	MaxParts = 1 << 10
)

// A Method is how ranks that step on their own come together: a [LocalSGD], a
// [PostLocalSGD], a [DiLoCo], a [StreamingDiLoCo], an [SMA] or a [PairAveraging]. All
// ranks give [New] the same.
type Method interface {
	plan() (plan, error)
}

// LocalSGD averages the models every so many steps (McMahan et al. 2017; Stich 2019).
type LocalSGD struct {
	Every int       // steps; zero: DefaultEvery. 1 averages after every step
	Codec ops.Codec // of what the models have moved since the last time; nil: as it is
}

// PostLocalSGD is LocalSGD after some steps with averaged gradients (Lin et al. 2020),
// when models still move fast. [Replica.Warm] says whether the next step is one of those.
type PostLocalSGD struct {
	Warmup int // steps with averaged gradients
	Every  int
	Codec  ops.Codec
}

// DiLoCo takes the way that the models have come on average for a gradient, and has an
// optimiser of its own follow it, with Nesterov's momentum (Douillard et al. 2023).
type DiLoCo struct {
	Every    int     // inner steps of a round; zero: DefaultEvery
	Rate     float64 // of the outer steps; zero: DefaultRate
	Momentum float64 // likewise; zero: DefaultMomentum, trainer.Zero: none
	Codec    ops.Codec
	// Delay is how many inner steps an outer one may be late, which hides it behind them.
	Delay int
	// Keep is how much of its own a model keeps when the outer step comes, from 0 to below 1.
	// Zero is 0 without Delay and DefaultKeep with one; trainer.Zero is 0.
	Keep float64
}

// StreamingDiLoCo is a DiLoCo that synchronises the model part by part, each in its turn,
// so that no moment needs all of the link (Douillard et al. 2025).
type StreamingDiLoCo struct {
	DiLoCo
	Parts int // of equal size; zero: DefaultParts. At most DiLoCo's Every
}

// SMA pulls every model towards the average of all, a little after each step: KungFu's
// synchronous model averaging (Mai et al. 2020), after CROSSBOW (Koliousis et al. 2019).
type SMA struct {
	Every int     // zero: 1
	Alpha float64 // how far, from 0 to 1; zero: DefaultAlpha
	Codec ops.Codec
}

// PairAveraging has ranks average their models two by two, in pairs that are others each
// time: a synchronous form of AD-PSGD (Lian et al. 2018) and of KungFu's optimiser of
// that name. Who meets whom follows from Seed, the step and the number of ranks.
type PairAveraging struct {
	Every int // zero: 1
	Seed  uint64
	Delay int // how many steps a partner's model may be late
}

// A plan is what a method comes down to.
type plan struct {
	name     string // of the method with its settings, alike on all ranks
	every    int64
	warmup   int64
	rate     float64 // of the outer step
	momentum float64
	keep     float64 // of the own model when the outer step comes
	codec    ops.Codec
	delay    int64
	parts    int
	pairs    bool
	seed     uint64
}

func (m LocalSGD) plan() (plan, error) { return PostLocalSGD{0, m.Every, m.Codec}.plan() }

func (m PostLocalSGD) plan() (plan, error) {
	return plan{warmup: int64(m.Warmup), every: int64(cmp.Or(m.Every, DefaultEvery)), rate: 1, parts: 1, codec: m.Codec}.check("LocalSGD")
}

func (m DiLoCo) plan() (plan, error) { return m.planIn("DiLoCo", 1) }

func (m StreamingDiLoCo) plan() (plan, error) {
	return m.planIn("StreamingDiLoCo", cmp.Or(m.Parts, DefaultParts))
}

func (m DiLoCo) planIn(name string, parts int) (plan, error) {
	p := plan{every: int64(cmp.Or(m.Every, DefaultEvery)), rate: cmp.Or(m.Rate, DefaultRate),
		momentum: trainer.OrDefault(m.Momentum, DefaultMomentum), codec: m.Codec, delay: int64(m.Delay), parts: parts}
	if m.Delay > 0 {
		p.keep = DefaultKeep
	}
	p.keep = trainer.OrDefault(m.Keep, p.keep)
	return p.check(name)
}

func (m SMA) plan() (plan, error) {
	return plan{every: int64(cmp.Or(m.Every, 1)), rate: 1, keep: 1 - cmp.Or(m.Alpha, DefaultAlpha), parts: 1, codec: m.Codec}.check("SMA")
}

func (m PairAveraging) plan() (plan, error) {
	return plan{every: int64(cmp.Or(m.Every, 1)), rate: 1, delay: int64(m.Delay), parts: 1, pairs: true, seed: m.Seed}.check("PairAveraging")
}

// check refuses settings that cannot be, and gives the plan its name.
func (p plan) check(method string) (plan, error) {
	fail := func(format string, a ...any) (plan, error) {
		return p, fmt.Errorf("local: %s: "+format, append([]any{method}, a...)...)
	}
	switch {
	case p.every < 1 || p.every > MaxEvery:
		return fail("synchronisation every %d steps: want 1 to %d", p.every, MaxEvery)
	case p.warmup < 0:
		return fail("a warm-up of %d steps", p.warmup)
	case p.delay < 0 || p.delay >= p.every && p.delay > 0:
		return fail("a delay of %d steps, every %d: want less than that", p.delay, p.every)
	case !(p.rate > 0) || math.IsInf(p.rate, 0):
		return fail("an outer rate of %v", p.rate)
	case !(p.momentum >= 0 && p.momentum < 1):
		return fail("a momentum of %v: want 0 to less than 1", p.momentum)
	case !(p.keep >= 0 && p.keep < 1):
		return fail("a model that keeps %v of its own: want 0 to less than 1", p.keep)
	case p.parts < 1 || p.parts > MaxParts || int64(p.parts) > p.every:
		return fail("%d parts in %d steps: want at most as many, and %d", p.parts, p.every, MaxParts)
	}
	codec := "float"
	if p.codec != nil {
		codec = p.codec.Name()
	}
	p.name = fmt.Sprintf("%s after %d steps, every %d late by %d, rate %v momentum %v keep %v, %d parts as %s, seed %d",
		method, p.warmup, p.every, p.delay, p.rate, p.momentum, p.keep, p.parts, codec, p.seed)
	return p, nil
}

// named are the methods by their names on a command line.
var named = map[string]func(every int, c ops.Codec) Method{
	"localsgd":  func(every int, c ops.Codec) Method { return LocalSGD{Every: every, Codec: c} },
	"diloco":    func(every int, c ops.Codec) Method { return DiLoCo{Every: every, Codec: c} },
	"streaming": func(every int, c ops.Codec) Method { return StreamingDiLoCo{DiLoCo: DiLoCo{Every: every, Codec: c}} },
	"sma":       func(every int, c ops.Codec) Method { return SMA{Every: every, Codec: c} },
	"pairs":     func(every int, _ ops.Codec) Method { return PairAveraging{Every: every} },
}

// Names are what Named knows, in order.
func Names() (names []string) {
	for name := range named {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Named is the method of a name, synchronising every so many steps (zero: the method's
// default) in a codec (nil: none; pairs have none), and otherwise with its defaults.
func Named(name string, every int, c ops.Codec) (Method, error) {
	m, ok := named[name]
	if !ok {
		return nil, fmt.Errorf("local: no method is called %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	if c != nil && name == "pairs" {
		return nil, fmt.Errorf("local: pairs exchange models as they are, not as %s", c.Name())
	}
	method := m(every, c)
	_, err := method.plan()
	return method, err
}
