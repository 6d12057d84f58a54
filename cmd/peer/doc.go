// Peer trains a network on MNIST with other peers, wherever they are. There is
// no master: the peers find each other over libp2p, agree on ranks, and average
// their gradients.
//
// # On one machine
//
//	peer launch -n 4
//
// fetches MNIST if need be, starts four processes on the loopback interface and
// trains the ConvNet of the DDP article for one epoch. Each line begins with
// its rank; Ctrl-C ends all of them. The exit status is that of the rank that
// failed first, and one line says which and how.
//
// # On several machines
//
// The first peer is told no address. It prints the commands for the others,
// ready to paste, and then waits for them:
//
//	peer --listen /ip4/0.0.0.0/tcp/4001 --world 4
//	peer --bootstrap /ip4/192.0.2.7/tcp/4001/p2p/12D3KooW… --world 4
//
// The address is the best guess of those that it has; --log json lists all.
// Peers may start in any order. All need the same flags about the training,
// which is checked before the first step. A peer that is started without
// --identity has another peer ID each time; with it, peer id prints the ID:
//
//	peer id --identity peer.key
//	peer --identity peer.key --listen /ip4/0.0.0.0/tcp/4001 --world 4
//
// A world of one, the default, trains alone with the same code.
//
// # What is trained
//
// With --net convnet, the network and recipe of the DDP article: gradients
// averaged in buckets during the backward pass, Adadelta, the data dealt afresh
// each epoch. With --net tutorial, those of PyTorch's tutorial "Writing
// Distributed Applications": a fixed part of the data for each rank, gradients
// averaged one by one, SGD with momentum. --steps ends early.
//
// With --net convnet and --no-dropout, 1, 2 and 4 ranks that share one global
// batch of 128, as they do unless --batch-size says otherwise, train the same
// parameters, bit for bit: see params_hash below. 8 and 16 do until the end of an
// epoch, whose last 96 samples they cannot share out in the same way. (Dropout is
// drawn by each rank for itself.)
//
// At the end of every epoch the ranks compare a hash of their parameters. They
// must agree bit for bit; if they do not, the error names the ranks.
//
// # What is printed
//
// On stdout, results; on stderr, the log and errors. Each rank prints the loss
// of each epoch; rank 0 also shows progress, as a bar on a terminal and as a
// line every few seconds elsewhere, and at the end the test accuracy and the
// wall time of the epochs.
//
// With --log json a peer prints one object a line instead: one an epoch and a
// last one. All ranks print the same but for rank and their clocks, so peer
// launch passes on those of rank 0, without a prefix.
//
//	event               "epoch", "done"; "listening" for the first peer of a world
//	rank, world         this rank, the number of ranks
//	epoch               in "epoch": which, from 1
//	epochs              in "done": how many have begun
//	steps               taken since the beginning
//	loss                mean over the epoch's steps and over all ranks
//	last_loss           mean over all ranks of the last step
//	losses              mean over the epoch's steps, of each rank
//	accuracy            in "done": share of the test set, 0 to 1
//	params_hash         SHA-256 of the parameters, in hexadecimal
//	samples_per_second  of all ranks together
//	seconds             of the epoch; in "done": of all epochs, without the test
//	addrs               in "listening": this peer's multiaddrs
//
// A loss that is not a number is null. The log on stderr is JSON, too.
//
// # Exit status
//
//	0    trained to the end
//	1    the run failed: a peer was lost, refused us, or never came
//	2    the command line, or a file that it names, is at fault
//	130  interrupted; 143 for SIGTERM
//
// A rank that dies ends the world for the others: within seconds each of them
// exits with 1 and a line that names the rank and its peer ID. A second after
// Ctrl-C nothing is left, whatever was going on. Children of peer launch do not
// outlive it even if it is killed: each holds a pipe whose end is the launcher's.
//
// # Schedules
//
//	peer schedule all-reduce --ranks 8 --bytes 64MiB
//	peer schedule broadcast --ranks 6 --root 2 --algorithm tree --svg tree.svg
//
// prints the schedule that a group would take for a collective, round by round
// (ops/schedule says how it is read), or the one that --algorithm names. It proves
// it before it is printed, and says what of. Below is what all candidates cost on
// links of --latency and --rate: rounds, by which small vectors are slow; bytes
// that the busiest rank sends, by which large ones are; and the price, which counts
// both. Of more than 512 moves only the numbers are shown unless --algorithm asks.
// --svg draws it, too: time down, ranks across.
package main
