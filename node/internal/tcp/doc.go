// Package tcp is a libp2p transport over TCP that is tuned for few busy connections.
//
//	libp2p.New(
//		libp2p.Transport(tcp.New),
//		libp2p.Muxer(yamux.ID, tcp.Batch(muxer)),
//		…
//	)
//
// On the network it is libp2p's own TCP transport, byte for byte: any libp2p peer can
// dial it and be dialled. It differs in how it moves those bytes.
//
// # Batches
//
// TLS seals 16 KiB at a time and writes each record with a system call of its own. A
// wire, the raw connection below the security layer, holds what one write of the muxer
// seals, up to 128 KiB, and sends it in one call; it reads as much at a time. Batch
// tells it where a write begins and ends. Nothing waits for a timer.
//
// # Links
//
// The handshake shows how far a peer is. To one within 5 ms a connection takes reno,
// where it may, or else cubic: next to nothing is lost there, and bbr's pacing costs up
// to half of the throughput. To one beyond it takes cubic, and leaves no more than 256 KiB
// unsent in the kernel: heartbeats wait behind that, and behind nothing else. Elsewhere
// than on Linux the system chooses.
//
// What is lost on the way, and not to a full queue, slows cubic down to a crawl. So a
// pilot looks at what the kernel counts, every 64 KiB: three losses within 1024 segments
// while the round trip is less than one and a half times the shortest, and the connection
// has bbr for good. A process that may not take bbr keeps cubic.
//
// # What it earns, and what did not earn its place
//
// An all_reduce of 64 MiB among four ranks of one two-core machine, TLS 1.3, medians of
// three interleaved runs: 0.34 s on the clock and 0.65 s of all processors' time, against
// 0.50 s and 0.89 s over libp2p's own transport. Gloo, which encrypts nothing, took
// 0.16 s and 0.28 s.
//
// A muxer of our own in yamux's place, which wrote each frame from the caller's
// goroutine and copied received data once, took 0.53 s and 0.61 s in the same runs: not
// worth a second wire format. In its profile a third was AES-GCM, a third system calls,
// and most of the rest copies, two of which crypto/tls makes of every byte. Ciphers and
// system calls alone are more than Gloo's whole; no muxer changes that.
//
// Several TCP connections below one of libp2p's were tried on an emulated network of
// 200 Mbit/s and 40 ms round trip, four hosts, all_reduce of 32 MiB (bandwidth bound
// 2.0 s). With bbr four connections were no better than one: 3.1 s at best against 2.4
// without loss, and 3.9 against 3.2 with 0.5 % of the packets lost; the spread of each
// was as large as the difference. With cubic and that loss four connections took 28 s.
// It is congestion control that fills a lossy link, not their number.
//
// # How full a long link is
//
// In a ring each link carries as much as every other, and a round begins when the one
// before has come in: what a link loses, the ring loses. bbr lets each connection rest for
// 200 ms every ten seconds, to see how short its round trip is, and four connections do not
// rest at once. Cubic fills the queue, which keeps the link busy while a round turns over,
// and after a drop has enough under way still. On emulated links of 200 Mbit/s and 40 ms
// with queues of 100 ms, all_reduce of 64 MiB among four hosts, medians of three
// (bandwidth bound 4.03 s; other work on both processors, as everywhere here):
//
//	packets of 9000 bytes, ring, cubic      4.38 s                   92 %
//	                       ring, bbr        4.62 s, 4.77 s, 4.80 s   84 to 87 %
//	                       direct, cubic    4.51 s                   89 %
//	                       halving, cubic   5.00 s                   81 %
//	                       halving, bbr     5.32 s                   76 %
//	packets of 1500 bytes, ring, bbr        5.07 s                   79 %
//
// Each figure is a run of its own; cubic's ring and the second of bbr's were one after the
// other. At 50 Mbit/s and 16 MiB, the processors busier still, bbr took 4.99 and 5.74 s and
// cubic 5.93 and 4.89 s: no difference. That the rests are what costs bbr is what its
// design says; nothing here has timed them.
//
// Which schedule is taken matters as much, and left to itself a group took halving there,
// not the ring. Why is not known. The price of a turn is bounded by the time of a message's
// bytes, so a rate that is read too high would do it, and a reader that has waited for a
// processor does find a whole burst at once.
//
// With 0.5 % lost, 50 Mbit/s and 40 ms between two hosts, five all_reduces of 8 MiB took
// 20.6 s with all that comes before, with a pilot, 20.7 s with bbr from the beginning, and had sent a quarter
// after 21 s with cubic alone: the pilot turned within the first seconds.
//
// Network namespaces of one machine are one machine to shared memory, as long as they
// share a directory. Whoever emulates hosts by them wants TCP alone, peer bench
// --transport tcp; without that, half of the bytes were seen to go past the links.
//
// Lanes that send one behind the other instead of side by side, so that the first is a
// round ahead, save half of the pauses on modelled links (1.03 s for 1.07, bound 1.01),
// and nothing here; nor did 4 MiB unsent in the kernel.
package tcp
