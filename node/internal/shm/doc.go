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
// A byte crosses from one core's cache to another's, and that is the limit. On two cores of
// an AMD Turin (a virtual machine shared with others) it has two values, minutes each, by
// where the hypervisor has the cores. Near, with a cache in common, a ring of C programs
// carries 29 GB/s, 13 to and from memory. Far, 4.5: to write to lines that the other has
// read takes them from there, at 5.9 GB/s, while all else goes on at 20 and more. Past the
// caches (movntdq) it is 16 to 20 GB/s far, and 19 near, where that is the worse. So a
// writer tries both; see pourer. It is 0.8 µs to and fro between two C programs that do
// nothing but look, and 2 µs for an all-reduce of a few bytes with all that is above. Between
// processes that share a core it is two hand-overs of 4.7 µs, by sched_yield as by futex,
// and some 10 µs a rank is the least that a small operation then takes; 25 µs when both
// sleep and ring.
//
// An all-reduce of 1 MiB in two ranks puts in and takes out 1 MiB a rank. Medians of three,
// interleaved, in µs: near 65, and Open MPI 122; far 94 (221 without the pourer), and Open
// MPI 265. Far, 64 KiB take 9.4 µs (16.8). A stream of 64 MiB messages takes 4.5 ms a message
// near, and Open MPI 15; far 5.4 (8.6), and Open MPI 7.6. That is 128 MiB copied on two
// cores, which copy 15 GB/s each to and from memory.
//
// Open MPI reads from the sender's memory (process_vm_readv), one copy for each byte, where
// here are two. Far, that is 4.3 GB/s from memory, and 7.3 if both sides do half of it; 18 from
// a warm cache. Two copies on two cores are faster than one copy on one, so it is not done.
// It would earn something where ranks share processors. Four on two, on a quiet machine, 1 MiB,
// medians of runs of two and three rounds in µs: a scatter took 82 to 99, and Open MPI 57 to 73;
// an all-to-all 227 to 310, and Open MPI 161 to 204. That all-to-all copies 7 MiB in two for
// each byte, 180 µs on two processors at 20 GB/s, and 4 MiB in one. Of the scatter's 1 MiB the
// root copies 768 KiB, 35 µs near, its best run was 31 and one in ten took less than 70: what
// is above that are hand-overs, for which the hypervisor takes 6 µs (sched_switch to the next
// system call). The root's own part last and another barrier between the runs were within chance.
//
// A connection takes 2.6 ms of processor a second when nothing happens, a thousand streams
// on it, a reader asleep on each, 2.6 to 2.9, and an idle node without any 4 (/proc/PID/stat
// over 10 s): what is left is the Go runtime's and libp2p's own.
//
// What else has something to run weighs on ranks that share processors, be its priority
// ever so low. Beside some dozens of idle-class processes four ranks on two processors
// (Linux 6.18) took 2 to 4 ms to reduce 16 KiB, and 0.1 at other times; a trace of the
// scheduler shows all four on one processor for tens of milliseconds, while idle-class
// processes had the other. Who yields is not woken, so the system lets what it yields to
// run for its time slice, whatever the class: milliseconds. A yield also counts as a whole
// slice used, so that other work soon has a claim; with slices of 100 µs, which a process
// that shares processors takes, that is less (see slice): a scatter of 1 KiB 82 µs for 235,
// but the 16 KiB as before. To sleep on a futex in
// place of the yields, or to bind each rank to a processor, made it no better. To go
// back to the beginning of a ring that is empty, so that short messages stay in the
// caches, did not either.
//
// Run the package's benchmarks for another machine; their other end is another process.
package shm
