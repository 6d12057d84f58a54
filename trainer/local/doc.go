// Package local trains with few bytes: ranks step on their own, and come together now and
// then. A DDP sends all gradients in every step, which an office network bears and the open
// internet does not. What is here sends a model in a hundred steps.
//
//	replica, err := local.New(local.DiLoCo{Every: 100, Codec: compress.Int8(0)}, model.Params())
//	err = replica.Begin(ctx, g)
//	for each batch of this rank {
//		loss, err := model.ForwardBackward(ctx, batch, nil) // gradients stay here
//		err = optimizer.Step()                              // and so does the optimiser
//		err = replica.Step()
//	}
//	err = replica.Finish() // now all ranks have one model
//
// A [Replica] knows parameters only: which model they are of, and which optimiser moves
// them, is all the same to it. Peermesh/trainer/compress has codecs.
//
// # Which one
//
// Bytes are those of one rank and an inner step, for a model of B bytes on n ranks, with
// A = 2(n−1)/n·B for an all-reduce; a codec takes its part of them.
//
//	method                     bytes        take it
//	DDP                        A            where links bear it: nothing converges better
//	PostLocalSGD{W, H}         A, then A/H  for large batches, whose early steps matter most
//	LocalSGD{H}                A/H          with H up to about 10
//	DiLoCo{H}                  A/H          with H of 50 to 500: the first to try on slow links
//	StreamingDiLoCo{H, parts}  A/H          where a whole model at once fills the link too long
//	SMA{H, alpha}              A/H          for small batches on many ranks, as a regulariser
//	PairAveraging{H}           B/H          where latency or one slow link rules; no rank waits for all
//
// All of them let inner optimisers that have moments, such as AdamW, keep their own on
// each rank. Their batches differ, so there is noise that an average takes out again;
// learning rates are those of a single rank.
//
// In what follows, θ is a rank's model after its step t, a the anchor that all have in
// common, and mean is over ranks.
//
// # Local SGD
//
// Every H steps:
//
//	δ = mean(a − θ)    a ← a − δ    θ ← a
//
// which is the mean of the models. With H of 1 and SGD without momentum it is DDP. The
// difference travels and not the model, since a codec's error is then that of a small
// number. McMahan et al., "Communication-Efficient Learning of Deep Networks from
// Decentralized Data", 2017; Stich, "Local SGD Converges Fast and Communicates Little",
// 2019. Torch has it as PeriodicModelAverager.
//
// # Post-local SGD
//
// Local SGD after W steps in which gradients are averaged. Early on gradients are large
// and models part quickly. Lin et al., "Don't Use Large Mini-Batches, Use Local SGD",
// 2020; torch's PostLocalSGDOptimizer. The averaging is the caller's:
//
//	ready := ddp.Ready
//	if !replica.Warm() {
//		ready = nil
//	}
//	loss, err := model.ForwardBackward(ctx, batch, ready)
//	if replica.Warm() {
//		err = ddp.Wait()
//	}
//
// # DiLoCo
//
// Every H steps, with the outer rate η and momentum μ:
//
//	δ = mean(a − θ)    m ← μm + δ    a ← a − η(δ + μm)    θ ← a
//
// So where the ranks have gone on average is one step of SGD with Nesterov's momentum,
// which goes further in directions that round after round agrees on, and averages out
// what does not. Local SGD is η of 1 and μ of 0. Douillard et al., "DiLoCo: Distributed
// Low-Communication Training of Language Models", 2023, have η of 0.7 and μ of 0.9 with
// AdamW inside; where there are only a few rounds, a μ of 0.5 to 0.8 is safer.
//
// With a Delay of τ, δ sets off after step t and counts after step t+τ, while the rank
// goes on:
//
//	θ ← κθ + (1−κ)a
//
// κ is Keep: 0 throws away what has been learnt since t, 1/2 keeps half of it and of what
// tells the ranks apart. The anchor has the same bits everywhere even so.
//
// # Streaming DiLoCo
//
// The same, but for one of P parts of the model at a time, H/P steps apart, each with its
// own δ, m and delay. The bytes are those of DiLoCo and the peak is a P-th. Parts are runs
// of elements of equal size, since layers are not: in the ConvNet of package nn one layer
// has 98 % of the parameters. Douillard et al., "Streaming DiLoCo with overlapping
// communication", 2025 (arXiv 2501.18512), who send four bits an element.
//
// # SMA
//
// Every H steps, usually each:
//
//	a ← mean(θ)    θ ← (1−α)θ + αa
//
// Models stay apart, on a leash, and explore; the result is their centre. Koliousis et
// al., "CROSSBOW", 2019; Mai et al., "KungFu", 2020, whose default α is 0.1. An α of 1 is
// local SGD.
//
// # Pair averaging
//
// Every H steps, each rank and the partner p that it has at step t:
//
//	θ ← (θ + θₚ)/2
//
// A message each way and no collective: one round of latency whatever the number of
// ranks. The mean of all models does not change, and news takes about log n steps to be
// everywhere. Lian et al., "Asynchronous Decentralized Parallel Stochastic Gradient
// Descent", 2018, and KungFu's PairAveragingOptimizer ask a random peer for whatever it
// has at that moment; here pairs are drawn alike on all ranks, so a run can be repeated.
// With a Delay, what a rank has learnt in the meantime is added to the middle.
//
// # Fewer bytes still
//
// A Codec encodes δ on its way: [peermesh/trainer/compress] has eight bits and four. What
// this rank's encodings round off goes into its next δ, as far as that does not have it
// anyway. Momentum and anchor stay floats, and all ranks decode the same bytes.
//
// # What is identical, and when
//
//	after every step   State: the anchor, the momentum, the counter
//	at a round's end   the models too, with LocalSGD, and DiLoCo without Keep
//	after two met      the models of a pair, without Delay
//	after Finish       the models of all ranks, with every method
//
// So call Finish before the model is tested, saved or compared, or Settle where steps are
// to be all or nothing.
//
// # Worlds that change
//
// In a trainer.Elastic, State takes the place of the parameters, inner steps and Exchange
// are a part of Compute, and Commit is the Update:
//
//	State:   &trainer.State{Tensors: replica.State()},
//	Begin:   func(ctx context.Context, g *ops.Group) error { return replica.Begin(ctx, g) },
//	Compute: func(ctx context.Context, s trainer.Share) error {
//		loss, err := model.ForwardBackward(ctx, load(s.Indices), nil)
//		err = optimizer.Step()
//		return replica.Exchange() // or Settle, in the last step
//	},
//	Update:  replica.Commit,
//
// Anchor, momentum and counter are then all or nothing and alike on all ranks, and so are
// checkpoints, which have the anchor under the parameters' names. When the world changes,
// survivors keep what they have learnt since the last round, and their inner optimisers;
// who is new, or has missed the end of a round, begins at the anchor. A round that was
// under way is not missed: the next has all of it. What is lost is what the dead had
// learnt since the last round, and a step that failed may count twice in the model of a
// rank that had taken it. After Run, Rewind is for a rank that others have given the end
// of the run. Two limits: a world that begins in the midst of a PostLocalSGD's
// warm-up is refused, as a new rank's optimiser would differ from the others'; and of
// pairs, where a new rank takes the mean of the others, those that end all at once go on
// from the last Finish.
//
// # Errors
//
// Settings that cannot be are errors of New. Ranks with other settings, models or states
// each get a *[SettingsError] from Begin. Errors of Step are the group's; after one the
// ranks have parted ways: give it to the world's End.
package local
