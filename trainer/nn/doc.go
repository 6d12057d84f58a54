// Package nn trains the two reference networks on the CPU: [NewConvNet], of the
// DistributedDataParallel article, and [NewTutorial], of PyTorch's tutorial on
// writing distributed applications; and [NewMLP], fully connected, which has more
// parameters to send for less computing. A [Net] is a trainer.Model, so it meets
// optimisers and DDP through the same small interface as anybody's own network.
//
// # A step
//
// ForwardBackward takes a [Batch] of any size through the stages of the network
// and back. A stage is one layer that learns, a convolution or a linear layer,
// and what follows it: max pool, ReLU, dropout. Backward, each stage's gradients
// are handed over, with ready, before the next stage begins, so that averaging
// them can overlap: in the ConvNet 98 % of the parameters are final when half of
// the work is still to come.
//
// # What is exact
//
// One seed gives the same parameters everywhere, and the same step the same
// masks. A step's result has the same bits on any number of threads, and, with
// the right all-reduce, on one, two, four or more ranks that share out a batch:
// see shard.go. A sample's output has the same bits in any batch. Only the two
// engines differ in rounding, assembly and [Config.Portable]. Ranks that mix
// them still end with equal parameters, as they average the same gradients.
//
// # How it is fast
//
// Convolutions are direct: a shifted view of an image is a row of a matrix, so
// nothing is unrolled, and a sample's intermediate planes stay in a worker's
// cache. All multiplication goes through two kernels (internal/kern), which have
// assembly for amd64. A step allocates nothing. On one core of a 2024 server
// (AVX2, 100 GFLOPS) a step of the ConvNet with a batch of 128 takes 37 ms, an
// epoch of MNIST 18 s.
//
// Not here: other shapes, padding and strides, which package layers has, and GPUs.
// This package is what the trainer is measured with, not a framework.
package nn
