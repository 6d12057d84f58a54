// Package memory is a libp2p transport between hosts of one process, on the
// addresses /memory/1, /memory/2 and so on. Listening on /memory/0 takes a number
// that is free.
//
// Nothing is encrypted, because nothing leaves the process, and nobody signs
// anything: a listener is entered in the process's register together with the
// private key of its host, and so is a dialler's transport, so each end is known by
// a key that is really held. What guards a network still does: a pre-shared key
// must be the same on both sides, the connection gater is asked, and libp2p's
// limits count connections, streams and memory as those of any other transport.
//
// # How bytes go
//
// Each direction of a stream is a [half]. A short write is copied into a buffer,
// which grows with use up to window bytes, and out of it again. A long write is
// lent instead: the reader takes it from where the writer has it, in one copy, or
// in none (Stream.Lend), and the writer waits until all is taken. A stream thus
// carries up to window bytes ahead of its reader in short writes, and none of a
// long one.
//
// There are no goroutines here and nothing spins: who must wait waits on a
// channel, so a testing/synctest bubble may hold both ends.
package memory
