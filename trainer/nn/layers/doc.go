// Package layers is what networks are put together from, on the CPU and in float32:
// layers with forward and hand-written backward, and a [Net] that makes a
// trainer.Model of them.
//
//	net, err := layers.New(layers.Config{Seed: 1, Threads: 2}, layers.Shape{1, 28, 28},
//		layers.Sequential{
//			&layers.Conv2d{Out: 16, Kernel: 3, Padding: 1, NoBias: true},
//			&layers.BatchNorm2d{},
//			&layers.ReLU{},
//			&layers.GlobalAvgPool2d{},
//			&layers.Linear{Out: 10},
//		}, &layers.CrossEntropy{})
//	loss, err := net.ForwardBackward(ctx, batch, ddp.Ready)
//
// Shapes follow from that of a sample: a layer says what it makes, not of what.
//
// # The layers
//
//	Linear                               along the innermost dimension
//	Conv2d                               any square kernel, stride and padding
//	MaxPool2d AvgPool2d GlobalAvgPool2d
//	BatchNorm2d LayerNorm
//	ReLU GELU Dropout
//	Embedding Position SelfAttention     of sequences, {positions, features}
//	Sequential Residual Named Flatten    of layers
//	CrossEntropy MSE                     the losses
//
// Each has the arithmetic, the initial values and the names of PyTorch's layer, which
// its comment names. So what [Net.Params] and [Net.Buffers] have together is that
// module's state_dict, and a model goes from one to the other as a file of package
// safetensors. [NewResNet] and [NewTransformer] are two such models; examples/resnet
// and examples/bytes train them.
//
// A layer of one's own is a type with [Layer]'s three methods, which may use others
// through [Builder.Child].
//
// # Backward
//
// A Net goes through its layers last to first. A parameter's gradient is handed over,
// with ready, as soon as it is final, so that a DDP averages it while the layers
// before it are still at work. Gradients are set, not added to: to accumulate, see
// DDP.NoSync. They are computed to where each Param's Grad is at the moment, so
// DDPConfig.Views spares a copy of all of them; a Param without a Grad is not
// trained.
//
// # Ranks
//
// Of all layers, only a batch norm looks at several samples at once. After
// [Net.Synchronize] it does so over all ranks of a group, and then a step on many
// ranks is that of one process on the whole batch, but for rounding. Otherwise each
// rank normalises for itself, and DDPConfig.Buffers gives all of them rank 0's
// running statistics, as in PyTorch.
//
//	own, err := g.Split(ctx, g.Ranks())
//	net.Synchronize(own)
//	ddp, err := trainer.NewDDP(ctx, g, net.Params(), trainer.DDPConfig{Views: true, Buffers: net.Buffers()})
//
// Where batches differ in length, as at an epoch's end, both are told: ddp.Weigh(w) and
// [Net.Weigh](w); a rank without samples takes part with an empty [Batch]. Package fit does
// all of this, with SyncBatchNorm.
//
// # What is exact
//
// One seed gives the same parameters everywhere, and the same step the same masks. A
// step's result has the same bits on any number of threads: work is cut by the
// batch's size alone, and sums over the pieces are taken in order (part.go). Engines
// (assembly and [Config.Portable]) and architectures differ in rounding. PyTorch's
// outputs and gradients are met to 1e-5, which tests show with files that it wrote.
//
// # How it is fast
//
// All multiplication goes through the kernels of package nn, which have assembly for
// amd64. A convolution of any stride unrolls no image (plane.go). Element-wise layers
// work backward in place, dropout draws its mask again rather than keep it, and
// attention keeps its weights. A step allocates nothing once it has seen its largest
// batch. All activations of a batch stay in memory until its backward: some 1 MB for
// an image of 28×28 in ResNet-8.
//
// For the two reference networks package nn is faster: it fuses layers, which these
// do not. There is no float16, no GPU and no graph: what is between two layers is a
// slice of float32.
package layers
