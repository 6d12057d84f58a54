// Package node runs one libp2p host: who this process is, where it listens, and
// streams that end when a context does.
//
//	n, err := node.Start(ctx, node.Config{Identity: "peer.key"})
//	…
//	defer n.Close()
//
// # Identity
//
// A peer is its Ed25519 key: its ID is a hash of the public half, and every
// connection proves it (Noise or TLS 1.3, whichever both sides have; there is no
// way to turn that off). Give Config.Identity to keep the same ID from one start
// to the next. Two processes must never share one.
//
// # What is on and what is off
//
// A node listens where Config.Listen says, with TCP, QUIC or both, and in shared
// memory for the peers of its own machine and user (nothing is encrypted there; who
// is who is proved all the same). It does
// nothing unasked: no relay, no port mapping, no discovery, no metrics, no
// probing of its own addresses. libp2p's limits are sized from Config.Peers,
// because its defaults, made for nodes that serve strangers, cut a world of a few
// hundred ranks apart (see limits.go).
//
// # Who may come in
//
// Anyone, unless Config says otherwise. Two locks can be put on, one or both:
//
//   - Config.Secret makes a private network. All members have the same secret (see
//     ReadSecret), and each connection begins with a proof of it, on every transport.
//     On TCP everything is encrypted with it besides, so that a port scanner does not
//     even learn that this is libp2p.
//   - Config.Allow lists the peers that may connect (see ReadAllow). Their IDs are
//     proven by the connection itself.
//
// Both act between the transports and the host: a connection that is not admitted
// is none of the host's, and no protocol sees a byte of it, not even identify. The
// stranger learns the reason at once: its Connect or Open returns a *DialError for
// which errors.Is finds ErrSecret or ErrNotAllowed. Here a line is logged, at most
// one a second. SPEC.md has the bytes.
//
// Limits on connections, streams and memory hold for everyone, members included,
// and follow from Config.Peers. A member that turns bad, and opens streams without end
// that it fills and never reads, has MaxPeerStreams of them, with a Window of bytes
// each: 512 MiB, and with what this node has opened to it never more than 1088 MiB
// (peerMemory). More streams are reset, and a flood of them ends its connection. These
// are bytes of data, in frames that yamux keeps each by itself: of 32 bytes or more they take
// at most three times as much memory. Smaller ones take up to forty times, so those that
// nobody has read are counted, in that peer's memory too, and 68 MiB of them (a million) end
// the connection (frames.go): more than one stream can hold.
//
// # Across NATs
//
// Two peers that nobody can dial need a third that both can: one with Config.Relay.
// They set Config.NAT and name it in Config.Relays, as a rule the bootstrap peer.
// They can then be reached through it, and as soon as they have been, a hole is
// punched for a direct connection, by QUIC. Where that fails, the relay carries
// everything, encrypted from end to end. Relayed says which peers are reached so.
// Streams do not move, so the first one to a peer waits two seconds for the hole.
//
// libp2p's relays cut a connection after two minutes or 128 KiB; ours lets a
// training run through (see relay.go), and costs its owner that traffic. Only a node
// with NAT set ever uses one.
//
// # Streams
//
// Open and Handle give a Stream that is tied to a context. Nobody needs to watch
// a stream in order to close it in time: end the context, and reads and writes
// return its cause, here at once and at the other end as a *ResetError with the
// same meaning (see CodeOf). That is the one road on which a reason travels.
//
// # Logs
//
// libp2p logs through go-log here, so one call of go-log's SetLogLevel or
// SetupLogging serves it and this project alike.
package node
