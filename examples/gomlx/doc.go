// Gomlx trains a network that GoMLX computes, with its gradients averaged by Peermesh.
//
//	cd examples/gomlx && go run . -ranks 2
//
// It is a module of its own, so that GoMLX and what it needs stay out of Peermesh's.
// README.md has what it prints.
//
// # Somebody else's network as a trainer.Model
//
// GoMLX builds a graph of operations once and runs it many times. A [Model] keeps two
// such graphs over the same variables: one from pixels to logits, and one from pixels
// and labels to the loss and its gradients, which GoMLX derives. Three things make
// that a trainer.Model:
//
//   - Params are the graph's trainable variables in the order in which the network made
//     them. Their values and gradients are slices of ours, which a DDP may put into its
//     buckets and an optimiser of package trainer steps.
//   - ForwardBackward copies the values into GoMLX's variables, runs the graph, and
//     copies the gradients out: 0.2 MB a step.
//   - ready is called when the graph has ended, for all gradients at once: GoMLX does
//     not tell of each. So they travel side by side, but not beside backward.
//
// Ranks are libp2p nodes of this one process, each with a backend of its own, written
// in Go: there is nothing else to install. GoMLX's XLA backend would do as well.
package main
