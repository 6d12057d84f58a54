// Package schedule describes collective operations as values.
//
// A [Schedule] is the whole of a collective: for every round, which rank sends
// which chunks of its vector to whom, and whether they are folded in there or
// replace what is there. It is no code and touches no network. It is printed
// ([Schedule.String], [Parse]), proved ([Check]), priced ([Price]), compared
// ([Schedule.Digest]) and carried out (package ops, from [Schedule.Local]),
// and those are five readers of one value.
//
// # The picture
//
// The usual way is a function of rank and size that yields sends and receives,
// and the usual mistake is that those of two ranks do not meet. Here a move
// names both its ends, so the mistake cannot be written, and the value looks
// like the figure in the paper. An all-reduce around a ring of three:
//
//	all-reduce(ring): 3 ranks, 3 chunks
//	  0   0→1 [2]+  1→2 [0]+  2→0 [1]+
//	  1   0→1 [1]+  1→2 [2]+  2→0 [0]+
//	  2   1→0 [1]  2→1 [2]  0→2 [0]
//	  3   1→0 [2]  2→1 [0]  0→2 [1]
//
// A line is a round; its moves happen at once, reading what was there before
// it. "0→1 [2]+" folds rank 0's chunk 2 into rank 1's; without the plus it
// replaces it. Sizes are in chunks; a vector of any length is cut into that
// many, and bytes enter only in Price and in the executor.
//
// # Generators and combinators
//
// The generators are the algorithms of the literature, for any number of ranks:
//
//	                rounds       bytes a rank sends   from S bytes
//	Ring            n−1          (n−1)/n · S          reduce-scatter
//	Halving         lg n (+1)    (n−1)/n · S (or S)   reduce-scatter
//	Doubling        lg n (+2)    lg n · S (+S)        all-reduce
//	Binomial        ⌈lg n⌉       S                    reduce to rank 0
//	BinomialGather  ⌈lg n⌉       S/2 at most          gather to rank 0
//	Pairwise        ⌊n/2⌋        (n−1)/n · S          all-to-all
//	Dissemination   ⌈lg n⌉       none                 barrier
//
// where lg is rounded down and what is in brackets is paid when n is no power
// of two. Everything else is made of them:
//
//	all-reduce       AllReduce(Ring(n)), AllReduce(Halving(n)), Doubling(n)
//	all-gather       Ring(n).Reverse()
//	broadcast        Binomial(n).Reverse()
//	 … of much       BinomialGather(n).Reverse().Then(Ring(n).Reverse())
//	scatter          BinomialGather(n).Reverse()
//	another root     s.On(n, ranks) with the root first in ranks
//	among some       s.On(n, ranks) with fewer ranks than n
//	two levels       Hierarchical(groups, heads)
//
// Which is best depends on the bytes and the links. Few bytes want few rounds,
// many bytes want few bytes sent, and no threshold need be tuned: build the
// candidates and take the one with the least Price.
//
// # Proof
//
// A schedule is right or wrong before anything runs. [Check] plays it on
// symbols and proves that it keeps a [Contract]: every contribution counts
// exactly once, no two moves of a round land on one chunk, and all copies of a
// result have been added up in the same order, so that replicas agree bit for
// bit and stay equal for as long as they train. Round the ring, for one, each
// chunk is summed once and then copied; in Doubling partners add the same two
// numbers, each on its own side, and addition commutes. Dissemination among
// four adds everything exactly once too, but in four different orders, and
// Check refuses it as an all-reduce.
//
// What is generated here is proved by the tests for every n up to 33; a schedule
// of one's own should be checked once before it runs. Check itself is held
// against integer arithmetic on tens of thousands of broken schedules.
//
// # Limits
//
// A schedule cannot react in mid-run to a rank that lags. Sending chunks in a
// lossy code breaks bit agreement unless the owner of a chunk keeps the decoded
// copy as well. Two moves of a round may not land on one chunk, so a rank folds
// what it gets from several others in several rounds. A value of the whole
// world has the size of the whole world: see [MaxRanks], and build it once for
// each world and operation.
package schedule
