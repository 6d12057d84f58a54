package watch

import (
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"peermesh/ops/flight"
)

// A metric is one of those that /metrics has: what it is called, what it means, and how
// its values are read off a State.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	values     func(s *State, give func(value float64, labels ...string))
}

// metrics are all of them but the operations' times. Those that end in _total only grow.
// Labels are ranks and kinds of operations, so there are at most as many series as ranks.
var metrics = []metric{
	{"world_epoch", "Which world of the mesh this is; 0 for none.", gauge, nil, one(func(s *State) float64 { return float64(s.World.Epoch) })},
	{"world_rank", "This process's rank.", gauge, nil, one(func(s *State) float64 { return float64(s.World.Rank) })},
	{"world_ranks", "Ranks of the world.", gauge, nil, one(func(s *State) float64 { return float64(s.World.Size) })},
	{"world_ranks_wanted", "Ranks of a whole world.", gauge, nil, one(func(s *State) float64 { return float64(s.World.Wanted) })},
	{"worlds_total", "Worlds that this process has been in.", counter, nil, one(func(s *State) float64 { return float64(s.worlds) })},
	{"ranks_lost_total", "Ranks that were in one world and not in the next.", counter, nil, one(func(s *State) float64 { return float64(s.lost) })},
	{"epoch", "The training's epoch, from 1.", gauge, nil, one(func(s *State) float64 { return float64(s.Train.Epoch) })},
	{"step", "Steps since the beginning of the training.", gauge, nil, one(func(s *State) float64 { return float64(s.Train.Step) })},
	{"loss", "Training loss: the mean of the epoch so far.", gauge, nil, one(func(s *State) float64 { return float64(s.Train.Loss) })},
	{"accuracy", "Share of the test set that was right at the last test.", gauge, nil, func(s *State, give func(float64, ...string)) {
		if s.Train.Accuracy != nil {
			give(float64(*s.Train.Accuracy))
		}
	}},
	{"samples_total", "Samples learnt from, by all ranks together.", counter, nil, one(func(s *State) float64 { return float64(s.samples) })},
	{"sent_bytes_total", "Bytes sent to the other ranks.", counter, nil, one(func(s *State) float64 { return float64(s.sent) })},
	{"received_bytes_total", "Bytes received from the other ranks.", counter, nil, one(func(s *State) float64 { return float64(s.received) })},
	{"link_rtt_seconds", "Round trip from this rank to another.", gauge, []string{"to"}, ofLinks(func(l Link) float64 { return l[2] / 1e6 })},
	{"link_bytes_per_second", "What goes over a link, in both directions.", gauge, []string{"to"}, ofLinks(func(l Link) float64 { return l[3] })},
	{"rank_work_seconds", "Time a rank works between operations, a step.", gauge, []string{"rank"}, ofRanks(func(r Rank) float64 { return r.Work })},
	{"rank_step", "Steps that a rank has taken.", gauge, []string{"rank"}, ofRanks(func(r Rank) float64 { return float64(r.Step) })},
	{"rank_waiting_seconds", "Age of the oldest operation that a rank has in flight.", gauge, []string{"rank"}, ofRanks(func(r Rank) float64 { return r.Waited })},
	{"rank_here", "Whether a rank is there and answers.", gauge, []string{"rank"}, ofRanks(func(r Rank) float64 {
		if r.State == Lost || r.State == Silent {
			return 0
		}
		return 1
	})},
	{"operations_in_flight", "Operations of this rank that have not ended.", gauge, nil, one(func(s *State) float64 { return float64(len(s.Flights)) })},
	{"operation_bytes_total", "Bytes of the tensors of operations that have ended.", counter, []string{"kind"}, ofKinds(func(k Kind) float64 { return float64(k.Bytes) })},
	{"operation_errors_total", "Operations that have failed.", counter, []string{"kind"}, ofKinds(func(k Kind) float64 { return float64(k.Failed) })},
}

const (
	gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	// prefix is that of all names.
	prefix = "peermesh_"
	// timesName is the histogram's.
	timesName = "operation_seconds"
)

type values = func(s *State, give func(value float64, labels ...string))

func one(f func(s *State) float64) values {
	return func(s *State, give func(float64, ...string)) { give(f(s)) }
}

// ofLinks gives those of this rank.
func ofLinks(f func(l Link) float64) values {
	return func(s *State, give func(float64, ...string)) {
		self := float64(s.World.Rank)
		for _, l := range s.Links {
			if l[0] == self || l[1] == self {
				give(f(l), strconv.Itoa(int(l[0]+l[1]-self)))
			}
		}
	}
}

func ofRanks(f func(r Rank) float64) values {
	return func(s *State, give func(float64, ...string)) {
		for _, r := range s.Ranks {
			give(f(r), strconv.Itoa(r.Rank))
		}
	}
}

func ofKinds(f func(k Kind) float64) values {
	return func(s *State, give func(float64, ...string)) {
		for _, k := range s.Kinds {
			give(f(k), k.Kind)
		}
	}
}

// A collector reads a Board when it is asked.
type collector struct {
	board *Board
	descs []*prometheus.Desc // of metrics
	times *prometheus.Desc
}

func newCollector(b *Board) *collector {
	c := &collector{board: b, times: prometheus.NewDesc(prefix+timesName,
		"Time of an operation from when its turn has come to its end.", []string{"kind"}, nil)}
	for _, m := range metrics {
		c.descs = append(c.descs, prometheus.NewDesc(prefix+m.name, m.help, m.labels, nil))
	}
	return c
}

// Describe and Collect make it a prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
	to <- c.times
}

// Collect gives all values of one moment.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.board.Ask() // whose answers the next scrape has
	s := c.board.State()
	for i, m := range metrics {
		m.values(s, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(c.descs[i], m.kind, value, labels...)
		})
	}
	for _, k := range s.Kinds {
		upTo, below := make(map[float64]uint64, flight.Buckets), uint64(0)
		for i, n := range k.counted.Spread[:flight.Buckets-1] { // the last has no end
			below += n
			upTo[math.Ldexp(1e-6, i)] = below
		}
		to <- prometheus.MustNewConstHistogram(c.times, uint64(k.Count), k.counted.Time.Seconds(), upTo, k.Kind)
	}
}
