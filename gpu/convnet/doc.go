// Package convnet trains the two networks of package trainer/nn on a GPU, the reference
// ConvNet and that of PyTorch's distributed tutorial. A [Net] is a trainer.Model whose
// parameters, gradients and intermediate results are in a device's memory; an [Optimizer]
// moves them there. DDP, compressing hooks, package trainer/local, checkpoints, hashes and
// the carrying of state to a newcomer meet them as the tensors that they are.
//
//	d, err := gpu.Open(gpu.Config{})
//	net, err := convnet.New(d, nn.Config{Seed: 1})
//	opt, err := net.Adadelta(trainer.AdadeltaConfig{LR: 0.5})
//	ddp, err := trainer.NewDDP(ctx, g, net.Params(), trainer.DDPConfig{})
//	for batch := range batches {
//		loss, err := net.ForwardBackward(ctx, batch, ddp.Ready)
//		err = net.Prefetch(next)
//		err = ddp.Wait()
//		err = opt.Step()
//	}
//
// # A step
//
// All that a step computes is queued on one stream. A batch comes on another, from pinned
// memory, and there are two places for one. ForwardBackward returns when the loss is known,
// which is half-way: the device is still at work backward. Prefetch sets out with the next
// batch at that moment, which is copied meanwhile, and while gradients travel; it waits for
// nothing but the batch before this one. As soon as a stage's gradients are queued
// ForwardBackward says that they are ready; the memory of each stage is its own, so that its
// all-reduce begins when that stage is done, and its copies and sums go on beside the
// computation of the next.
//
// # What is exact
//
// The kernels (kernels.cu) have one thread for each element of a result, which adds up in
// the order of nn's portable engine; dropout draws nn's random numbers; and an optimiser
// has the arithmetic of package trainer's. So a step gives the same bits in every run and on
// every card, and where the compiler does not fuse nn's operations, as on amd64, those of
// the host: a run may begin on the one and go on, from a checkpoint, on the other. What may
// differ in the last bit are the exponentials in the loss, which are computed in float64
// and rounded.
//
// # Why kernels of our own
//
// A library would bring more along than it saves. Bindings of CUDA's libraries need cgo and
// the toolkit where a program is built, and cuDNN where it runs. GoMLX compiles a graph by
// XLA, whose plugin for CUDA is installed beside a program, with cuDNN and cuBLAS, and whose
// order of summation is its own. Either would end the promise of package gpu: one binary,
// built anywhere without CUDA, that uses the driver alone.
//
// The networks here have two convolutions and two linear layers. Sixteen kernels, three
// hundred lines of C, do for them: 52 kB of text in a program that grows by 0.6 MB in all. The
// driver makes 70 kB of machine code of it, of at most 47 registers a thread and without a
// spill. A step of 128 samples of the ConvNet is 2.3 GFLOP and moves 0.54 GB. Where each of
// these figures comes from is in gpu/README.md.
//
// What the kernels do not have is tuning. They use no shared memory and no tensor cores, since
// sums in a fixed order come first; a library's convolutions will be faster, by how much has
// not been measured.
//
// Not here: other networks. Who has another brings kernels as this package does, by
// gpu.Device.Load and gpu.Stream.Launch.
package convnet
