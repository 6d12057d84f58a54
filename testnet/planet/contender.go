package planet

import (
	"slices"
	"time"

	"peermesh/ops/schedule"
)

// A Contender is a way to all_reduce.
type Contender struct {
	Name string
	// Price predicts how long it takes for a vector of some bytes.
	Price func(bytes int) time.Duration
	// Plan is what is played for a vector of some bytes.
	Plan func(bytes int) Plan
}

// pipelines are the depths that a double tree is tried with: it takes the best.
var pipelines = []int{2, 8, 32, 128}

// Contenders are the ways that are worth comparing. Those "by region" know where ranks
// are, as do those with heads or levels; the others take ranks as they come.
func (w *World) Contenders() []Contender {
	come := make([]int, w.Ranks)
	for i := range come {
		come[i] = i
	}
	near := w.ByRegion()
	var trees []Plan
	for _, k := range pipelines {
		trees = append(trees, PlanOf(schedule.AllReduce(schedule.Tree(w.Ranks, k))))
	}
	heads := schedule.Hierarchical(w.Regions, schedule.OneShot)
	return []Contender{
		w.best("doubling", come, PlanOf(schedule.Doubling(w.Ranks))),
		w.best("halving", come, PlanOf(schedule.AllReduce(schedule.Halving(w.Ranks)))),
		w.ring("ring", come),
		w.ring("ring by region", near),
		w.best("double tree", come, slices.Clone(trees)...),
		w.best("double tree by region", near, trees...),
		w.best("heads", come, PlanOf(heads)),
		w.best("two levels, halving", come, halvingLevels(w.Regions, w.Ranks)),
		w.best("two levels, rings", come, ringLevels(w.Regions, w.Ranks)),
	}
}

func (w *World) ring(name string, order []int) Contender {
	p := ring(w.Ranks).On(order)
	p.Name = name
	return Contender{name, func(bytes int) time.Duration { return w.RingPrice(order, bytes) }, func(int) Plan { return p }}
}

// best takes the best of some plans.
func (w *World) best(name string, order []int, plans ...Plan) Contender {
	for i, p := range plans {
		plans[i] = p.On(order)
		plans[i].Name = name
	}
	choose := func(bytes int) (best Plan, price time.Duration) {
		price = schedule.Never
		for _, p := range plans {
			if t := p.Price(bytes, w); t < price {
				best, price = p, t
			}
		}
		return best, price
	}
	return Contender{name,
		func(bytes int) time.Duration { _, t := choose(bytes); return t },
		func(bytes int) Plan { p, _ := choose(bytes); return p }}
}
