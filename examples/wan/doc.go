// Wan trains a network on MNIST over slow links, by one method after the other, and
// prints what each has sent, how good it is and how long it took.
//
//	go run ./examples/wan                                   # ddp, local SGD, DiLoCo …
//	go run ./examples/wan -methods ddp,diloco/50+int8
//	go run ./examples/wan -rate 200 -delay 10ms -target 98  # links in real time
//	go run ./examples/wan -net mlp -methods ddp,ddp+int8    # ten times the gradients
//	go run ./examples/wan -seed 1                           # other parameters and samples
//	go run ./examples/wan -overlap -rate 200 -delay 10ms    # virtual time
//
// A method is ddp; lazy, a DDP whose gradients are waited for in the next forward pass; or
// one of package peermesh/trainer/local with the steps from one synchronisation to the next;
// and a codec of package peermesh/trainer/compress, with error feedback.
//
// Ranks are libp2p nodes of this one process. Without -rate and -delay they are joined in
// memory, and the column "link" is arithmetic: the bytes over -price, plus -latency for
// each round of messages of a ring. With them their links are modelled (package simlink),
// and messages take real time on their way, beside the real time of all computing, for
// which the ranks share the machine's cores.
//
// With -env the process is one rank of a world that the environment names, as peer launch and
// torchrun set it, on links that are there:
//
//	peer launch -n 4 -- go run ./examples/wan -env -methods ddp,lazy+int8
//
// Tests are taken now and then on the model that all ranks have in common, with the clock
// stopped. See README.md for tables.
package main
