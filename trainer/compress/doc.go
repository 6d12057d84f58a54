// Package compress has hooks that average a DDP's gradients in fewer bytes.
//
//	hook := &compress.Coded{Codec: compress.Int8(0)}
//	ddp, err := trainer.NewDDP(ctx, g, params, trainer.DDPConfig{Hook: hook})
//
// Nothing else changes: all ranks end every step with the same bits, only not with
// exactly those of the sum. What a step rounds off or leaves out is not lost but late, as
// every hook here has feedback: each rank adds what it did not get across to its next
// gradients. Over the steps, all that was computed is applied.
//
// # Which one
//
// Compression pays where the link is slower than the processor: bytes saved, over the
// rate, against the time to encode. Over one link of 1 Gbit/s that is so for all below;
// in shared memory for none; examples/wan measures when, for two networks over slow links.
// Of E elements of float32, with n ranks:
//
//	hook                    bytes an element  takes                   for
//	none                    4                 –                       fast links
//	Coded{Float16{}}        2                 a look an element       a first step; scale the loss
//	Coded{BFloat16{}}       2                 a look an element       the same without a scale
//	Coded{Int8(0)}          1.016             two looks an element    most networks: nobody sees a difference
//	Coded{Int4(0)}          0.563             two looks an element    slow links
//	Coded{OneBit(0)}        0.133             two looks an element    very slow links; a lower rate helps
//	PowerSGD of rank r      4r(n+m)/nm        4r products an element  large matrices, many steps
//	TopK of a fraction f    8f, times n/2     four looks an element   few ranks; sparse gradients
//
// An all-reduce sends its bytes twice over, less one part in n each time; TopK's
// all-gather sends every rank's to all, and therefore n−1 times. PowerSGD is about the
// matrices: biases and what is not worth it go uncompressed, and two sums, of which the
// second waits for the first, are two latencies. Encoding is on the way of each message,
// in lanes side by side.
//
// On one core of a server of 2024, with AVX2 and in the cache, Int8 takes 0.15 ns to encode
// a float32 and 0.07 to decode one, Int4 0.36 and 0.21. In plain Go, to the same bytes, that
// is 1.1 and 0.6, and 1.3 and 0.8 (BenchmarkEncode, BenchmarkDecode). Four ranks on two such
// cores, over links in memory, average 2.9 million in 15 ms with Int8 and feedback, and in
// 29 with both in plain Go (BenchmarkHook).
//
// Start with Int8. If the links still decide, take Int4, and watch the loss: that has
// to come down as before. OneBit, TopK and PowerSGD are for where nothing else will do;
// they want a warm-up at a low rate or, as PowerSGD has it, some steps without.
//
// # Codecs
//
// [Int8], [Int4], [OneBit], [Float16] and [BFloat16] are codecs of ops: an AllReduceCoded
// carries them through the rounds of whatever schedule is cheapest, adds in the bucket's
// own type, and encodes each partial sum anew; a small bucket on long links takes one round,
// and has none. Smaller blocks follow the gradients more
// closely, and cost more units. Whatever implements ops.Codec can be a [Coded]'s, and get
// feedback there. Two hooks in one is a [PowerSGD] whose matrices a codec carries (Factors):
// its feedback has what the codec rounds off, too. Those of two bytes and Int8 do no harm;
// with Int4 the loss stays higher, and with OneBit nothing is learned.
//
// Feedback is exact even though partial sums are encoded by ranks that they pass: who
// rounds something off keeps it. Its memory is that of the gradients.
//
// # What is no number
//
// A NaN or an infinity, as a scaled loss may lead to, is propagated, never an error: the
// blocks that have one decode to NaNs on all ranks, a TopK sends it first, a PowerSGD's
// matrix becomes one. So a trainer.Scaler skips the step on all ranks alike. It stays out
// of the feedback, which would never be rid of it.
//
// # State
//
// Two kinds. What all ranks have alike ([Hook.State]: PowerSGD's matrices and count of
// steps) belongs among the Buffers of a trainer.State, since it changes while gradients
// are averaged: a step that fails puts it back, Carry brings it to who is new, and
// checkpoints have it.
//
//	hook, err := compress.NewPowerSGD(model.Params(), compress.PowerSGDConfig{})
//	state.Buffers = append(state.Buffers, hook.State()...)
//
// Package fit sees to that, and to Reset, by itself.
//
// Feedback is each rank's own, and no part of that. When the world changes it is dropped:
// call Reset in Elastic.Begin. That of the ranks that have died is gone in any case, that
// of a step which did not come to its end is of gradients that are computed once more, and
// what is dropped is about what one step leaves out. A rank that is to go on alone with
// its own, after a pause, has MarshalBinary and UnmarshalBinary for a file of its own;
// without it a run that is resumed begins with none.
//
// # Errors
//
// What a hook refuses comes out of the DDP's Wait on its rank, and as the cause of the
// world's end on the others, as with any hook. Ranks with other codecs or blocks each get
// an *ops.MismatchError; those of a TopK or PowerSGD with other settings one about the
// lengths of messages.
package compress
