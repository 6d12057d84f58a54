// Package flight keeps the last operations of a rank, as the recorder of an aeroplane
// does, and says afterwards what went wrong.
//
// A [Recorder] is an ops.Observer. It holds a ring of the operations that were begun
// last: what was called, in which group, how far it came, and when.
//
//	r := flight.New(0) // the last 2,048
//	g := ops.NewGroup(world, ops.Config{Observer: r})
//	r.Enter(flight.World{Epoch: 1, Rank: world.Rank(), Size: world.Size()})
//	…
//	if err != nil {
//		path, _ := r.WriteFile(dir, flight.Reason{Text: err.Error(), Lost: -1})
//	}
//
// Every rank writes its own file, and shares no clock with the others. [ReadDir] takes the
// files of a folder, and [Diagnose] lays them side by side:
//
//	logs, err := flight.ReadDir(dir)
//	d, err := flight.Diagnose(logs)
//	fmt.Println(d) // rank 2 has not called all_reduce #17 …
//
// # What is found
//
// Ranks number the collectives of a group alike, since all issue the same in the same
// order. So the records of one number are of one operation, and the first number at which
// they are not tells it all. In this order:
//
//	mismatch  ranks called different operations under one number, or the same with
//	          another type, count, reduction or root, or two of them in another order
//	gone      a rank was lost, or has left no record
//	absent    a rank has not called what others wait in
//	late      a rank called what others had given up by then, or is waited for each time
//	message   a receive waits for what was never sent, or a send for its receive
//	stuck     all are in the same operation, and it does not end
//	failed    an operation failed, of itself
//	well      all have done the same
//
// # The file
//
// A record is a file of JSON lines: a [Header], and then a [Record] for each operation,
// the oldest first. It is bounded by the ring: some 500 bytes an operation, 1 MiB by
// default. Times are nanoseconds of the rank's own clock since 1970, and 0 for what has not
// happened. Nothing here compares those of two ranks: who is late shows by how
// long others waited, since who comes last to a collective waits the least.
//
// # What it costs
//
// Three calls an operation, which write two cache lines of a ring under one short lock and
// allocate nothing: 49 to 52 ns together, of 64 in a row the fastest (BenchmarkRecorder), and
// 50 to 59 after 64 KiB of data have gone through the caches (BenchmarkRecorderCold). To that
// comes one look at the clock of 30 to 38 ns that ops takes for any Observer, since what is
// waited for at once has its start for its beginning, which is timed in any case. So a rank
// pays 80 to 100 ns an operation: of an all-reduce of 64 KiB through shared memory, which takes
// two processes 16 to 29 µs, 0.3 to 0.6 %, and of one over TCP, with 118 to 161 µs, less than
// 0.1 %. Seen from outside, chance hides it there: with and without a Recorder those times
// differed by 0.04 and 0.24 µs, and two groups without one by 0.5 and 0.7. Where it shows is
// between two goroutines of one process that take 7.1 µs in memory, and hand the Recorder's
// lines from one processor to the other: 0.25 to 0.28 µs. (PEERMESH_COSTS=1 go test
// -run CostOfWatching -v ./cmd/peer/internal/watch.) Counts for a
// page and for Prometheus are made in the same three calls
// ([Recorder.Counts], [Recorder.InFlight]), so that to watch a run costs it nothing more.
package flight
