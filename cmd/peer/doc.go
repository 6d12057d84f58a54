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
// failed first, and one line says which and how: the one that the others' errors
// name, even if it ends after them.
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
// Peers may start in any order. All need the same flags about the training
// and the same data: who comes with others is refused, and told which. A peer that is started without
// --identity has another peer ID each time; with it, peer id prints the ID:
//
//	peer id --identity peer.key
//	peer --identity peer.key --listen /ip4/0.0.0.0/tcp/4001 --world 4
//
// Nobody is the first where all are given the same place to meet: --bootstrap
// tcp://HOST:29500 (who has that name listens there), file:///shared/run-42, /dnsaddr/HOST,
// lan, or dht. Package node/rendezvous says what each takes on trust. The ID behind a
// tcp://HOST:PORT is kept beside the identity, in peer.key.pins, and wanted the next time.
//
// A world of one, the default, trains alone with the same code.
//
// # Any trainer, on any machines
//
//	peer launch -n 4 -- ./mytrainer --flags
//	peer launch --num-machines 2 --num-processes 4 --machine-id 0 --rendezvous tcp://HOST:29500
//	peer launch -n 4 --machines hosts.txt -- ./mytrainer
//	srun --ntasks-per-node=1 peer launch --slurm -n 4
//
// A trainer reads its place by mesh.FromEnv, and RANK, WORLD_SIZE, LOCAL_RANK and
// LOCAL_WORLD_SIZE as torchrun sets them. Ranks count over all machines, machine by machine:
// keys are drawn so that their IDs come in that order. --machines starts a launcher on each
// host over ssh, which ends with the one here. --restart on-failure starts a rank again,
// --max-restarts times; with --min it comes back to those that have gone on, without it
// all begin anew. --rank-logs DIR keeps what each prints, and --tee prints it, too. Ranks
// get cores of their own where each can have two or more; --pin says otherwise.
//
// # When some are lost
//
//	peer --identity peer.key --world 4 --min 2 --bootstrap … --bootstrap …
//
// goes on when ranks die, freeze or are cut off, as long as two are left and
// among them more than half of the world before (--quorum any lifts that). Those
// that are left take the next world and repeat the step that was not finished. A
// peer that is started again with its --identity, or a new one, is let in between
// two steps and is given the state; until the world is whole again, whoever comes
// is welcome. The state is in the peers' memory: if all die it is gone, but for what
// --checkpoint has kept. Beside its identity, in peer.key.world, a peer remembers the last
// world, so that its word counts when it returns. Any peer may be lost, the first one
// and rank 0 too: name several with --bootstrap. All ranks together take the same
// batch in a world of any size, and each epoch keeps an account: every sample is
// learnt from once, or the run ends with an error that says how many were not.
//
// What a rank does wrong itself, a panic for one, ends that rank; the others
// hear what it was, and go on. One that comes with other flags is refused, and ends.
//
//	peer launch -n 4 --checkpoint DIR --every 200 --keep 3 --resume
//
// keeps the state, in a folder that ranks share or have each for itself, and goes on
// from it with any number of ranks. A checkpoint that cannot be written is an error in
// the log, and no reason to stop.
//
// # Strangers, and peers behind NATs
//
// --secret FILE makes a private network: who does not know the secret is refused
// before anything else is said. --allow FILE lists the peer IDs that may connect. A
// peer with --relay lets those meet through it that nobody can dial; those are
// given --nat, and the relay as --bootstrap. They move to a direct connection when
// they can, and each world says which links are relayed.
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
// With --compress gradients travel in fewer bytes, for slow links: int8 is the first to
// try. Sums are then rounded on their way, and depend on the number of ranks. What each
// does and costs is in package peermesh/trainer/compress.
//
// With --method ranks step on their own, and bring their models together every
// --sync-every steps and at the end of each epoch: diloco sends a hundredth of the bytes.
// What each does, and which to take, is in package peermesh/trainer/local. With --min, a
// peer that is new begins where the last synchronisation ended.
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
// With --log-dir DIR rank 0 also keeps the losses of each step and epoch, the rate and
// the accuracy in that folder: in metrics.csv, which runs that resume go on with, and in
// an event file of each run, for tensorboard --logdir DIR. train/loss is the mean over
// the epoch so far.
//
// With --http ADDR a peer serves a page: the world with its links, who is slow and who is
// gone, the curves, what is in flight and what has happened, live, from this one binary;
// with launch it is rank 0's. /metrics there is for Prometheus, /state is the page as JSON,
// /debug/pprof comes with --pprof. An address without a host, as :8080, is loopback. The
// other ranks need no flag to be shown. --quiet prints the result alone.
//
// With --log json, or --json, a peer prints one object a line instead: one an epoch and a
// last one. All ranks print the same but for rank and their clocks, so peer
// launch passes on those of rank 0, without a prefix.
//
//	event               "epoch", "done"; "listening" for the first peer of a world;
//	                    "world" and "ended" for each world, "resumed" after the first
//	                    step in a later one
//	time                of the event, UTC, RFC 3339 to the microsecond
//	rank, world         this rank, the number of ranks
//	epoch               which pass over the data, from 1; in "world" and "ended": which world
//	size, peer          in "world" and "ended": its ranks, this rank's peer ID
//	relayed             in "world": ranks that are reached through a relay only
//	cause               in "ended": why; in "world": why the one before has ended
//	lost_rank, lost_peer  likewise: who was at fault, if somebody was
//	samples             learnt from in the epoch; in "done": since this peer began
//	samples_sum         in "epoch": the sum of a number that each sample has
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
//	3    of peer gpu: there is no GPU that can be used
//	130  interrupted; 143 for SIGTERM
//
// A rank that dies ends the world for the others: within seconds each of them
// exits with 1 and a line that names the rank and its peer ID. A second after
// Ctrl-C nothing is left, whatever was going on. Children of peer launch do not
// outlive it even if it is killed: each holds a pipe whose end is the launcher's.
//
// # When it hangs or fails
//
//	peer launch -n 4 --flight records --trace trace.json
//	peer diagnose records
//	peer doctor --bootstrap /ip4/192.0.2.7/tcp/4001/p2p/12D3KooW…
//
// What ends a run says in one line what is wrong and what to do about it. With --flight
// DIR each rank keeps its last 2,048 operations there when the run ends (package
// ops/flight), and with --log-dir DIR in DIR/flight if it fails. kill -USR1 has a rank
// write them now; Ctrl-\ too, with the stacks of all goroutines, and ends it. diagnose
// lays the records of all ranks side by side: who is late, who called what else, who is
// gone. Copy those of other machines into the folder.
//
// With --trace FILE rank 0 writes a timeline of all ranks, by its clock, to which each has
// compared its own: operations, messages, steps. Of a run that fails each rank writes
// its own part, FILE with its rank before the extension. All ranks are given the flag.
//
// doctor examines this machine and the way to a peer that waits; it exits with 1 if
// something keeps a peer from working. GOLOG_LOG_LEVEL=error,mesh=debug sets the log's
// levels by subsystem: ours are peer, node, mesh, ops and trainer.
//
// # Benchmarks
//
//	peer bench -n 4 --op all_reduce,broadcast --sizes 8,1KiB..64MiB*4
//	peer bench -n 2 --op all --transport tcp --json > before
//	peer bench -n 2 --op all --transport shm --against before
//	peer bench --world 4 --bootstrap /ip4/192.0.2.7/tcp/4001/p2p/12D3KooW…
//
// measures operations among processes of this machine, or among the peers of a mesh
// that are all started with the same flags. --transport memory has all ranks in one
// process. Of each operation, size and type the result is checked first, to the bit;
// one that is wrong is marked, and the exit status is 1. Then it is timed: each run
// follows a barrier, and lasts as long as on the slowest rank. pingpong and stream are
// between ranks 0 and 1 and have no barrier; their times are half a round trip, and
// one message of 16 under way (4 above 16 MiB). A size is that of the whole buffer,
// which in all_gather, gather, scatter, reduce_scatter and all_to_all has a part for
// each rank. Bandwidth is nccl-tests': the buffer over the median, and over that what
// the best algorithm sends on a link (2(n-1)/n of it in all_reduce). With --json:
//
//	op, world, dtype    what was measured
//	bytes, total_bytes  as asked for, and in whole elements and equal parts
//	median_us, min_us, p10_us, p99_us  of iters runs, in µs
//	algbw_GBs, busbw_GBs  in 10⁹ bytes a second
//	overhead_us         of the clock and the loop, which is in the times
//	ok                  whether the result was right
//	transport, algorithm, lanes  as asked for
//
// # Schedules
//
//	peer schedule all-reduce --ranks 8 --bytes 64MiB
//	peer schedule broadcast --ranks 6 --root 2 --algorithm tree --svg tree.svg
//	peer schedule all-reduce --hosts 2,2,3 --bytes 64MiB
//	peer schedule all-reduce --gpus 0,1/0,1,1
//
// # Scenarios
//
//	peer sim examples/scenarios/partition.txt --trace timeline.json
//
// plays what the file says (see package testnet/scenario) with real nodes on modelled
// links, in virtual time: which node went through what, its own faults marked with !;
// each round, from when the first rank began it until the last was done; and for each
// link the messages and payload of the rounds, and the packets and bytes of everything.
// ui.perfetto.dev shows the timeline. What is wrong with a file is said as FILE:LINE.
//
// prints the schedule that a group would take for a collective, round by round
// (ops/schedule says how it is read), or the one that --algorithm names. It proves
// it before it is printed, and says what of. Below is what all candidates cost on
// links of --latency and --rate: rounds, by which small vectors are slow; bytes
// that the busiest rank sends, by which large ones are; and the price, which counts
// both. Of more than 512 moves only the numbers are shown unless --algorithm asks.
// --svg draws it, too: time down, ranks across.
//
// # GPUs
//
//	peer gpu
//	peer gpu check --device 1 --json
//
// say which GPUs there are, with the driver and NCCL, and what to do about what is
// missing; and try everything against the hardware: copies, kernels, NCCL, two processes on
// one card, each with a deadline and a verdict. The second exits with 1 if any step failed.
// See package peermesh/gpu.
//
//	peer train --device cuda
//	peer launch -n 4 --device cuda
//
// train on a GPU, either network, with what an update needs in its memory; the processes of
// a launch share out what GPUs there are, and cuda:1 is device 1 for each. A checkpoint of
// the one goes on on the other. With --compress gradients are encoded in the host's memory,
// and with a --method other than ddp models meet there: both are copied there and back. See
// package peermesh/gpu/convnet.
package main
