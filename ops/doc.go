// Package ops runs messages and collectives between the ranks of a world:
// torch.distributed's operations for Go.
//
// A [Group] is made over a [Transport], the few methods that ops needs of a
// world. Every operation returns a [Work], which takes its place in the group's
// order when it is issued and moves data later:
//
//	g := ops.NewGroup(world, ops.Config{})
//	w := g.AllReduce(ctx, tensor.Of(grad), tensor.Sum) // in flight
//	...                                                // compute
//	err := w.Wait()                                    // grad holds the sum
//
// Every rank issues the same collectives in the same order. Messages ([Group.Send],
// [Group.Recv]) have an order for each pair of ranks and tag, and none with the
// collectives.
//
// # Groups of some ranks
//
// [Group.Split] makes a group of some ranks of another, and so do [Group.SplitBy],
// [Group.Blocks] and [Group.Enumerate]. All ranks of the parent call it, at the same
// place among its collectives; those that are not members get a group of rank −1,
// in which a collective is a no-op, as it is in torch.distributed.
//
// Roots and peers are given as ranks in the world, whatever the group, and errors
// name such ranks; [Group.Relative] is a view for code that counts in the group's
// own. Groups have nothing in common but the parent's Config and the world's links:
// any number may overlap and be at work at once, in any order, and what goes wrong
// in one stays there (subworld.go, ids). They last as long as the world, and are
// made once rather than for every step.
//
// # Messages
//
// A send is done when its tensor may change, not when it has been received; how
// much a transport takes ahead is said at [Group.Send]. An Isend copies nothing, so
// all ranks may send first and receive then, whatever the sizes. [Group.RecvAny]
// takes what comes first from any rank, [Group.Batch] is many messages in one Work.
// Receives that could take the same message take them in the order in which they
// were issued.
//
// # From a tensor to a tensor
//
//  1. collectives.go checks the arguments. What is wrong with them comes out of
//     Wait; nothing has moved, and the group is as usable as before.
//  2. choose.go prices the schedules that could do it (package ops/schedule) and
//     takes the cheapest: a pure function of what all ranks know, so all take the
//     same.
//  3. group.go numbers the call, in the order of issue.
//  4. layout.go cuts the tensor into chunks and every chunk into lanes. A list of
//     tensors is one tensor over a memory that joins theirs (joined.go), each a chunk.
//  5. exec.go goes through the rounds, lane by lane: send, receive, and fold what
//     arrives straight from where the transport has it. What must wait, and how it is
//     added up then, is worked out beforehand (round.go). One lane reduces while
//     another sends.
//  6. The transport carries each message with its call in the tag. Messages come
//     in the only possible order, so a tag is compared with the expected one:
//     there is no matching table and no queue of unexpected messages.
//
// The lanes cut chunks, not the tensor, so that the order in which an element is
// summed depends on the schedule alone: results have the same bits on every
// rank, and with any number of lanes.
//
// # What an operation costs
//
// A Work that is waited for at once is done by the waiter (queue.go): no goroutine is in
// the way, nor called as long as every Work is. A round needs none either if its messages
// are of 64 KiB or less, or of up to 512 KiB on lanes that are known to take them. What
// a transport asks for while it sends or receives are functions, and contexts and timers
// guard it; a group makes all of them once, for whoever comes (courier.go, bound.go,
// watch.go), as long as callers give the same context. So the only thing that a
// small operation allocates is its Work. In memory, where a message is two copies and a
// wake-up, an all-reduce of two ranks takes some 6 µs of processor, both ranks together.
//
// Larger messages of a round have a goroutine each, and larger chunks up to four lanes;
// inside a host no more than a rank has processors, for there a lane is copying. With one
// lane for four, four ranks on two processors took for 16 MiB, medians of three rounds, in
// ms: scatter 1.0 for 3.1, all_gather 4.5 for 7.3, all_reduce 7.3 for 8.7.
// Lanes that are known to take what they carry go one after the other instead of side by
// side: to wake a thread for one would cost more. Buffers for what must wait come from pools; built
// with the tag invariants, they are overwritten when they go back, so that a use after
// that shows.
//
// # Which schedule
//
// Each operation has several (candidates.go, [Candidates]): some of few rounds, for few
// bytes, and some of few bytes, for many. The cheapest by price is taken.
//
// The price needs links, and all ranks must take the same. A transport may know its own,
// as mesh.World does: it measures them as it forms, and has one table, the same on every
// rank (survey.go). The first call of a group waits for that, on a long link for a few
// round trips, and so there is no call that a rank decides without it, no place in the
// order at which to go over to it, and nothing to agree on. To go over later would need
// such a place, which only a call that waits for all ranks can set. DefaultLinks stand for a
// transport that knows nothing. Config.Links is for those who know better, and asks nobody.
//
// [Group.Measure] measures every link, at once and at length, in the place of all that. It
// is a collective, with a place in the order like any other: every rank goes over to the
// figures at the same call. Groups that are split off later inherit the figures. With ranks on several hosts the far links show, and a transport may
// say which ranks share one ([Located]), so that schedules of two levels, inside hosts and
// across, come out cheapest where they are.
//
// On one host what could be measured is chance. There ranks share processors, and what
// counts beside the longest chain of messages is all that they copy, and all that waits
// for a processor: see machine.go, which has the formula, and [Shared], which are links
// that know the processors. `peer schedule --hosts 4 --cores 2` prints such prices. Of
// four ranks on two processors, an all-reduce of 64 MiB moves 6 times that, copied in and
// out: 805 MB, 50 ms at the 8 GB/s a processor that prices assume. A few runs beside other
// work took 50 to 56 ms. A broadcast moves 3 times that, 25 ms; runs took 25 (tree) to 45.
//
// Config.Algorithm or the environment variable PEERMESH_ALGO take another, as in
//
//	PEERMESH_ALGO=ring
//	PEERMESH_ALGO=all_reduce=halving,broadcast=tree
//
// What was chosen is kept, by each group for itself: links can differ from group to group,
// by Config.Links or Measure, and groups are made once. The first call of its kind and size,
// up to the next power of two, pays: 18 µs among 4 ranks, 26 ms among 64, 0.28 s among 256
// (an all-reduce of 1 MiB).
//
// The algorithm does not change what is computed, but it may change the order in which
// floats are added, and so the last bits of a sum. Config.Deterministic takes only
// algorithms that add in one order, which is written down in package schedule: even
// ranks, odd ranks, and so on within each. There are such ones for few bytes and for
// many, so it costs little, and what the links were found to be does not show in a sum; what is given up is ring, cycle, bruck, tree and what has two levels.
//
// # Fewer bytes
//
// [Group.AllReduceCoded] is an all-reduce whose messages a [Codec] encodes: eight or four
// bits an element, or one. A coding is memory (codec_memory.go): the executor moves what
// it takes for bytes, and to read a block is to encode it, to reduce into one is to decode
// and fold. So it goes by schedules, lanes and segments as any other, over any transport.
// Each hop decodes, folds and encodes anew; the sum of a chunk is encoded once, by one
// rank, and its bytes go unchanged to all, that rank included, so that all ranks end with
// the same bits. What is so small that its floats would go in one round does so too: every
// rank encodes its part for all others, and each adds them up. What each encoding rounds off
// can be had (Coding.Lost), and given back with the next sum. Package trainer/compress has
// codecs and the hooks of a DDP.
//
// # Objects
//
// [BroadcastObject], [ScatterObject], [GatherObject], [AllGatherObject], [SendObject] and
// [RecvObject] carry Go values of any type that encoding/gob can. The sizes go first, so
// that one above Config.MaxObject is refused by all ranks alike before there is room made
// for it, with an [ObjectError] after which the group goes on.
//
// # When ranks disagree
//
// A rank that calls another operation, or the same with another element type,
// count, op or root, is found out by its first message, or asked by whoever waits
// for it (ledger.go); where ranks do not know each other's counts, by a part that does
// not fit. Every rank gets a [MismatchError] naming a rank that
// differs and both calls. A rank that gives up, by its context or the group's
// timeout, or finds wrong what it alone is given (as the root of a gather), ends the
// operation for all with an [AbortedError]. Ranks that do not come
// to a monitored barrier are named to all others by a [MissingError]. After any of
// these the group refuses further collectives with the same error; other groups go
// on. A rank whose part was complete, and right, may have returned before.
//
// When the world ends, because a rank died or called End, every operation of
// every group returns an error that wraps the cause.
//
// After an error the contents of a tensor that took part are unspecified.
//
// # What is going on
//
// An [Observer] in the Config is told when an operation takes its place, when its turn
// comes and when it ends: enough for metrics, for a record of what a rank last did, and
// for a page that shows what hangs. [Observers] tells several.
//
// # Names
//
//	torch.distributed          here
//	init_process_group         node.Start, mesh.Join, NewGroup
//	get_rank, get_world_size   Group.Rank, Group.Size (of a group that one is not in too)
//	new_group                  Group.Split
//	new_subgroups              Group.Blocks
//	…_by_enumeration           Group.Enumerate
//	MPI_Comm_split             Group.SplitBy
//	get_process_group_ranks    Group.Ranks
//	get_global_rank            Group.Global
//	get_group_rank             Group.Local
//	send, recv                 Group.Send (done before it is matched, if it fits), Group.Recv
//	isend, irecv               Group.Isend, Group.Irecv
//	recv from any source       Group.RecvAny, Group.IrecvAny and Work.Source
//	batch_isend_irecv          Group.Batch
//	all_reduce                 Group.AllReduce
//	all_reduce_coalesced       Group.AllReduceCoalesced
//	quantised all_reduce       Group.AllReduceCoded
//	broadcast, reduce          Group.Broadcast, Group.Reduce (which leaves the others' tensors alone)
//	all_gather                 Group.AllGatherList (uneven too, as MPI_Allgatherv)
//	all_gather_into_tensor     Group.AllGather (concatenated or stacked)
//	all_gather_coalesced       Group.AllGatherCoalesced (of tensors, not of lists)
//	reduce_scatter             Group.ReduceScatterList (uneven too, as MPI_Reduce_scatter)
//	reduce_scatter_tensor      Group.ReduceScatter
//	gather, scatter            Group.GatherList, Group.ScatterList (uneven too, as MPI_Gatherv, MPI_Scatterv)
//	MPI_Gather, MPI_Scatter    Group.Gather, Group.Scatter (of one tensor in equal parts)
//	all_to_all                 Group.AllToAllList (uneven too)
//	all_to_all_single          Group.AllToAll; with split sizes, Group.AllToAllV
//	broadcast_object_list      BroadcastObject (one value, which may be a slice)
//	scatter_object_list        ScatterObject
//	gather_object              GatherObject
//	all_gather_object          AllGatherObject
//	send_object_list, recv_…   SendObject, RecvObject (values go by gob, not pickle)
//	barrier                    Group.Barrier
//	monitored_barrier          Group.MonitoredBarrier (every rank learns who is missing)
//	Work.wait                  Work.Wait
//	ReduceOp.SUM, AVG, BOR …   tensor.Sum, tensor.Avg, tensor.BitOr …
//	ReduceOp.PREMUL_SUM        tensor.PremulSum
package ops
