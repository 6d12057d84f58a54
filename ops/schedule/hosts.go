package schedule

import (
	"fmt"
	"slices"
)

// Hosts are the ranks of a world by the host that they are on: a list for each, at least
// one rank long, and every rank in one of them. Its schedules have two levels. What
// crosses between hosts is cut in parts, one for each rank of the smallest host, and each
// part is carried by the ranks of one index on their hosts: so no byte leaves a host
// twice, and the ranks of a host send side by side. This is how NCCL and Horovod
// ("Horovod: fast and easy distributed deep learning in TensorFlow", 2018) join hosts of
// several GPUs.
//
// The levels are schedules of the literature. Inside, it is one that scatters sums: n
// chunks, chunk r on rank r of n, as Ring, Bruck, Cascade and Direct have it. They panic if
// it is another, or if the lists do not share out the ranks 0…n−1.
type Hosts [][]int

// AllReduce reduces inside each host to parts, each on a rank of it; reduces each part
// among the ranks that have it, by the all-reduce that across makes for the number of
// hosts; and gathers the parts inside each host.
//
// With Fewest parts the ranks of larger hosts beyond those of the smallest take part in
// the first step and the last. With Balanced all take part in all three, in even shares.
// Other numbers of parts are allowed, and need not divide anything.
func (h Hosts) AllReduce(parts int, inside, across func(n int) Schedule) Schedule {
	mid := across(len(h))
	s := h.start(inside, parts*mid.Chunks, fmt.Sprintf("two-level(%s, %d parts)", inside(1).Name, parts))
	part := func(c int) int { return c / mid.Chunks }
	up := h.inside(s, inside, func(host, c int) int { return dealt(len(h[host]), part(c), parts) })
	s = up.Then(weave(s, mid, func(c int) []int { return h.owners(part(c), parts) }, func(c int) int { return c % mid.Chunks }))
	s = s.Then(up.Reverse())
	s.Name = up.Name
	return s
}

// ReduceScatter reduces inside each host to the parts that go to each host's rank of the
// same index, and scatters these among the ranks of that index by the schedule that across
// makes for the number of hosts, one that scatters sums as inside does. n chunks, chunk r on
// rank r. Reversed it is the all-gather: across first, then inside.
func (h Hosts) ReduceScatter(inside, across func(n int) Schedule) Schedule {
	n, at := h.places()
	s := h.start(inside, n, fmt.Sprintf("two-level(%s)", inside(1).Name))
	owner := func(host, c int) int { return dealt(len(h[host]), at[c].index, len(h[at[c].host])) }
	mid := scattering(across, len(h))
	up := h.inside(s, inside, owner)
	t := up.Then(weave(s, mid, func(c int) []int {
		ranks := make([]int, len(h))
		for i, host := range h {
			ranks[i] = host[owner(i, c)]
		}
		return ranks
	}, func(c int) int { return at[c].host }))
	t.Name = s.Name
	return t
}

// Reduce reduces inside each host to parts; each part among the ranks that have it, to the
// root's host, by the schedule that across makes for the number of hosts and the place of
// the root's, such as BinomialTo; and gathers the parts on the root. Reversed it is the
// broadcast.
func (h Hosts) Reduce(root, parts int, inside func(n int) Schedule, across func(n, root int) Schedule) Schedule {
	n, at := h.places()
	member("two-level", n, root)
	home := at[root].host
	mid := across(len(h), home)
	s := h.start(inside, parts*mid.Chunks, fmt.Sprintf("two-level(%s, %d parts)", inside(1).Name, parts))
	part := func(c int) int { return c / mid.Chunks }
	up := h.inside(s, inside, func(host, c int) int { return dealt(len(h[host]), part(c), parts) })
	t := up.Then(weave(s, mid, func(c int) []int { return h.owners(part(c), parts) }, func(c int) int { return c % mid.Chunks }))
	last := Schedule{Ranks: n, Chunks: s.Chunks}
	for c := range s.Chunks {
		if from := h[home][dealt(len(h[home]), part(c), parts)]; from != root {
			last.add(0, Move{From: from, To: root, Src: c, Dst: c, N: 1})
		}
	}
	t = t.Then(last.tidy())
	t.Name = s.Name
	return t
}

// Fewest is the number of ranks on the smallest host.
func (h Hosts) Fewest() int {
	fewest := len(h[0])
	for _, host := range h {
		fewest = min(fewest, len(host))
	}
	return fewest
}

// maxParts bounds Balanced.
const maxParts = 64

// Balanced is the least number of parts that every host's ranks share evenly, or Fewest
// where that is more than 64.
func (h Hosts) Balanced() int {
	parts := 1
	for _, host := range h {
		if parts *= len(host) / gcd(parts, len(host)); parts > maxParts {
			return h.Fewest()
		}
	}
	return parts
}

// A seat is where a rank is: the index of its host, and its own there.
type seat struct{ host, index int }

// places are the number of ranks, and the seat of each.
func (h Hosts) places() (n int, at []seat) {
	ranks := slices.Concat(h...)
	positive("two-level", len(ranks))
	distinct("two-level", len(ranks), ranks)
	at = make([]seat, len(ranks))
	for i, host := range h {
		positive("two-level", len(host))
		for k, r := range host {
			at[r] = seat{i, k}
		}
	}
	return len(ranks), at
}

// start is the world's schedule before anything moves in it.
func (h Hosts) start(inside func(n int) Schedule, chunks int, name string) Schedule {
	n, _ := h.places()
	positive(name, chunks)
	return Schedule{Name: name, Ranks: n, Chunks: chunks}
}

// dealt is which of n ranks has a part: that of the part's own number if there are enough,
// or else parts go to the ranks in even runs.
func dealt(n, part, parts int) int {
	if parts <= n {
		return part
	}
	return part * n / parts
}

// owners are the ranks that have a part, one for each host.
func (h Hosts) owners(part, parts int) []int {
	ranks := make([]int, len(h))
	for i, host := range h {
		ranks[i] = host[dealt(len(host), part, parts)]
	}
	return ranks
}

// inside has every host reduce, side by side, each chunk to the rank that owner gives.
func (h Hosts) inside(s Schedule, inside func(n int) Schedule, owner func(host, c int) int) Schedule {
	all := Schedule{Ranks: s.Ranks, Chunks: s.Chunks}
	for i, host := range h {
		all = all.With(weave(s, scattering(inside, len(host)), func(int) []int { return host },
			func(c int) int { return owner(i, c) }))
	}
	all.Name = s.Name
	return all
}

// scattering is a generator's schedule, which has to scatter sums.
func scattering(g func(n int) Schedule, n int) Schedule {
	s := g(n)
	if s.Chunks != n || !s.Aligned() {
		panic(fmt.Sprintf("schedule: %s has %d chunks, to be scattered among %d ranks", s.Name, s.Chunks, n))
	}
	return s
}

// weave has every chunk of a world's schedule go the way of a chunk of x, which is of
// fewer ranks: chunk c goes as chunk which(c) of x does among the ranks who(c). x keeps
// every chunk in its place, so that chunks are independent of each other, and any of them
// may be left out, or stand for several.
func weave(s, x Schedule, who func(c int) []int, which func(c int) int) Schedule {
	if !x.Aligned() {
		panic(fmt.Sprintf("schedule: %s moves chunks to other places", x.Name))
	}
	stands := make([][]int, x.Chunks)
	ranks := make([][]int, s.Chunks)
	for c := range s.Chunks {
		stands[which(c)] = append(stands[which(c)], c)
		ranks[c] = who(c)
	}
	woven := Schedule{Name: s.Name, Ranks: s.Ranks, Chunks: s.Chunks, Rounds: make([]Round, len(x.Rounds))}
	for i, round := range x.Rounds {
		for _, m := range round {
			for k := m.Src; k < m.Src+m.N; k++ {
				for _, c := range stands[k] {
					woven.add(i, Move{From: ranks[c][m.From], To: ranks[c][m.To], Src: c, Dst: c, N: 1, Reduce: m.Reduce})
				}
			}
		}
	}
	return woven.tidy()
}
