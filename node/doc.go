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
// A node listens where Config.Listen says, with TCP, QUIC or both, and does
// nothing unasked: no relay, no port mapping, no discovery, no metrics, no
// probing of its own addresses. libp2p's limits are sized from Config.Peers,
// because its defaults, made for nodes that serve strangers, cut a world of a few
// hundred ranks apart (see limits.go).
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
