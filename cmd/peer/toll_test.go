package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A toll is what one kill cost one survivor, by the survivor's clock.
type toll struct {
	deed
	survivor       int
	named, resumed time.Duration // since the kill; resumed is zero if it has not
	why            string        // what else was wrong in that time; empty: nothing
}

// tolls are those of all kills. A survivor that was not in the victim's world, or whose
// world had ended by another's fault, has none.
func (d *disturber) tolls() (all []toll) {
	const late = 10 * time.Second
	for _, k := range d.deeds {
		for i := range d.keys {
			if !k.kill || i == k.peer {
				continue
			}
			events := d.events(i)
			at := slices.IndexFunc(events, func(e told) bool {
				return e.Event == "ended" && e.LostPeer == d.ids[k.peer] && e.at.After(k.from) && e.at.Before(k.from.Add(late))
			})
			if at < 0 {
				continue
			}
			c := toll{deed: k, survivor: i, named: events[at].at.Sub(k.from)}
			end := events[at].at
			if on := slices.IndexFunc(events[at:], func(e told) bool { return e.Event == "resumed" }); on >= 0 {
				end = events[at+on].at
				c.resumed = end.Sub(k.from)
			}
			c.why = d.besides(k, i, end)
			all = append(all, c)
		}
	}
	return all
}

// besides is what else was wrong between a kill and a survivor's next step.
func (d *disturber) besides(k deed, survivor int, end time.Time) (why string) {
	for _, other := range d.deeds {
		switch {
		case other == k || !other.during(k.from, end):
		case other.peer == survivor && !other.kill:
			return "it was stopped itself"
		case other.peer == k.peer && other.from.After(k.from):
			why = cmp.Or(why, "the one that was killed had come back, and was lost again")
		default:
			why = cmp.Or(why, "another was gone, too")
		}
	}
	if why == "" && slices.ContainsFunc(d.deeds, func(other deed) bool {
		return other != k && !other.end.IsZero() && other.end.Before(k.from) && !d.back(other, k.from)
	}) {
		why = "another was on its way back"
	}
	return why
}

// back reports whether a peer that something was done to had taken a step again, or was
// in a world of all, before a moment.
func (d *disturber) back(of deed, by time.Time) bool {
	return d.has(of.peer, func(e told) bool {
		return (e.progress() || e.Event == "world" && e.World == len(d.keys)) && e.at.After(of.end) && e.at.Before(by)
	})
}

// report says how soon deaths were known and overcome: those that nothing else came on
// top of, and by their kinds the others.
func (d *disturber) report() {
	kills := 0
	for _, k := range d.deeds {
		if k.kill {
			kills++
		}
	}
	eras := d.eras()
	d.t.Logf("%d kills, %d stops, %d worlds", kills, len(d.deeds)-kills, eras[len(eras)-1].number)
	kinds := map[string][]toll{}
	for _, c := range d.tolls() {
		kinds[c.why] = append(kinds[c.why], c)
	}
	for why, tolls := range kinds {
		var named, resumed []time.Duration
		for _, c := range tolls {
			named = append(named, c.named)
			if c.resumed > 0 {
				resumed = append(resumed, c.resumed)
			}
		}
		d.t.Logf("kill to survivor, %s: to the named error %s; to the next world's first step %s", cmp.Or(why, "nothing else was wrong"), spread(named), spread(resumed))
	}
	for _, c := range kinds[""] {
		if c.named > time.Second || c.resumed > 3*time.Second {
			d.t.Logf("slow: peer %d was killed at %s, peer %d named it after %v and went on after %v",
				c.peer, c.from.UTC().Format(timeFormat), c.survivor, c.named, c.resumed)
		}
	}
}

// spread is a list of times in short.
func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "none"
	}
	slices.Sort(times)
	return fmt.Sprintf("median %v, worst %v, of %d", times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond), len(times))
}
