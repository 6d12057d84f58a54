// Pytorch runs programs that train with PyTorch, in Python, as the ranks of a mesh: the
// loop, the network and the optimiser are PyTorch's, and Peermesh averages the gradients.
//
//	go run ./examples/pytorch -n 2 -mnist -- /usr/bin/python3 examples/pytorch/train.py
//	go run ./examples/pytorch -world 2 -- python3 train.py               # or on two machines:
//	go run ./examples/pytorch -world 2 -bootstrap ADDR -- python3 train.py # the second
//
// What is after -- is any program that imports peermesh.py. It runs once a rank, and with
// it a bridge, a few goroutines of this process that are its rank in the mesh. README.md
// shows how a program uses it, and what was measured.
//
// # Between a program and its bridge
//
// The bridge listens on a Unix socket, of mode 0600 in a folder of its own, whose path is
// in PEERMESH_SOCKET, and takes one connection. The program sends requests and the bridge
// answers each, in order, before the next. Either is a frame: its length, 1 to 4096, as 4
// bytes, and then so many. All numbers are unsigned and little-endian. A request's first
// byte says which it is:
//
//	H  version (4 bytes: 1)                            hello, the first     rank (4), ranks (4)
//	S  bytes (8)                                       shared memory        with its descriptor
//	R  element type (1), reduction (1), elements (8)   all_reduce
//	B  element type (1), source (4), elements (8)      broadcast
//	W                                                  barrier
//
// To the right is what follows the first byte of an answer, K, when all is well. An
// answer E is an error, and a text follows; it is the last, and may come unasked, when
// the world has ended. A frame of another form is answered so, too. Element types are
// numbered as tensor.DType, reductions are 0 sum, 1 average, 2 minimum and 3 maximum.
//
// Elements never go through the socket. With the answer to S comes, as SCM_RIGHTS, the
// descriptor of so many bytes of memory, which both map; it takes the place of the one
// before. R and B work in it, from its beginning. On Linux it is a memfd that cannot
// shrink, so that a program can spoil its numbers but not end its bridge.
//
// # Ends
//
// Whatever ends a rank ends all, with its reason: a program's exit status, an error of a
// collective, a frame that is not one. A program hears of it in its next call, and has a
// few seconds to end by itself. One that ends well while others still want something
// from it is found out by a barrier at the end: they are told which operation it missed.
package main
