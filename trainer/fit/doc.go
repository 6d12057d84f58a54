// Package fit has the loop of a training run, so that its user writes a model and ten
// lines: what a Trainer is in Lightning.
//
//	run := &fit.Trainer[Batch]{
//		Model:     model, // a trainer.Model[Batch]
//		Optimizer: func(p []*trainer.Param) (trainer.Optimizer, error) { return trainer.NewAdamW(p, trainer.AdamWConfig{}) },
//		Train:     fit.Samples[Batch]{N: set.Len(), Deal: trainer.ElasticConfig{Shuffle: true, Batch: 32}, Load: set.Load},
//		Valid:     fit.Samples[Batch]{N: test.Len(), Deal: trainer.ElasticConfig{Batch: 256}, Load: test.Load},
//		Evaluate:  func(ctx context.Context, b Batch) (fit.Metrics, error) { … },
//		Epochs:    10,
//		Callbacks: []fit.Callback{&fit.EarlyStopping{}, &fit.ProgressBar{}},
//	}
//	err := run.Fit(ctx, world)
//
// Every rank runs the same lines. A world is what a mesh agrees on, or one of package
// memnet in a test; of one rank, it is ordinary training.
//
// # A step
//
// A step takes Accumulate batches of each rank. Their gradients are averaged by samples,
// over batches and ranks, so a short batch counts for what it has and a rank without any
// for nothing. Then come the callbacks' UpdateStart, Clip, the optimiser, and the Curve
// of the learning rate. The loss of all ranks is summed beside the gradients, at no
// time of its own, and with it travels the wish of any rank to stop.
//
// A model may have SetStep(int64) and SetStream(uint64), as those of package nn do for
// their dropout: they are told the batch's number, alike on all ranks, and the rank.
//
// One with running statistics may have Buffers() []*trainer.Param, as those of package
// nn/layers do: all ranks get rank 0's in every step, and checkpoints have them. With
// Local each rank has its own, and all get the mean where their models become one.
//
// One that computes on a device may have Prefetch(batch) error, as that of package
// peermesh/gpu/convnet does: while a step's gradients travel it is given the batch of the next
// one, to set out with. Without it nothing is asked of the data before its step.
//
// # Ranks that step on their own
//
// With Local a rank has an optimiser of its own and steps from its own gradients; a method
// of package peermesh/trainer/local says when the models come together, and how:
//
//	run.Local = local.DiLoCo{Every: 100, Codec: compress.Int8(0)}
//
// Losses and wishes to stop travel with the models, and train/loss is the mean since they
// last did. Wherever the model is looked at, for a validation, a checkpoint or at the end
// of the run, ranks first come to one, which begins a round; so look seldom, or every so
// many rounds. Gradient norms and clipping are each rank's own. Checkpoints, and who is
// new in a world, have that model and no inner optimiser's memory, which begins afresh.
//
// # Data
//
// [Data] yields the batches of one rank from a place in an epoch on. [Samples] makes
// that of an index, [Loaded] has a loader of package peermesh/trainer/data work ahead,
// and anything else that goes through an epoch in a fixed order is Data by two methods.
// Since a place is all that it is told, a run goes
// on in the middle of an epoch, after a restart or in another world, without a sample
// lost or taken twice.
//
// # Validation
//
// Evaluate returns metrics of a batch, which are averaged by samples over batches and
// ranks: with Samples that do not shuffle, each counts once whatever the world. They
// become "val/…". Validation comes at the ends of epochs or every ValidEvery steps, at
// the end of the run, and for a few batches before its beginning, where mistakes in the
// code are found (Sanity).
//
// # Callbacks and loggers
//
// A [Callback] says on which ranks it is called, every one or rank 0, and has a method
// for each place of the run. Here are [EarlyStopping], [BestCheckpoints], [Timer],
// [LearningRateMonitor], [GradientNorm], [Throughput], [Profiler] and [ProgressBar].
// One with a memory that decides on something is [Stateful]: what it remembers is saved
// with the run.
//
// What one rank alone has decided, such as a Timer whose clock is ahead, stops all ranks
// after the same step; see [Run.Stop]. An error or a panic of one, in the model, in the
// data or in a callback, ends the world on all with that for its cause.
//
// [Logger] is what numbers go to, on rank 0: those of package peermesh/trainer/logger
// write to a console, CSV, JSON lines and TensorBoard.
//
// # Numbers that are not finite
//
// Averaged with a gradient that is not a number on one rank, it is none on any, and after the
// step nor are the parameters. A run goes on with them unless told otherwise, as in Lightning.
// Three look. Clip ends the run before that step, with an error that names the first parameter
// whose gradient it is and the ranks whose loss was not finite; a [GradientNorm] with a Limit
// stops it after the next; an [EarlyStopping] stops it when the metric of a validation is not
// finite. A Scaler skips such steps, which are routine with a short float on the wire.
//
// # When a rank dies
//
// The loop is a [trainer.Elastic]. With [Trainer.Run], the ranks that are left take the
// next world, with newcomers if there are any, and go on with the step that had failed, or
// with the validation, the checkpoint or the end of the run that had. With [Trainer.Fit]
// there is one world, and its end is the run's.
//
// A ZeRO's parts of the optimiser die with their ranks. Such a run lets nobody in, and
// when its world ends it ends, with an error that says so; start it again with Resume.
// Checkpoints know nothing of ranks or ZeRO: any number of ranks, with or without, goes
// on from them.
//
// # Coming from Lightning
//
//	Lightning                           here
//	LightningModule.training_step       trainer.Model.ForwardBackward
//	LightningModule.validation_step     Trainer.Evaluate
//	configure_optimizers                Trainer.Optimizer, Curve, Plateau
//	train_dataloader, val_dataloader    Trainer.Train, Valid
//	Trainer.fit(ckpt_path=…)            Trainer.Fit, with Resume
//	Trainer.validate                    Trainer.Validate
//	max_epochs, max_steps               Epochs, Steps
//	max_time                            Timer
//	strategy="ddp", "deepspeed_stage_2" DDP, ZeRO
//	accumulate_grad_batches             Accumulate
//	gradient_clip_val                   Clip
//	strategy with local SGD, DiLoCo     Local
//	precision="16-mixed"                Scaler, and DDP.Hook for the wire
//	sync_batchnorm                      SyncBatchNorm
//	check_val_every_n_epoch             ValidEpochs
//	val_check_interval                  ValidEvery, in steps
//	num_sanity_val_steps                Sanity
//	fast_dev_run                        FastRun
//	overfit_batches                     Overfit
//	limit_train_batches                 LimitTrain
//	limit_val_batches                   LimitValid
//	log_every_n_steps                   LogEvery
//	self.log                            Run.Log; metrics by Evaluate
//	trainer.callback_metrics            Run.Metrics
//	trainer.should_stop = True          Run.Stop
//	ModelCheckpoint                     BestCheckpoints, Trainer.Checkpoints
//	EarlyStopping                       EarlyStopping
//	LearningRateMonitor                 LearningRateMonitor
//	RichProgressBar                     ProgressBar
//	profiler="simple"                   Profiler
//	DeviceStatsMonitor, ThroughputMonitor Throughput
//	CSVLogger, TensorBoardLogger        logger.CSV, logger.TensorBoard
//	rank_zero_only                      RankZero
//	Callback.state_dict                 Stateful
//
//	on_fit_start, on_fit_end            FitStart, FitEnd
//	on_train_epoch_start, …_end         EpochStart, EpochEnd
//	on_train_batch_start, …_end         StepStart, StepEnd, of Accumulate batches
//	on_before_backward, on_after_…      BackwardStart, BackwardEnd, of a batch
//	on_before_optimizer_step            UpdateStart
//	on_validation_start, …_end          ValidationStart, ValidationEnd
//	on_save_checkpoint, on_load_…       CheckpointSave, CheckpointLoad
//	on_exception                        Exception
//	(none)                              WorldStart
//
// What is not here: several optimisers with manual steps, for which there is the loop
// that package trainer describes; and the forward pass as a method of its own, as a
// Model computes both passes at once.
package fit
