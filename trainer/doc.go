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
// Package peermesh/trainer/fit is this loop with all that surrounds it in practice:
// validation, callbacks, loggers, checkpoints, and worlds that change.
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
// parts, cut once. It exists to repeat the tutorial's runs. An [ElasticSampler]
// deals to ranks that change in the middle of an epoch, see below.
//
// On one rank, a [RandomSampler], a [WeightedSampler] or a [SubsetSampler] is an
// order, and a [ShareSampler] is one rank's share of such an order. For a test set
// there is the [EvalSampler], by which each sample counts exactly once.
//
// Package peermesh/trainer/data loads batches by any [Sampler], on goroutines of
// its own, and the packages below it read files; peermesh/trainer/mnist has the
// data of the examples.
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
// Package peermesh/trainer/nn/layers has the parts of others.
//
// # Averaging
//
// There are two ways; take one.
//
//   - [DDP], for use. NewDDP checks that all ranks have the same parameters,
//     gives all of them rank 0's values, and deals the gradients to buckets, from
//     the last parameter to the first; after the first step, in the order in which
//     they became ready. Ready(i) says that gradient i is final. When those of a
//     bucket are, and the buckets before it are on their way, its all_reduce begins.
//     Wait returns when every gradient is the average.
//   - [AverageGradients], to read: one all_reduce a parameter, after backward,
//     as the tutorial writes it.
//
// The loss is a mean over the batch of a rank, so its average over ranks is the
// mean over all samples of the step only when the batches are equally long. Where
// they are not, tell the DDP what each counts for:
//
//	ddp.Weigh(share.Weight()) // of an ElasticSampler: this rank's part of the samples
//	if len(share.Indices) == 0 {
//		ddp.Idle()
//	} else {
//		loss, err = model.ForwardBackward(ctx, batch, ddp.Ready)
//	}
//	err = ddp.Wait()
//
// Ranks that run out of batches at different times set DDPConfig.Uneven and call
// [DDP.Join] at the end of theirs. To accumulate gradients over several batches,
// call [DDP.NoSync] before all but the last. Parameters that do not take part in
// every loss need DDPConfig.FindUnused, or Static if they are always the same
// ones; without it they are an error that names them. Running means and the like
// are DDPConfig.Buffers. A model that looks up Grad in every step, as those of
// package nn do, can have Views, where gradients are computed into the buckets. On links
// of long latency take Abreast: then the last bucket, which is small and late, does not wait
// for the one before it to arrive.
//
// What overlapping can hide is bounded by the model: a gradient travels when backward
// has come to it. In a network most of whose parameters' gradients are final after 40 %
// of a step's computing, a step is 0.4 × computing + communication, or computing and the last
// bucket's latency, whichever is more: up to 1.4 times the longer of the two.
//
// Where that matters, have the next forward pass go on meanwhile, and wait for a layer's
// gradients when it comes to that layer. DDPConfig.Update is what to do with a parameter then,
// and [DDP.Need] what the model calls:
//
//	ddp, err := trainer.NewDDP(ctx, g, model.Params(), trainer.DDPConfig{
//		Abreast: true,
//		Update:  func(i int) error { return optimizers[i].Step() }, // each of one parameter
//	})
//	model.BeforeUse(ddp.Need)
//	for … {
//		loss, err := model.ForwardBackward(ctx, batch, ddp.Ready) // no Wait, no Step
//	}
//	err = ddp.Wait() // before the model is looked at: at the end, to evaluate, to save
//
// Results keep the bits that the buckets give them, and a step is within a tenth of the longer of
// computing and communication at any ratio, but for the latency of the first layer's gradient,
// which is the last to be ready and the first to be needed (examples/wan has the tables). So that
// only latency is left of it, the end of a large last bucket then is a bucket of its own:
// DDPConfig.LastBucket. What needs all gradients at once, as clipping does, cannot be had; nor an
// [Elastic], whose steps are all or nothing: when a world ends in one, some parameters have
// been updated.
//
// # Ranks on one machine
//
// More ranks than processors do the same arithmetic and more of everything else. On two
// processors of a machine with nothing else to do peer launch trained the ConvNet for an epoch at
// 3190 samples a second with one rank, 6010 with two, 5830 with four and 5110 with eight: 97 and
// 85 % of two (medians of seven epochs, taken in turn, global batch 128, 1 December 2026). The
// machine is a shared one: in its slower hours eight came to as much as two, in some to 80 %.
//
// Most of what is lost is not the exchange. Two processes that train by themselves, with batches
// of 64, came to 6470 a second together, and eight with batches of 16 to 5840, 90 %, each with one
// thread that runs Go, as launch has it: each sets all gradients and updates all parameters, for
// which Adadelta takes 3 % of all processor time. Copies and sums of what is exchanged are 5 %,
// and as much are yields, half of them while nobody has anything to do. To sleep on a futex
// instead took 2 to 7 % longer; one bucket for two, another algorithm, longer time slices, ranks
// bound to a processor each and batch scheduling were within chance. With transparent huge pages
// eight trained 3 % faster (32 pairs of runs, ± 2). Take no more ranks than processors.
//
// # Fewer bytes
//
// A [Hook] averages a bucket in its own way, most commonly in fewer bytes:
// [Float16] and [BFloat16] send half of them, package peermesh/trainer/compress has those
// that send a quarter to a thirtieth. It is given to NewDDP, and whatever
// it does, it must leave the same bits on all ranks. Gradients that are too small
// for a short type survive with a [Scaler], which scales the loss and skips a step
// whose gradients are not finite, on all ranks alike:
//
//	ddp, err := trainer.NewDDP(ctx, g, params, trainer.DDPConfig{Hook: trainer.Float16})
//	...                                       // backward of loss × scaler.Scale()
//	err = ddp.Wait()
//	stepped, err := scaler.Step(optimizer, params, nil)
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
// On amd64 with AVX2 eight float32 are moved at a time, to the bits that they have elsewhere.
// A step of 300,426 in eight tensors takes, on one core of a 2024 server (BenchmarkStep), beside
// PyTorch 1.13 with one thread, the faster of its two ways (testdata/torch/bench.py), in ms:
//
//	                       here  PyTorch
//	SGD                    0.03     0.10
//	SGD with momentum      0.05     0.17
//	Adagrad                0.09     0.28
//	AdamW                  0.13     0.44
//	Adam with AMSGrad      0.14     0.53
//	RMSprop, centered      0.12     0.47
//	Adadelta               0.15     0.52
//	Lion                   0.07
//	LAMB                   0.36
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
// # Less memory
//
// A [ZeRO] shares an optimiser's memory out over the ranks: each updates its part
// of the parameters and gets the others'. At stage 1 it follows a DDP; at stage 2
// it takes the DDP's place and sends less. FullState and LoadFullState are its
// bridge to checkpoints that know nothing of ranks. Take it where the moments of an
// Adam do not fit; where they do, a DDP says less and waits less. With a Hook, such as
// those of package compress, gradients are compressed at either stage, and parameters
// travel as they are.
//
//	zero, err := trainer.NewZeRO(ctx, g, model.Params(), trainer.ZeROConfig{},
//		func(share []*trainer.Param) (trainer.Optimizer, error) {
//			return trainer.NewAdamW(share, trainer.AdamWConfig{LR: 3e-4})
//		})
//	loss, err := model.ForwardBackward(ctx, batch, zero.Ready)
//	err = zero.Wait()
//	err = zero.Step()
//
// # The state of a run
//
// All that the next step depends on is in Params and in the State of optimiser
// and schedule, tensors with names, and in how far the run has come. A [State] has
// all that as one value, which shares the tensors:
//
//	state := &trainer.State{
//		Tensors: slices.Concat(model.Params(), optimizer.State(), schedule.State()),
//		Buffers: model.Buffers(),
//		Random:  rand.NewPCG(seed, 0),
//	}
//
// To go on from one, build everything as it was built at first and then load it:
// the run goes on to the last bit as if it had not stopped. [Checkpoints] keep a
// State on disk, [Carry] gives it to ranks that lack it, and [LoadState] copies
// tensors by name from wherever else they come.
//
// # Worlds that change
//
// On machines that nobody controls ranks die, and new ones come. A world never
// changes; it ends, and another follows. An [Elastic] is the training loop over
// worlds: it takes one after the other from a [Worlds], which is an interface of
// one method that a mesh has with few lines of glue.
//
//	run := &trainer.Elastic{
//		State:   state,
//		Sampler: sampler, // an ElasticSampler
//		Epochs:  10,
//		Begin: func(ctx context.Context, g *ops.Group) (err error) {
//			ddp, err = trainer.NewDDP(ctx, g, model.Params(), trainer.DDPConfig{Synced: true})
//			return err
//		},
//		Compute: func(ctx context.Context, s trainer.Share) error {
//			ddp.Weigh(s.Weight()) // and so on, as above, to ddp.Wait
//		},
//		Update: optimizer.Step,
//	}
//	err := run.Run(ctx, worlds)
//
// What it promises, it promises whatever dies at whatever moment:
//
//   - A step is all or nothing. Update runs only when all gradients are here; a
//     step that failed before has not been, and its samples are dealt again. It is
//     dropped on all ranks alike rather than redone from the gradients that are left:
//     those of the rank that has gone cannot be had, and the next world shares out the
//     same batch in another way.
//   - All ranks of a world are bit-identical between steps. A rank that is new, or
//     that missed the end of the step in which the last world ended, gets the state
//     from those that have it, before anything else.
//   - Every sample counts once an epoch. What is left of an epoch when the world
//     changes is dealt to the ranks of the next.
//   - Nobody waits for a rank that has died, and no rank's error is kept from the
//     others. It ends their world, not their run.
//
// What survives is what at least one survivor had: a step that only the dead had
// finished is taken once more. A mesh goes on with none but peers that have started
// again, or have just been let in, only if nobody else of the last world is left, nor of
// the one before if no step was taken since: it hears by World.Carried who has the state,
// and by World.Advanced of the step. The state is in the processes' memory and dies with the
// last of them; who must not lose more than N steps when all die saves checkpoints.
//
// A random number that is drawn alike on all ranks comes from State.Random. What
// is random on each rank differently, as dropout, must be a function of a seed, the
// step and the rank, as with nn's SetStep, for the next world has other ranks.
//
// # Checkpoints
//
// [Checkpoints] keep the last few states in a directory, or in one of each rank's
// own. Every rank writes a part, all of them call Save and Load, and any number of
// ranks can go on from what any number has saved. A checkpoint is there as a whole
// or not at all; a bit that has changed is found, and made good from another rank's
// copy, or by the checkpoint before. In an Elastic they go here:
//
//	Begin: func(ctx context.Context, g *ops.Group) error {
//		if state.Step == 0 { // nobody has come further
//			err := checkpoints.Load(ctx, g, state)
//			if err != nil && !errors.Is(err, trainer.ErrNoCheckpoint) {
//				return err
//			}
//		}
//		...
//	AfterStep: func(ctx context.Context, g *ops.Group) error {
//		if state.Step%1000 != 0 {
//			return nil
//		}
//		return checkpoints.Save(ctx, g, state)
//	},
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
// took no part in the loss is an error of Wait that names it. Ranks whose states
// differ where they may not get a *[DivergedError], from Carry and from Save; what
// one rank cannot write or read of a checkpoint, all get as a *[CheckpointError].
//
// All other errors come from the group, and errors.As finds what they are: an
// *ops.MismatchError where the ranks have lost step, the end of the world where
// one has died. After an error of Wait or AverageGradients the gradients are
// unspecified and the parameters still those of the step before: do not Step.
package trainer
