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
// (gossip.go). What a peer knows is a view, a set that merges in any order
// (view.go). From its view, and from whom it can reach, each peer decides alone
// and by a pure function what to do (decide.go): the World peers that joined
// first are the candidates, and the one with the lowest ID among them proposes.
// The function's other result is a sentence, which is logged every three seconds
// while there is no world, and is part of the error if there never is:
//
//	2 of 4 here: 12D3…Tq8Wfa (this peer), 12D3…gk2mQz; waiting for 2 more;
//	bootstrap /ip4/192.0.2.7/tcp/4001 cannot be reached: connection refused
//
// A proposal (form.go) is a roster: an epoch, the roster it follows, and the
// members. Each member acknowledges, which is a promise to join no other until
// the verdict, or says why not. When all have acknowledged, it is committed. Ranks
// are the members in the order of their peer IDs, so all hold the same table.
// World returns once every two members are linked by a control stream.
//
// A peer that does not fit, because of its mesh's name, the size it wants, or a
// world that is complete, is told so: its World returns a *RefusedError.
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
// After an end World gives the next epoch, when as many peers are there again;
// the survivors must ask for it.
//
// # What peers may do to each other
//
// Every stream is authenticated by libp2p, and checked against the roster. Every
// length and count has a bound (SPEC.md lists them, and every byte), which is
// checked before memory is allocated. A stranger that sends garbage loses its
// stream, a member that breaks a lane loses the lane, and one whose control stream
// makes no sense ends the world under its own name.
package mesh
