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
// What the least is, on a day when Gloo took 0.17 to 0.21 s and this 0.36 to 0.44 (0.46 to
// 0.49 of Gloo): 403 MB are sealed and opened, at 5.0 GB/s a core (AES-128-GCM, 16 KiB), 0.16 s
// of processors' time, and the kernel takes 0.29. The sum, on two processors 0.23 s, with not
// one copy between, would be 0.75 to 0.9 of Gloo. A quarter of all time is copies, of which
// crypto/tls and yamux make four of each byte on its way: into yamux's buffer, to the wire's
// batch, out of the record to yamux, out of that. Frames of 64 KiB for 256, batches of 64 for
// 128, one or two lanes for four, one processor a rank (GOMAXPROCS) and fewer collections
// (GOGC) made no difference.
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
// before has come in: what a link loses, the ring loses. A connection that has rested for a
// time-out begins with ten segments again under cubic (RFC 5681, section 4.1; Linux's
// tcp_slow_start_after_idle, which is no socket's option); bbr, which is spared that, was
// seen in startup, limited by the application, for seconds. In an all_reduce that turns
// round in the middle, as a ring and its reverse, half of the connections rest for half of
// the time. So what is taken on long links is schedule.Cycle, which keeps its peers. It
// shows where packets are lost: one after the other, 5.7 s for 7.5.
//
// Cubic's queue keeps the link busy while a round turns over. Four lanes of a window each,
// 2 to 4 MiB under way, fill 200 Mbit/s, 40 ms and most of a queue of 100 ms, and lose next
// to nothing to it; two leave the link empty, and eight spill.
//
// On emulated links of 200 Mbit/s and 40 ms with queues of 100 ms, all_reduce of 64 MiB
// among four hosts, medians of three (of four with loss) in seconds; the bandwidth bound is
// 4.03 s, the emulator, the ranks and other work share two processors:
//
//	packets of 9000 bytes   cycle, cubic, what is chosen   4.29           94 %
//	                        ring, cubic, 3 lanes           4.38           92 %
//	                        ring, cubic                    4.29 to 4.50   89 to 94 %
//	                        ring, cubic, 2 lanes           5.25           77 %
//	                        ring, cubic, 8 lanes           4.80           84 %
//	packets of 1500 bytes   cycle, cubic, what is chosen   4.63           87 %
//	                        ring, cubic                    4.57 to 4.76   85 to 88 %
//	                        cycle, bbr                     4.94           82 %
//	                        Gloo, bbr by the system        5.67           71 %
//	1500 bytes, 0.5 % lost  cycle, what is chosen          5.31 to 5.87   69 to 76 %
//	                        ring                           7.53           53 %
//	                        Gloo, bbr by the system        7.01 to 8.11   50 to 57 %
//	                        Gloo, cubic                    191            2 %
//
// With loss the longest run of a ring took 13.4 s, and those of a cycle 5.7 and 6.2 s. Gloo
// takes what the system has by default, which is cubic on most: one run, and 34 times as long.
// Where it is bbr, Gloo is at half of the bound, and nobody could be twice as fast.
//
// Packets of 1500 bytes are as many as the machine can emulate. Headers leave 97 % of the
// bound, the emulator alone uses one processor and everything together 1.75 of the two;
// four plain TCP streams round the hosts, which wait for nobody, took 4.4 to 4.9 s with
// cubic, 4.2 to 4.3 s with bbr, and 4.4 to 4.7 s with bbr and the loss (first transfers,
// which are longer, left out).
//
// A world's survey reads such a link low, 8 to 17 MB/s for 25, and 2 to 5 with loss: its
// burst ends within the slow start. Four lanes and the cycle are chosen by size and by
// turns, so that does no harm here; where it takes more lanes than four it would.
//
// How many lanes may send at a time was tried as well, so that one is a round ahead of the
// others: 3 of 6 took 4.56 s, as 3 of 3 do, 4 of 8 took 4.84 and 5.26 s, and 2 of 8 at 9000
// bytes 5.15 s. It is not worth its code.
//
// With 0.5 % lost, 50 Mbit/s and 40 ms between two hosts, five all_reduces of 8 MiB took
// 20.6 s with all that comes before, with a pilot, 20.7 s with bbr from the beginning, and
// had sent a quarter after 21 s with cubic alone: the pilot turned within the first seconds.
//
// Network namespaces of one machine are one machine to shared memory, as long as they
// share a directory. Whoever emulates hosts by them wants TCP alone, peer bench
// --transport tcp; without that, half of the bytes were seen to go past the links.
//
// Lanes that send one behind the other instead of side by side save half of the pauses on
// modelled links (1.03 s for 1.07, bound 1.01); here 4 MiB unsent in the kernel did nothing.
package tcp
