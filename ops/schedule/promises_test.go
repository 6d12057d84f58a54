package schedule

// A promise is a schedule with what is claimed of it.
type promise struct {
	s Schedule
	c Contract
}

// basics is what the generators claim for every n, with rank 0 as the root.
func basics(n int) []promise {
	all := []promise{
		{Ring(n), ReduceScatterContract},
		{Ring(n), ReductionContract},
		{Ring(n).Reverse(), AllGatherContract},
		{Halving(n), ReductionContract.Canonical()},
		{Doubling(n), AllReduceContract.Canonical()},
		{Doubling(n), BarrierContract},
		{OneShot(n), AllReduceContract.Canonical()},
		{Binomial(n), ReductionContract.Canonical()},
		{BinomialGather(n), GatherContract(0)},
		{BinomialGather(n).Reverse(), ScatterContract(0)},
		{DirectGather(n), GatherContract(0)},
		{DirectGather(n).Reverse(), ScatterContract(0)},
		{Cascade(n), ReduceScatterContract.Canonical()},
		{Direct(n), ReduceScatterContract.Canonical()},
		{Direct(n).Reverse(), AllGatherContract},
		{Bruck(n), ReduceScatterContract},
		{Bruck(n).Reverse(), AllGatherContract},
		{Pairwise(n), AllToAllContract},
		{BruckAllToAll(n), AllToAllContract},
		{DirectAllToAll(n), AllToAllContract},
		{Tree(n, 4), ReduceContract(0)},
		{Tree(n, 3).Reverse(), BroadcastContract(0)},
		{AllReduce(Tree(n, 2)), AllReduceContract},
		{Dissemination(n), BarrierContract},
		{AllReduce(Ring(n)), AllReduceContract},
		{AllReduce(Halving(n)), AllReduceContract.Canonical()},
		{AllReduce(Bruck(n)), AllReduceContract},
		{AllReduce(Binomial(n)), AllReduceContract.Canonical()},
		{AllReduce(Cascade(n)), AllReduceContract.Canonical()},
		{AllReduce(Direct(n)), AllReduceContract.Canonical()},
	}
	if n&(n-1) == 0 {
		all = append(all,
			promise{Halving(n), ReduceScatterContract.Canonical()},
			promise{Halving(n).Reverse(), AllGatherContract})
	}
	return all
}

// at is what they claim of a root.
func at(n, root int) []promise {
	return []promise{
		{BinomialTo(n, root), ReduceContract(root).Canonical()},
		{BinomialTo(n, root).Reverse(), BroadcastContract(root)},
		{BinomialGather(n).Rotate(root), GatherContract(root)},
		{BinomialGather(n).Rotate(root).Reverse(), ScatterContract(root)},
		{DirectGather(n).Rotate(root), GatherContract(root)},
		{DirectGather(n).Reverse().Rotate(root), ScatterContract(root)},
		{Tree(n, 5).Rotate(root), ReduceContract(root)},
		{Tree(n, 2).Reverse().Rotate(root), BroadcastContract(root)},
		{Broadcast(Ring(n), root), BroadcastContract(root)},
		{Broadcast(Bruck(n), root), BroadcastContract(root)},
		{Reduce(Ring(n), root), ReduceContract(root)},
		{Reduce(Cascade(n), root), ReduceContract(root).Canonical()},
	}
}

// other combinations, which follow from these.
func other(n, root int) []promise {
	return []promise{
		{Binomial(n).Rotate(root), ReduceContract(root)},
		{Binomial(n).Reverse().On(n, rotated(n, root)), BroadcastContract(root)},
		{Broadcast(Cascade(n), root), BroadcastContract(root)},
		{Broadcast(Direct(n), root), BroadcastContract(root)},
		{Reduce(Bruck(n), root), ReduceContract(root)},
		{Reduce(Direct(n), root), ReduceContract(root).Canonical()},
		{Ring(n).Rotate(root), ReduceScatterContract},
		{Pairwise(n).Rotate(root), AllToAllContract},
		{AllReduce(Halving(n)).On(n, rotated(n, root)), AllReduceContract},
	}
}

// promises is what holds for n ranks and every root of them; of small worlds,
// all of it.
func promises(n int) []promise {
	all := basics(n)
	for root := range n {
		all = append(all, at(n, root)...)
		if n <= 9 {
			all = append(all, other(n, root)...)
		}
	}
	return all
}
