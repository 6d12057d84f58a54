// Package trainer trains one model on many ranks at once: each computes the
// gradients of its own samples, all average them, and every rank takes the
// same step, so that all hold the same model at any time, to the last bit.
//
// It is the Go counterpart of what torch.utils.data.distributed,
// torch.nn.parallel and torch.optim are for a program that trains in PyTorch.
// It brings no networks of its own: those are the caller's, or package nn's.
//
// # A training loop
//
// Five parts meet in a loop, in the order of the data's way through them: a
// sampler says which samples are this rank's, the model turns a batch of them
// into gradients, a DDP averages those over the ranks of a group, and an
// optimiser steps.
//
//	sampler, err := trainer.NewDistributedSampler(set.Len(), g.Size(), g.Rank(),
//		trainer.SamplerConfig{Shuffle: true, DropLast: true})
//	ddp, err := trainer.NewDDP(ctx, g, model.Params(), trainer.DDPConfig{})
//	optimizer, err := trainer.NewSGD(model.Params(), trainer.SGDConfig{LR: 0.01, Momentum: 0.5})
//	for epoch := range epochs {
//		sampler.SetEpoch(epoch)
//		for indices := range trainer.Batches(sampler.Indices(), size, true) {
//			set.Fill(batch.X, batch.Y, indices, mean, std)
//			loss, err := model.ForwardBackward(ctx, batch, ddp.Ready)
//			err = ddp.Wait()
//			err = optimizer.Step()
//		}
//	}
//
// With a group of one rank the loop is the ordinary one, and nothing is sent.
//
// # Data
//
// A [DistributedSampler] deals the samples of a set afresh each epoch, as
// PyTorch's class of that name does and in its exact order. The ranks exchange
// nothing for that: all compute one permutation and each takes every Size-th
// of it. So the batches of one step, taken together, are a contiguous piece of
// the permutation, and the same samples whether one rank takes a batch of 128
// or four take 32 each. All ranks get equally many, which they must, since
// collectives want every rank to take as many steps as the others.
//
// A [DataPartitioner] is the simpler class of PyTorch's tutorial: disjoint
// parts, cut once. It exists to repeat the tutorial's runs.
//
// Package peermesh/trainer/mnist has the data of the examples.
//
// # Models
//
// A [Model] has parameters and a method that computes gradients. A [Param] is
// two tensors of package tensor, float32 or float64 in host memory: a value and
// its gradient, or none for what is not to be trained. Params come in the order
// of the forward pass, the same on every rank.
//
// ForwardBackward reports each gradient as soon as it is final. Backward goes
// from the last layer to the first, and while it computes the next one, those
// reported are already on their way. Package peermesh/trainer/nn has the two
// reference networks; in its ConvNet the layer with 98 % of the parameters is
// final when half of the step is still to come, so its averaging can hide there.
//
// # Averaging
//
// There are two ways; take one.
//
//   - [DDP], for use. NewDDP checks that all ranks have the same parameters,
//     gives all of them rank 0's values, and deals the gradients to buckets, from
//     the last parameter to the first. Ready(i) says that gradient i is final.
//     When those of a bucket are, and the buckets before it are on their way, its
//     all_reduce begins. Wait returns when every gradient is the average.
//   - [AverageGradients], to read: one all_reduce a parameter, after backward,
//     as the tutorial writes it.
//
// The loss is a mean over the batch of a rank, so its average over ranks is
// the mean over all batches of the step only when these are equally long:
// drop a last shorter batch, or let all ranks have it alike, which a
// DistributedSampler gives without further thought.
//
// # Optimisers
//
// An [Optimizer] is torch.optim's, with its arithmetic, defaults and checks:
// [SGD], [Adadelta], [Adagrad], [Adam], [AdamW] and [RMSprop]; or where PyTorch
// has none that of the paper: [LAMB], for large batches, and [Lion], with half of
// Adam's memory. In every configuration the zero value is the default; for a 0
// where the default is not 0, there is [Zero]. Optimisers know nothing of ranks:
// each rank steps for itself, from the same numbers to the same numbers.
//
// Parameters with settings of their own are a further group. Most commonly,
// biases do without the decay that weights have:
//
//	optimizer, err := trainer.NewAdamW(weights, trainer.AdamWConfig{LR: 3e-4, WeightDecay: 0.1})
//	err = optimizer.AddParams(biases, trainer.AdamWConfig{LR: 3e-4, WeightDecay: trainer.Zero})
//
// A [Schedule] moves the rates of all groups along a [Curve]: [StepLR],
// [CosineAnnealing], [OneCycle] or any [CurveFunc], with a [Warmup] before if
// need be. It is a function of the number of steps, so the ranks agree without a
// word. [ReduceLROnPlateau] follows a metric, which must be the same on all.
//
//	schedule, err := trainer.NewSchedule(optimizer, trainer.Warmup{Steps: 500, Start: 0.01,
//		Then: trainer.CosineAnnealing{Steps: 9500}})
//
// [ClipGradNorm] stands between the averaging and the step, the schedule after
// it:
//
//	err = ddp.Wait()
//	norm, err := trainer.ClipGradNorm(model.Params(), 1)
//	err = optimizer.Step()
//	schedule.Step()
//
// All that the next step depends on is in Params and in the State of optimiser
// and schedule: tensors with names, to read into a checkpoint. To go on from one,
// build everything as it was built at first, and then give it the values:
//
//	all := slices.Concat(model.Params(), optimizer.State(), schedule.State())
//	err := trainer.LoadState(all, saved)
//
// The run goes on to the last bit as if it had not stopped.
//
// # What is identical, and why
//
// Between the ranks of one run, every bit of every parameter. [Hash] shows it;
// compare its results to catch what no reasoning covers, such as faulty memory.
// It follows from three facts:
//
//   - all start with rank 0's values, not with a seed they agree on;
//   - an all_reduce leaves the same bits on all ranks, though floating-point
//     sums depend on their order: package schedule admits only schedules under
//     which every copy of a result comes from one tree of additions;
//   - an optimiser computes the same from the same, on every architecture,
//     since no multiplication and addition are fused behind its back.
//
// Between two runs on one kind of machine with the same seeds, world size and
// settings, the same holds. Every choice of a schedule is a function of what
// all ranks know, never of what arrives first.
//
// Between worlds of different sizes, only nearly: the same samples are summed in
// another order. Without dropout and with the same global batches, the losses of
// 1, 2 and 4 ranks agree to about 1e-4 after fifty steps. Likewise DDP divides a
// gradient by the number of ranks before it is summed, AverageGradients after;
// where that number is no power of two, the last bits differ.
//
// # Errors
//
// Wrong arguments are errors of the constructors; ranks that have built
// different models each get a *[ParamsError] that says where. A parameter that
// took no part in the loss is an error of Wait that names it.
//
// All other errors come from the group, and errors.As finds what they are: an
// *ops.MismatchError where the ranks have lost step, the end of the world where
// one has died. After an error of Wait or AverageGradients the gradients are
// unspecified and the parameters still those of the step before: do not Step.
package trainer
