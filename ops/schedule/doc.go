// Package schedule describes collective operations as values.
//
// A [Schedule] is the whole of a collective: for every round, which rank sends
// which chunks of its vector to whom, and whether they are folded in there or
// replace what is there. It is no code and touches no network. It is printed
// ([Schedule.String], [Parse]), drawn ([WriteSVG]), proved ([Check]), priced
// ([Price]), compared ([Schedule.Digest]) and carried out (package ops, from
// [Schedule.Local]), and those are six readers of one value.
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
// The generators are the algorithms of the literature, for any number n of
// ranks. Those that reduce are written down; their Reverse gives back what they
// have gathered: a reduce becomes a broadcast, a reduce-scatter an all-gather, a
// gather a scatter. A large vector is reduced to one rank, or broadcast from it,
// in two parts, of which a reduce-scatter s is one: AllReduce(s), Broadcast(s,
// root), Reduce(s, root). In this table S is the vector's bytes, those that the
// busiest rank sends are given, and lg is rounded up.
//
//	                                   rounds           bytes               best for
//	all-reduce
//	  OneShot(n)                    =  1                (n−1) S             few bytes, few ranks
//	  Doubling(n)                   =  lg n             lg n · S (+S)       few bytes
//	  AllReduce(Binomial(n))        =  2 lg n           lg n · S            few bytes, many ranks
//	  AllReduce(Direct(n))          =  2                2 (n−1)/n S         both, few ranks
//	  AllReduce(Bruck(n))              2 lg n           2 (n−1)/n S         both
//	  AllReduce(Cascade(n))         =  2 lg n           2 (n−1)/n S (+⅝ S)  many bytes
//	  AllReduce(Halving(n))         =  2 lg n (+2)      2 (p−1)/p S (+S)    many bytes
//	  AllReduce(Ring(n))               2 (n−1)          2 (n−1)/n S         many bytes
//	  AllReduce(Tree(n, k))            2k + 4 lg n − 4  2 S                 many bytes, many ranks
//	reduce-scatter, and reversed all-gather
//	  Direct(n)                     =  1                (n−1)/n S           both, few ranks
//	  Bruck(n)                         lg n             (n−1)/n S           both
//	  Cascade(n)                    =  lg n             (n−1)/n S           both
//	  Halving(n), n = p             =  lg n             (n−1)/n S           both
//	  Ring(n)                          n−1              (n−1)/n S           many bytes
//	reduce
//	  BinomialTo(n, root)           =  lg n             S                   few bytes
//	  Reduce(Bruck(n), root)           2 lg n           1½ S                many bytes
//	  Reduce(Cascade(n), root)      =  2 lg n           1½ S                many bytes
//	  Reduce(Ring(n), root)            n−1 + lg n       1½ S                many bytes
//	  Tree(n, k)                       k + 2 lg n − 2   S                   many bytes, many ranks
//	broadcast
//	  BinomialTo(n, root).Reverse()    lg n             lg n · S            few bytes
//	  Broadcast(Bruck(n), root)        2 lg n           2 (n−1)/n S         many bytes
//	  Broadcast(Ring(n), root)         n−1 + lg n       2 (n−1)/n S         many bytes
//	  Tree(n, k).Reverse()             k + 2 lg n − 2   S                   many bytes, many ranks
//	gather, and reversed scatter, where the root sends (n−1)/n S
//	  DirectGather(n)                  1                S/n                 both, few ranks
//	  BinomialGather(n)                lg n             S/2                 few bytes
//	all-to-all
//	  DirectAllToAll(n)                1                (n−1)/n S           both, few ranks
//	  BruckAllToAll(n)                 ⌊lg n⌋           ½ (lg n − 1) S      few bytes
//	  Pairwise(n)                      ⌊n/2⌋            (n−1)/n S           many bytes
//	barrier
//	  Dissemination(n)                 lg n             none
//	  OneShot(n)                       1                none                few ranks
//
// p is the largest power of two up to n; what is in brackets is paid, at most,
// when that is not n, and then Halving's 2 lg n is rounded down. The sums of those
// with = are canonical, see below. All but the all-to-alls are [Schedule.Aligned]:
// every chunk stays in its place, so chunks may be of different lengths. In all
// that deal chunks out, Halving of other n apart, chunk r is rank r's.
//
//	another root       s.Rotate(root), where the generator's is 0
//	among some         s.On(n, ranks) with fewer ranks than n
//	one after another  s.Then(t)
//	side by side       s.With(t)
//	two levels         Hierarchical(groups, heads), by one rank of each
//	                   Hosts.AllReduce, ReduceScatter and Reduce, by all
//
// Which is best depends on the bytes and the links, and no threshold need be
// tuned: build the candidates and take the one with the least Price.
//
// # Proof
//
// A schedule is right or wrong before anything runs. [Check] plays it on
// symbols and proves that it keeps a [Contract]: every contribution counts
// exactly once, the order of arrival never shows, and all copies of a result have
// been added up in the same order, so that replicas agree bit for bit and stay
// equal for as long as they train. Round the ring, for one, each chunk is summed
// once and then copied; in Doubling partners add the same two numbers, each on
// its own side, and addition commutes. Dissemination among four adds everything
// exactly once too, but in four different orders, and Check refuses it as an
// all-reduce.
//
// What is generated here is proved by the tests for every n up to 33 and every
// root; a schedule of one's own should be checked once before it runs. Check
// itself is held against arithmetic on tens of thousands of broken schedules.
//
// # The canonical order
//
// Replicas that agree are enough to train on. To get the same bits again from
// another algorithm, or for another size of vector or place in it, all must add
// in one order, whatever the chunk. Here that is the ranks of even number, those of
// odd number, then the two, and each of them likewise:
//
//	2  0+1              5  ((0+4)+2)+(1+3)          8  ((0+4)+(2+6))+((1+5)+(3+7))
//	3  (0+2)+1          6  ((0+4)+2)+((1+5)+3)
//	4  (0+2)+(1+3)      7  ((0+4)+(2+6))+((1+5)+3)
//
// So the upper half of the ranks folds onto the lower one first, as recursive
// halving has it. And where samples are dealt to the ranks in turn, and each rank
// adds up its own in this order, the sum of all does not depend on how many ranks
// there are, if that is a power of two.
//
// [Fold] is that order, [CanonicalOrder] prints it, and [Contract.Canonical]
// has Check prove it: for the schedules marked above, for every n and root, up to
// which operand is the left one. It is kept by what moves sums without adding,
// AllReduce and Reduce, and lost by what renumbers the ranks, Rotate and On,
// which is why BinomialTo and Reduce take a root. A few bytes go by OneShot or
// Doubling, many by AllReduce of Halving(n), Cascade(n) or Direct(n), to the same
// result.
//
// # Carrying one out
//
// A rank takes its rounds from Local in order and needs to wait for nobody
// beyond what its moves say. In a round it must send what was there before the
// round, though more may land on it meanwhile; take the moves from one peer in
// the order in which they stand, for there may be several (Bruck's spans that
// run over the end, several spans in Cascade); and where several ranks fold
// into one chunk, hold back what comes and add it up as Fold does, its own part
// included, by rank.
//
// # Limits
//
// A schedule cannot react in mid-run to a rank that lags. Sending chunks in a
// lossy code breaks bit agreement unless the owner of a chunk keeps the decoded
// copy as well. What several ranks fold into one chunk in a round is held until
// all of it is there, since it is added in canonical order: Direct and OneShot
// need room for as many chunks as there are ranks. A value of the whole world
// has the size of the whole world: see [MaxRanks], and build it once for
// each world and operation.
package schedule
