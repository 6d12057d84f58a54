// Package data feeds a training loop: it turns a data set and an order of its
// samples into batches, ahead of the loop and on goroutines of its own.
//
// It is the Go counterpart of torch.utils.data.
//
//	sampler, err := trainer.NewDistributedSampler(set.Len(), g.Size(), g.Rank(), trainer.SamplerConfig{Shuffle: true})
//	loader, err := data.NewLoader(set, data.Config[mnist.Sample, nn.Batch]{
//		Sampler: sampler, Batch: 128, Workers: 2,
//		Collate: func(b *data.Buffer, samples []data.Sample[mnist.Sample]) (nn.Batch, error) { … },
//	})
//	defer loader.Close()
//	for range epochs {
//		for batch, err := range loader.Epoch(ctx) {
//			if err != nil {
//				return err
//			}
//			loss, err := model.ForwardBackward(ctx, batch, ddp.Ready)
//			…
//		}
//	}
//
// # Data sets
//
// A [Dataset] is anything with Len and At. Slices, functions, parts and pairs of
// sets are sets: [Slice], [Func], [Subset], [Zip]; [Split] cuts one at random. Files
// are read by the packages of their formats: trainer/mnist, which has Fashion-MNIST
// too, trainer/data/cifar, trainer/data/npy for NumPy's, trainer/data/table for CSV.
// [Windows] and [WindowsAt] make a set of any text, for models that read bytes.
//
// # Batches
//
// A worker takes the indices of one batch, asks the set for each of its samples,
// and hands all of them to Collate, which makes of them what the model reads. It is
// a function of the caller's, for only the caller knows that; [Rows] is one for
// samples that are slices of one length.
//
// The memory of a batch is a [Buffer]. Collate takes slices of it by [Take], and
// when the loop asks for the next batch, the memory is used for another. So an epoch
// allocates a few batches at its beginning and none after. What a loop keeps for
// longer, it copies. With Config.Memory, buffers come from the caller: memory that is
// pinned for a GPU, most commonly, from which copies to the device are faster and
// need not be waited for. This package does not know what a GPU is; package gpu has such a
// Memory, and finds the pinned memory of a batch again for the copy:
//
//	pins := device.Pins()
//	loader, err := data.NewLoader(set, data.Config[Sample, []float32]{Memory: pins, …})
//	for batch, err := range loader.Epoch(ctx) {
//		bytes, _ := tensor.Of(batch).View(0, int64(4*len(batch)))
//		pinned, err := pins.Pinned(bytes)
//		err = stream.ToDeviceN(memory, 0, pinned, len(bytes))
//		…
//
// # Ahead, but not far
//
// Config.Workers goroutines work at Config.Prefetch batches at most, beside the one
// that the loop has. They begin with [Loader.Epoch]'s loop and have ended when that
// has, by its end, a break, an error or a panic; [Loader.Close], from wherever, ends
// it too. A worker that waits for a disk cannot be interrupted there: what At is
// doing is waited for.
//
// # The same, whatever happens
//
// Batches come in the sampler's order, whichever worker is first. What is random in
// a sample, such as a crop, is drawn from [Sample.Rand], which is a function of
// Config.Seed, the epoch and the sample's index. So batches are the same bits for
// any number of workers, and on a run that goes on: [Loader.State] is the position
// after the batch that the loop has, four numbers, to be kept in a checkpoint in
// any encoding, and [Loader.Restore] goes there, into the middle of an epoch if need
// be, without reading what lies before.
//
// # Errors
//
// An error ends the loop. One of At or of an index beyond the set is a
// *[SampleError], which has the index; after it the loader stands before the batch
// that failed, and the next Epoch tries it again. A panic of At or Collate comes out of the
// loop as a *[WorkerPanic], where it can be recovered from.
package data
