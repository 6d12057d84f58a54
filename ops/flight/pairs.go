package flight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// message looks for a message that only one of its two ranks knows of.
func (c *inquest) message() *finding {
	for _, rank := range slices.Sorted(maps.Keys(c.logs)) {
		l := c.logs[rank]
		for i := range l.Records {
			r := &l.Records[i]
			if !r.message() || r.State == Done || r.Epoch != l.World.Epoch || c.answered(rank, r) {
				continue
			}
			return c.unanswered(rank, r, l.since(r))
		}
	}
	return nil
}

func (c *inquest) unanswered(rank int, r *Record, since time.Duration) *finding {
	how := "waits"
	if r.State == Failed {
		how = "waited in vain"
	}
	half, other := "send", []int{r.Peer}
	switch {
	case r.Peer < 0:
		return found(Message, []int{rank}, "rank %d %s in a receive from any rank under tag %d, for %v: nobody has sent it anything more",
			rank, how, r.Tag, round(since))
	case r.Send:
		half = "receive"
	}
	return found(Message, other, "rank %d has not called the %s for which rank %d %s in %s under tag %d, for %v: every send needs its receive",
		r.Peer, half, rank, how, r.name(), r.Tag, round(since))
}

// answered reports whether the other rank has a message's other half, or whether that
// cannot be known. A receive from any rank may take what some rank meant for it.
func (c *inquest) answered(rank int, r *Record) bool {
	half := func(l *Log) bool {
		return slices.ContainsFunc(l.Records, func(o Record) bool {
			if !o.message() || o.Epoch != r.Epoch || o.Group != r.Group || o.Tag != r.Tag || o.Send == r.Send {
				return false
			}
			switch {
			case o.Peer < 0 || r.Peer < 0:
				return (o.Peer < 0 || o.Peer == rank) && o.open()
			}
			return o.Peer == rank && o.Seq == r.Seq
		})
	}
	if r.Peer >= 0 {
		l := c.logs[r.Peer]
		return l == nil || half(l)
	}
	for _, l := range c.logs {
		if half(l) {
			return true
		}
	}
	return false
}

// slow looks for a rank that all others wait for. Who comes last to a collective waits
// the least in it, whatever its clock says.
func (c *inquest) slow() *finding {
	last, waits, n := make(map[int]int), make(map[int]time.Duration), 0
	for _, k := range c.calls {
		if k.size != c.size || len(k.by) != c.size || c.size < 2 {
			continue
		}
		n++
		who, least, sum := 0, time.Duration(-1), time.Duration(0)
		for rank := range c.size {
			took := k.by[rank].took()
			sum += took
			if least < 0 || took < least {
				who, least = rank, took
			}
		}
		last[who]++
		waits[who] += (sum - time.Duration(c.size)*least) / time.Duration(c.size-1)
	}
	for _, rank := range slices.Sorted(maps.Keys(last)) {
		mean := waits[rank] / time.Duration(last[rank])
		if n >= slowCalls && last[rank]*100 >= n*slowShare && mean >= slowWait {
			return found(Late, []int{rank}, "rank %d comes last: the others waited for it in %d of %d operations, %v each on average: look at what else its machine does",
				rank, last[rank], n, round(mean))
		}
	}
	return nil
}

// well is what is left.
func (c *inquest) well() *finding {
	var last *call
	for _, k := range c.calls {
		if last == nil || k.first >= last.first {
			last = k
		}
	}
	if last == nil {
		return found(Well, nil, "no rank has called an operation in this world yet")
	}
	for _, r := range last.by {
		return found(Well, nil, "all %d ranks have called the same operations, and none waits or has failed: the last of %d is %s",
			c.size, len(c.calls), r.name())
	}
	return nil
}

// String is the sentence, and below it a line for each rank.
func (d *Diagnosis) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%4s  %-10s  %5s  %-40s  %s\n", d.Sentence, "rank", "peer", "calls", "last done", "now")
	for _, w := range d.Rows {
		fmt.Fprintf(&b, "%4d  %-10s  %5d  %-40s  %s\n", w.Rank, ending(w.Peer), w.Count, cmp.Or(w.Last, "-"), w.now())
	}
	if d.Aside > 0 {
		fmt.Fprintf(&b, "\n%d records of other worlds were left aside.\n", d.Aside)
	}
	return b.String()
}

func (w *Row) now() string {
	switch {
	case w.Missing:
		return "no record"
	case w.Now == "":
		return "-"
	}
	return fmt.Sprintf("%s %s, %v", w.Now, w.State, round(w.Since))
}

// ending is the end of a peer's name, which tells it from others.
func ending(peer string) string {
	if r := []rune(peer); len(r) > 8 {
		return "…" + string(r[len(r)-8:])
	}
	return cmp.Or(peer, "-")
}

// ranks names some, as the subject of a sentence in the singular: each of several does
// what it says.
func ranks(list []int) string {
	const most = 8
	var b strings.Builder
	for i, rank := range list {
		switch {
		case i == 0 && len(list) == 1:
			return fmt.Sprintf("rank %d", rank)
		case i == 0:
			b.WriteString("each of ranks ")
		case i == most:
			fmt.Fprintf(&b, " and %d more", len(list)-i)
			return b.String()
		case i == len(list)-1:
			b.WriteString(" and ")
		default:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, rank)
	}
	return b.String()
}

// round is a time to three figures or so.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d
}
