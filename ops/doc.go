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
// # From a tensor to a tensor
//
//  1. collectives.go checks the arguments. What is wrong with them comes out of
//     Wait; nothing has moved, and the group is as usable as before.
//  2. choose.go prices the schedules that could do it (package ops/schedule) and
//     takes the cheapest: a pure function of what all ranks know, so all take the
//     same.
//  3. group.go numbers the call, in the order of issue.
//  4. layout.go cuts the tensor into chunks and every chunk into lanes.
//  5. exec.go goes through the rounds, lane by lane: post all moves, fold what
//     arrives. One lane reduces while another sends.
//  6. The transport carries each message with its call in the tag. Messages come
//     in the only possible order, so a tag is compared with the expected one:
//     there is no matching table and no queue of unexpected messages.
//
// The lanes cut chunks, not the tensor, so that the order in which an element is
// summed depends on the schedule alone: results have the same bits on every
// rank, and with any number of lanes.
//
// # When ranks disagree
//
// A rank that calls another operation, or the same with another element type,
// count, op or root, is found out by its first message, or asked by whoever waits
// for it (ledger.go). Every rank gets a [MismatchError] naming a rank that
// differs and both calls. A rank that gives up, by its context or the group's
// timeout, ends the operation for all with an [AbortedError]. After either the
// group refuses further collectives with the same error; other groups go on. A
// rank whose part was complete, and right, may have returned before.
//
// When the world ends, because a rank died or called End, every operation of
// every group returns an error that wraps the cause.
//
// After an error the contents of a tensor that took part are unspecified.
//
// # Names
//
//	torch.distributed          here
//	init_process_group         node.Start, mesh.Join, NewGroup
//	get_rank, get_world_size   Group.Rank, Group.Size
//	send, recv                 Group.Send, Group.Recv
//	isend, irecv               Group.Isend, Group.Irecv
//	all_reduce                 Group.AllReduce
//	broadcast, reduce          Group.Broadcast, Group.Reduce
//	all_gather_into_tensor     Group.AllGather
//	reduce_scatter_tensor      Group.ReduceScatter
//	barrier                    Group.Barrier
//	Work.wait                  Work.Wait
//	ReduceOp.SUM, AVG, BOR …   tensor.Sum, tensor.Avg, tensor.BitOr …
//	ReduceOp.PREMUL_SUM        tensor.PremulSum
package ops
