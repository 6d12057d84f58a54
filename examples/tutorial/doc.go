// Tutorial has the steps of "Writing distributed applications with PyTorch" and of the
// article on data-parallel training of MNIST, one file each. Each is a function of a rank,
// and main gives every process one:
//
//	peer launch -n 2 -- go run ./examples/tutorial blocking    # p2p.go
//	peer launch -n 2 -- go run ./examples/tutorial immediate
//	peer launch -n 4 -- go run ./examples/tutorial collectives # collectives.go
//	peer launch -n 3 -- go run ./examples/tutorial groups      # groups.go
//	peer launch -n 3 -- go run ./examples/tutorial ring        # ring.go
//	peer launch -n 2 -- go run ./examples/tutorial average     # average.go
//	peer launch -n 2 -- go run ./examples/tutorial ddp         # ddp.go
//
// The page doc/tutorial.md goes through them.
package main
