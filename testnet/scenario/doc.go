// Package scenario plays what can happen to a world: a text says which nodes stand
// where, how they are linked, what they compute and what befalls them; real nodes
// live through it in virtual time; a report says what happened to whom.
//
//	name two-coasts
//	nodes 4
//	seed 7
//	region east 0-1
//	region west 2-3
//	port 0-3 up=10MB down=100MB
//	link * * latency=1ms
//	link east west latency=35ms jitter=2ms loss=0.001
//	min 3                       # a world may go on with three
//	rounds 20
//	bytes 1MiB
//	at 1.5s cut 0 2
//	at 2s heal 0 2
//	round 10 kill 3
//	at 20s restart 3
//
// A line is a statement; # begins a comment. `nodes` comes first, after `name` and
// `seed` if they are there. Rates are bytes per second. Where several links or
// ports cover a node, the last counts. A world makes `rounds` all_reduces of `bytes`
// bytes, each after a `pause`, and when it ends the next world goes on with the
// round after the last that any rank has finished. Rank 0 ends it between two rounds
// when somebody waits to be let in. Faults happen at a time after
// the first world stood, or before a round begins: kill, restart, freeze, thaw and
// slow NODE, skew NODE TIME, cut, heal and relink NODE NODE. What they do is said in package
// testnet.
//
// Run plays a scenario. Random draws faults from a seed, and Shrink finds the
// shortest part of a plan that still fails:
//
//	for seed := range uint64(100) {
//		s.Faults = scenario.Random(seed, s.Nodes, 10, time.Minute)
//		if !good(s) {
//			t.Fatalf("seed %d: %v", seed, scenario.Shrink(s.Faults, bad))
//		}
//	}
package scenario
