// Package pipe holds what the connections within one machine have in common:
// those of package memory, between nodes of one process, and those of package shm,
// between processes. Neither has records to seal or frames to cut, so each is a
// connection with streams of its own (transport.CapableConn) rather than a byte
// pipe for libp2p to build upon.
//
//   - [Ends] is what a connection says of its two peers.
//   - [Deadline] is a stream's deadline, for reads or for writes.
//   - [Lender] is a stream that lends bytes where they lie, and [Find] finds it
//     below the stream that libp2p gives to a program.
//   - [Local] and [Remote] are the errors of a reset.
package pipe
