// Package mesh lets peers find each other, agree on who has which rank, and
// exchange messages.
//
//	n, err := node.Start(ctx, node.Config{})
//	m, err := mesh.Join(ctx, n, mesh.Config{World: 4, Bootstrap: []string{addr}})
//	w, err := m.World(ctx) // blocks until four are there
//	…                      // w.Rank(), w.Size(), w.Send, w.Recv
//	err = m.Leave(ctx)     // what was sent is delivered
//
// # From strangers to a world
//
// There is no master. A bootstrap peer is one whose address others were given;
// it is a member like them, and once the world stands it may die like them.
//
// Every peer signs an announcement of itself: the mesh's name, the world it
// wants, where it can be reached, and since when it has been there. Peers that
// meet swap all announcements they know (meet.go), and gossip speeds that up
// (gossip.go). In a large mesh all meet a few, who will propose, before they meet each
// other (hub.go). What a peer knows is a view, a set that merges in any order
// (view.go). From its view, and from whom it can reach, each peer decides alone
// and by a pure function what to do (decide.go): the World peers that joined
// first are the candidates, and the one with the lowest ID among them proposes.
// The function's other result is a sentence, which is logged every three seconds
// while there is no world, and is part of the error if there never is:
//
//	2 of 4 here: 12D3…Tq8Wfa (this peer), 12D3…gk2mQz; waiting for 2 more;
//	bootstrap /ip4/192.0.2.7/tcp/4001 cannot be reached: connection refused
//
// A proposal (form.go) is a roster: an epoch, the world it follows, and the
// members. Each member acknowledges, which is a promise to join no other until
// the verdict, or says why not. When all have acknowledged, it is committed. Ranks
// are the members in the order of their peer IDs, so all hold the same table.
// World returns once the control streams are up and every member is in.
//
// A peer that does not fit, because of its mesh's name, the size or the terms it wants,
// or a world that is complete, is told so: its World returns a *RefusedError.
//
// # While it lasts
//
// Messages travel on lanes (send.go, recv.go): one libp2p stream for each pair,
// direction and lane, opened by the first message and kept. A lane is ordered and
// flow-controlled, and lanes do not wait for each other. A message carries a tag
// of 40 bytes that mesh does not read, and its length. The receiver sees both
// before a byte of payload is read, and the payload in pieces that it borrows, so
// nothing is queued and nothing allocated by a peer's word. Signals are small and
// go past the lanes.
//
// # What its links are like
//
// A world finds out how far its ranks are from each other and how fast bytes go there,
// and Survey returns it: the same on every rank, so that programs may decide by it
// alone. Latencies are measured as control streams come up and travel with each rank's word
// that the world stands; a few bursts follow, one for each host and each site (survey.go,
// chart.go). So the figures are agreed as the roster is, with no step of their own, and
// like a roster they are of one world: the next one measures anew. What a proposer knew
// beforehand, as by meeting the others, would have come even earlier, but it is linked to
// few in a large mesh, knows no rates, and a member that learns of the commit from another
// would not have it.
//
// # How it ends
//
// A world never changes, it ends: because a member's control stream broke
// (ErrLost), because it was not heard of for Config.Silence (ErrSilent), because
// somebody called End, or because a member left and was needed (ErrLeft). The
// first fault that anyone notices is everyone's: it is flooded over the control
// streams, and all methods of the World return it as an *EndedError that names the
// rank and its peer. Context ends with it, and context.Cause is the same error.
//
// Nobody is blamed for going because of another's fault. A rank whose world has
// ended stays until all others know of that end, and a farewell (Leave) is a
// conversation, not a message (leave.go). This matters because a connection that
// closes throws away what the other side had not read.
//
// Silence is measured against what a link has shown (pulse.go): the round trip, its
// variation, and how late beats come, which on a near network makes under two
// seconds. Beats have goroutines of their own, so a rank may compute for hours
// between two messages. A process that did not run itself blames nobody (watch.go).
//
// # The next world
//
// After an end World gives the next epoch; the survivors must ask for it. With
// Config.Min they go on with fewer, as soon as all that live have asked. A peer that
// starts again, or comes late, waits: Waiting names it, some rank ends the world
// with ErrGrow between two steps, and the next one has it. Peers go on looking for
// the members of their last world, and for their bootstrap peers, as long as they
// have no world or one that is too small, so the parts of a mesh find each other
// again whoever has died. One that ends worlds again and again is let in later each
// time; one that breaks the protocol, for a minute not at all.
//
// # Who may go on
//
// Two parts of a mesh that cannot reach each other must not both go on. The rule is
// dynamic linear voting (Jajodia and Mutchler, ACM TODS 15(2), 1990): the next world
// needs more than half of the one before, or half with its rank 0. Any two such sets
// share a member, which is in one of them at a time. Three questions make that less
// simple than it sounds, and pure functions answer them: memory.go, quorum.go, witness.go.
//
// What is "the one before"? A world whose forming was cut short may have been
// committed by some and not by others. A world goes on only if every member says
// that it stands, which each says once, of the highest epoch that it has ever
// promised, having seen that all have committed; a step needs them all. Call a world
// live if all said so. A peer that has not may therefore give a world up at any time,
// by promising a later epoch, and it is dead for ever: Passed. A peer that has does
// not know about the others: Doubt, until it has seen all their signatures, when the
// world is its Last, or is told by one that has passed it over. The next world must
// have a quorum of the latest Last that any of its members knows, and of every later
// world in doubt. This is the idea of Yeger Lotem, Keidar and Dolev (PODC 1997).
//
// Claim: each live world W has a quorum of the live world before it, in the order of
// epochs. Let L be the Last that W was formed upon, and V the live world that follows
// L. By induction V has a quorum of L, as W has; so some p voted in both. p said that
// V stands before it promised W, as after that it would not have, V's epoch being
// lower. So V was in p's memory when it answered W's proposer: as its Last, or
// something later, which contradicts the choice of L, or in doubt, and not passed
// over by any member, as V is live. So W has a quorum of V; and so on to the world
// before W. It follows that no two live worlds have one epoch, for they would share
// a member that has promised it twice, and that no two go on at once, for the later
// has a member of the earlier, which takes part in one at a time.
//
// Who votes? A peer that has forgotten what it promised must not vote on it: p above
// has to remember. So only members count that remember the world from having stood in
// it, and being told of it later does not make a voter. Config.State keeps the memory
// in a file, synced before an acknowledgement or a stand leaves. Peers that remember
// nothing can always form a first world, if as many meet as a first world takes:
// nothing tells them from a new run.
//
// Who knows? A peer that has started again remembers the world it was in, and has lost
// what was done there, unless that is on its disk; one that has just been let in has not
// got it yet. So among the voters of each world there must be a witness of it, who has what
// was done there, or else all members of that world, when nobody is left to wait for. A
// member is one that has lived on since it stood in it and had, then or by now, what was
// done before. It had that then if it was a witness of all worlds that this one goes on
// from, which the proposer, who knows all memories, tells it with the verdict; and it has it
// by now if the program says so: Config.Carries and World.Carried. A step needs all ranks,
// and each has what was done before its first. So a finished step is with every member
// of its world that lives on, these are its witnesses, and by induction so is it with every
// witness of a later one: no finished step is lost while anybody lives who has it, and what
// nobody has any more is lost, as mesh writes none of it to disk. A program that wants to
// outlive all its processes keeps checkpoints. When a world is lost with all its members, a
// member of the world before that was cut off may have as many steps, if none was finished
// since. So then that world must have a witness here, or all its members, and so on to the
// one before it: Before. When a step was finished, as the program says by World.Advanced,
// nobody before that world has as many: Ahead; else all would wait for ever for a peer
// that is gone for good.
//
// Who lies? A past carries the signatures of all its members, so nobody alone can
// make up a world, replay it in another mesh, or lead the epoch away; a peer believes
// a past only if it knows a member of it, or of each on the way to it from the last
// that it has seen. Epochs rise by bounded steps. Members that
// lie together can forge a past of themselves, and one that lies about its memory can
// break the rule above: this is agreement among peers that crash, stop, forget and
// are cut off, and a defence against strangers, but not against traitors.
//
// The tests hold this to thousands of random histories: of memories alone
// (model_test.go), and of real nodes in virtual time (seeds_test.go).
//
// # What peers may do to each other
//
// Every stream is authenticated by libp2p, and checked against the roster. Every
// length and count has a bound (SPEC.md lists them, and every byte), which is
// checked before memory is allocated. A stranger that sends garbage loses its
// stream, a member that breaks a lane loses the lane, and one whose control stream
// makes no sense ends the world under its own name.
package mesh
