// Package shm is a libp2p transport between processes of one machine and user, over
// shared memory, on addresses such as /unix/run/user/1000/peermesh/ID/NAME. It is
// for Linux on amd64 and arm64; see Available. SPEC.md has every byte.
//
// # Who may connect
//
// The two meet on a Unix socket in a directory that only their user can enter.
// Both prove their libp2p identity there: each signs the other's challenge, together
// with the name of the socket. The dialler then makes memory (a memfd, sealed so that
// its size cannot change) and passes it on. Nothing is encrypted: who could read the
// memory could read the processes as well.
//
// The address carries an ID of the running kernel and of the directory. A peer with
// another ID, on another machine or in a container of its own, never dials it; see
// place. No path that a peer has sent is ever opened.
//
// # How bytes go
//
// A stream is a slot of the memory with a ring of RingSize for each direction, with
// one writer and one reader. A byte is copied twice, in and out, or once if the
// reader takes it where it lies (Stream.Lend). Who must wait looks for some
// microseconds and then sleeps on a Go channel, at the cost of no thread, having left
// word that it wants a bell: a byte over the socket, heard by the connection's one
// goroutine. A stream on which nothing happens costs nothing; see waiter.
//
// With a processor for every peer, who looks does nothing else, for up to 400 µs: to let
// go is to have a thread woken, which takes ten times as long as an answer, and up to
// hundreds of microseconds on a machine with other work. With more peers than
// processors, or with the peer on the same one, it yields to the other processes after
// a microsecond; in the second case it moves as well, if it can. See seat. With more peers
// it does so for up to 4 ms (200 µs where both ends are in one process), for a rank that sleeps has the Go runtime wake its monitor
// every 20 µs. Whoever looks in vain does so for half as long next time, and after six
// times sleeps at once. Where Go has one processor, who looks also hears the bells for all
// that sleep.
//
// The memory is sparse and big (8 GiB of addresses a connection): it is there to be
// addressed, and only what streams have used takes up any. When a slot comes free,
// all but the first few give that back.
//
// # What the other side may do
//
// It may die, or write anything anywhere in the memory at any time. Its death closes
// the socket, which ends the connection and all streams with an error. Whatever it
// writes is read once, into a local variable, and believed only if it fits what is
// known here: indices that would lead out of the ring, or back, end the connection.
// Flags that say who sleeps cost at worst a bell too many, or too few for the one
// that wrote them. It can withhold and corrupt bytes, as any peer can, and what is
// lent may change while it is looked at.
//
// # What it costs
//
// A byte crosses from one core's cache to another's, and that is the limit: on two
// cores of an AMD Turin (a virtual machine shared with others) 7 to 10 GB/s each way
// where each core alone copies 14 GB/s within its cache and 7.5 to and from memory; 0.8 µs
// to and fro between two C programs that do nothing but look, and 2 µs for an all-reduce
// of a few bytes with all that is above. Between processes that share a core it is two
// hand-overs of 4.7 µs, by sched_yield as by futex, and some 10 µs a rank is the least
// that a small operation then takes; 25 µs when both sleep and ring.
//
// An all-reduce of 1 MiB in two ranks puts in and takes out 1 MiB a rank, at those 7 GB/s
// 150 µs to put in alone, half of which overlaps with nothing: some 180 µs in all is the
// best that was seen.
//
// Where ranks share processors there is a limit that Open MPI does not have: it reads from
// the sender's memory (process_vm_readv), one copy for each byte, where here are two. A
// scatter of 1 MiB among four ranks on two processors is 1.5 MiB to copy beside the root's
// own part, of which it copies 768 KiB itself, 75 µs at 10 GB/s, before the last can begin:
// 110 µs with the hand-overs. The best tenth of runs takes that and the median 150 to 240,
// where Open MPI takes 62 to 142. An all-to-all is 6 MiB to copy and 1 MiB at home, 340 µs
// on two processors; it takes 310 to 380, and Open MPI 230 to 310. Without
// process_vm_readv Open MPI is as fast as this (scatter 110, all-gather 300 to 480,
// all-to-all 250 to 330).
//
// What else has something to run weighs on ranks that share processors, be its priority
// ever so low. Beside some dozens of idle-class processes four ranks on two processors
// (Linux 6.18) took 2 to 4 ms to reduce 16 KiB, and 0.1 at other times; a trace of the
// scheduler shows all four on one processor for tens of milliseconds, while idle-class
// processes had the other. Who yields is not woken, so the system lets what it yields to
// run for its time slice, whatever the class: milliseconds. To sleep on a futex in
// place of the yields, or to bind each rank to a processor, made it no better. To go
// back to the beginning of a ring that is empty, so that short messages stay in the
// caches, did not either.
//
// Run the package's benchmarks for another machine; their other end is another process.
package shm
