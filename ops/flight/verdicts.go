package flight

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// hasty is what part of the longest wait a rank that was turned away at once has
	// waited, at most; 1/hasty is the part.
	hasty = 4
	// slowCalls is from how many operations on it is said that a rank is slow, and
	// slowShare in how many of them, of 100, it must have come last.
	slowCalls = 8
	slowShare = 60
	// slowWait is how long the others must have waited for it each time.
	slowWait = time.Millisecond
)

// mismatch looks for the first number under which ranks called different operations.
func (c *inquest) mismatch() *finding {
	for _, k := range c.calls {
		odd, usual := k.parties()
		if odd == nil {
			continue
		}
		theirs, ours := k.by[odd[0]], k.by[usual[0]]
		if n := c.swapped(k, odd[0], usual[0]); n != nil {
			return found(Mismatch, odd, "%s called %s before %s, and %s the other way round: every rank must issue the same operations in the same order",
				ranks(odd), theirs.name(), n.Kind, ranks(usual))
		}
		if theirs.Call == ours.Call {
			return found(Mismatch, odd, "%s called %s with another schedule, function, codec or sizes than %s: every rank must give the same arguments and Config",
				ranks(odd), theirs.name(), ranks(usual))
		}
		rule := "issue the same operations in the same order"
		if theirs.Kind == ours.Kind {
			rule = "give the same type, count, reduction and root"
		}
		return found(Mismatch, odd, "%s called %s where %s called %s: every rank must %s",
			ranks(odd), theirs.name(), ranks(usual), ours.name(), rule)
	}
	return nil
}

// parties are the ranks of a call that differ, and those that they differ from: most, or
// as many with a lower rank among them. It is nil if all agree.
func (k *call) parties() (odd, usual []int) {
	var sides [][]int
	for _, rank := range slices.Sorted(maps.Keys(k.by)) {
		i := slices.IndexFunc(sides, func(s []int) bool { return k.by[s[0]].same(k.by[rank]) })
		if i < 0 {
			sides = append(sides, nil)
			i = len(sides) - 1
		}
		sides[i] = append(sides[i], rank)
	}
	if len(sides) < 2 {
		return nil, nil
	}
	slices.SortStableFunc(sides, func(a, b []int) int { return len(b) - len(a) })
	return sides[1], sides[0]
}

// swapped is the operation that a rank called after one which the others called first, if
// the two differ in nothing but that.
func (c *inquest) swapped(k *call, odd, usual int) *Record {
	next := name{k.group, k.seq + 1}
	theirs, ours := c.at(next, odd), c.at(next, usual)
	if theirs != nil && ours != nil && theirs.same(k.by[usual]) && k.by[odd].same(ours) {
		return theirs
	}
	if theirs != nil && ours == nil && theirs.same(k.by[usual]) {
		return theirs // the others have not come to the second one
	}
	return nil
}

// gone looks for ranks that have no record. Of one that has, and that others lost, its
// own record tells more.
func (c *inquest) gone() *finding {
	var missing []int
	for rank := range c.size {
		if c.logs[rank] == nil {
			missing = append(missing, rank)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for _, rank := range slices.Sorted(maps.Keys(c.logs)) {
		if l := c.logs[rank]; slices.Contains(missing, l.Lost) {
			return found(Gone, missing, "%s is gone and has left no record, and rank %d ended with %q: look at what ended rank %d",
				ranks(missing), rank, l.Reason, l.Lost)
		}
	}
	return found(Gone, missing, "%s has left no record: it was killed, or its file is not here: look at why it ended, and copy the files of all machines into one folder",
		ranks(missing))
}

// absent looks for a call that some wait in, or have given up, and others have not come to.
func (c *inquest) absent() *finding {
	for _, k := range c.calls {
		missing, waiting := c.lacks(k), k.in(Scheduled, Started, Failed)
		if len(missing) == 0 || len(waiting) == 0 {
			continue
		}
		r := k.by[waiting[0]]
		how := "waits"
		if r.State == Failed {
			how = "waited, and gave up"
		}
		return found(Absent, missing, "%s has not called %s, in which %s %s (rank %d for %v): %s",
			ranks(missing), r.name(), ranks(waiting), how, waiting[0], round(c.logs[waiting[0]].since(r)), c.whereabouts(k.group, missing[0]))
	}
	return nil
}

// whereabouts says what a rank did last.
func (c *inquest) whereabouts(group team, rank int) string {
	l, last := c.logs[rank], c.newest[group][rank]
	switch {
	case last == nil:
		return fmt.Sprintf("rank %d has called nothing in this group", rank)
	case last.Ended == 0:
		return fmt.Sprintf("rank %d is still in %s", rank, last.name())
	}
	return fmt.Sprintf("rank %d ended %s %v before its record was written, and has computed, or waited for something else, since",
		rank, last.name(), round(time.Duration(l.Time-last.Ended)))
}

// late looks for a rank that was turned away at once by a call that others had waited in:
// they had given up when it came.
func (c *inquest) late() *finding {
	for _, k := range c.calls {
		var least, most *Record
		var who, waited int
		for _, rank := range k.in(Failed) {
			r := k.by[rank]
			if least == nil || r.took() < least.took() {
				least, who = r, rank
			}
			if most == nil || r.took() > most.took() {
				most, waited = r, rank
			}
		}
		if least != nil && least.took() < most.took()/hasty {
			return found(Late, []int{who}, "rank %d was late for %s: rank %d had waited %v for it and given up",
				who, least.name(), waited, round(most.took()))
		}
	}
	return nil
}

// stuck looks for a call that all are in.
func (c *inquest) stuck() *finding {
	for _, k := range c.calls {
		in := k.in(Started)
		if len(in) == 0 {
			continue
		}
		who := ranks(in)
		if len(in) == k.size {
			who = "every rank"
		}
		r := k.by[in[0]]
		return found(Stuck, in, "%s is in %s (rank %d for %v), which all have called: data is slow or held up on a link: measure the links with peer bench",
			who, r.name(), in[0], round(c.logs[in[0]].since(r)))
	}
	return nil
}

// broken looks for what failed for a reason of its own: first on a rank that others lay
// the world's end to.
func (c *inquest) broken() *finding {
	all := slices.Sorted(maps.Keys(c.logs))
	for _, rank := range all {
		if l := c.logs[rank]; l.Lost >= 0 && l.Lost != rank && c.logs[l.Lost] != nil && c.logs[l.Lost].Reason != "" {
			return found(Broken, []int{l.Lost}, "rank %d ended the world for all: %s", l.Lost, c.logs[l.Lost].Reason)
		}
	}
	for _, k := range c.calls {
		if failed := k.in(Failed); len(failed) > 0 {
			return found(Broken, failed, "%s failed on %s: %s", k.by[failed[0]].name(), ranks(failed), k.by[failed[0]].Error)
		}
	}
	for _, rank := range all {
		if l := c.logs[rank]; l.Reason != "" {
			return found(Broken, []int{rank}, "no operation failed, but rank %d ended with: %s", rank, l.Reason)
		}
	}
	return nil
}
