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
// to half of the throughput. To one beyond it takes bbr, or else cubic, and leaves no
// more than 256 KiB unsent in the kernel: heartbeats wait behind that, and behind
// nothing else. Elsewhere than on Linux the system chooses.
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
// The same emulation passes each packet through user space, which cost 34 µs of a
// processor on a machine that had other work too. An all_reduce of 64 MiB among four
// hosts is 300,000 packets with their acknowledgements, so 10 s of processor time, and
// two processors have 8 in the 4.0 s that 200 Mbit/s would need. The result, 5.7 s or
// 70 % of the bound, is therefore as much the emulator's as ours. With 50 Mbit/s and
// 16 MiB the bound is the same and there are fewer packets. There recursive halving took
// 5.3 s (76 % of the bound, 5,400 packets lost to a full queue) and a ring 4.8 to 4.9 s
// (82 to 85 %, 1,000 lost), as a ring keeps one neighbour each way. On links that rested
// between rounds bbr was seen in its start-up still, at 2.9 times the rate of the link:
// samples that the application limits do not end it, and that fills the queue.
//
// Three things did not help. With 4 MiB unsent in the kernel instead of 256 KiB, or with
// cubic, which lost nothing, 64 MiB took as long within the spread. Lanes that send one
// behind the other instead of side by side, so that the first is a round ahead, save half
// of the pauses on modelled links (1.03 s for 1.07, bound 1.01), and nothing here.
package tcp
