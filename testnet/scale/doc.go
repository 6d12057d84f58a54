// Package scale measures what worlds of real nodes take and hold as they grow: how many
// connections, streams and goroutines, how many bytes until they stand, how much memory
// and how many processor seconds.
//
//	r, err := scale.Measure(100)
//
// All nodes are of this process, on modelled links, in virtual time: a machine that is
// slow makes it take longer and changes no count. Nodes of one process check a signature
// once between them, where those of as many machines would each check it.
//
// `make scale` prints the table of 10, 100 and 1,000 nodes, and testnet/SCALE.md says
// what follows from it for worlds that are larger.
package scale
