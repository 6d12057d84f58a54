// Resnet trains a residual network on Fashion-MNIST: ten kinds of clothes, 60,000
// grey images of 28×28 to learn and 10,000 to be judged by.
//
//	apt-get install dataset-fashion-mnist   # on Debian; or -data FOLDER
//	go run ./examples/resnet -ranks 2 -epochs 3
//
// Ranks are libp2p nodes of this one process, which share out each batch, average
// their gradients by a DDP while backward goes on, and normalise over all of the
// batch: batch norms are synchronised, so the number of ranks changes nothing but the
// time. Each test image is judged by one rank.
//
// The network is ResNet-8 of He et al. (2015), 77,754 parameters; -blocks 2 makes it
// ResNet-14. The rate goes up and down once (-rate, OneCycle), with Nesterov's
// momentum and weight decay. Images are not altered.
//
// With -save FILE the model goes to a safetensors file, with the names of
// torchvision's ResNets.
//
// # Measured
//
//	go run ./examples/resnet -ranks 2 -steps 40    # 65.6 % of the test images
//	go run ./examples/resnet -ranks 2 -steps 300   # 0.64 epochs: 86.6 %
//	go run ./examples/resnet -ranks 2 -epochs 3
//	step 468: loss 0.7064, test loss 0.6436, accuracy 74.83 %
//	step 936: loss 0.3082, test loss 0.3032, accuracy 89.05 %
//	step 1404: loss 0.2272, test loss 0.2372, accuracy 91.48 %
//
// A step of 128 images takes about 0.25 seconds of one core of a 2024 server.
package main
