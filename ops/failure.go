package ops

// A failure is why a group refuses work from call at on: two ranks that
// disagree, or one that gave up, or some that did not come.
type failure struct {
	at     uint64
	a, b   party         // who disagree, when the others are nil
	abort  *AbortedError // who gave up
	absent *MissingError // who did not come
}

// A party is a rank, by its rank in the world, and what it called.
type party struct {
	rank int
	call Call
}

func disagree(at uint64, rankA int, a Call, rankB int, b Call) *failure {
	return &failure{at: at, a: party{rankA, a}, b: party{rankB, b}}
}

// Error is the failure as a context's cause.
func (f *failure) Error() string { return f.error(-1, f.b.call).Error() }

// error is the failure as a rank that issued ours sees it: of the two that
// disagree it is told the one that differs from itself, in the call of the same
// number if it can. Where the two are at odds about the count of a part, they are
// told that count rather than what they issued.
func (f *failure) error(self int, ours Call) error {
	switch {
	case f.abort != nil:
		return f.abort
	case f.absent != nil:
		return f.absent
	}
	theirs := f.a
	switch self {
	case f.a.rank:
		ours, theirs = f.a.callAt(ours), f.b
	case f.b.rank:
		ours = f.b.callAt(ours)
	default:
		differs := func(p party) bool { return !p.call.agrees(ours) }
		if !differs(f.a) && !differs(f.b) { // it is about a count
			differs = func(p party) bool { return p.call != ours }
		}
		if !differs(f.a) || f.a.call.Seq != ours.Seq && differs(f.b) {
			theirs = f.b
		}
	}
	return &MismatchError{Rank: theirs.rank, Ours: ours, Theirs: theirs.call}
}

// callAt is what the party called in the place of a call, of which it has issued
// that one.
func (p party) callAt(issued Call) Call {
	if p.call.Seq == issued.Seq {
		return p.call
	}
	return issued
}
