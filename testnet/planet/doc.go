// Package planet prices and plays schedules among more ranks than any machine could
// run, spread over regions that are as far from each other as the real ones.
//
//	m := planet.Earth()                        // eight regions, and how far they are
//	w := m.World(10_000)                       // which rank is where
//	for _, c := range w.Contenders() {
//		fmt.Println(c.Name, c.Price(1<<20))    // of an all_reduce of 1 MiB
//	}
//	planet.WriteTable(os.Stdout, w, planet.Sizes)
//
// # The model
//
// A Map has regions, the round trip between every two, the round trip inside one, and
// the rate of every rank's port each way. Half a round trip is the latency. It is
// Hockney's model with one port each way, which is schedule.Price's: a message takes its
// latency and its bytes over the rate, and messages of one port follow each other. What
// it leaves out is the loss of packets, what others send at the same time, and the
// processor's time.
//
// Ranks are the order of peer IDs, which are hashes, so a rank may be anywhere: World
// scatters them. Contenders that know the regions renumber the ranks by region.
//
// # Schedules too large to be written down
//
// An all_reduce around a ring of 10,000 has 200 million moves. Where it has to be, a
// schedule here is a Plan, whose rounds come one after the other and are forgotten, and
// for the ring there is a closed form: see Ring. Play carries a Plan out, message by
// message, by a queue of events and without any data. It knows nothing of Price, and
// the two must agree to the nanosecond where no rank hears from several at once; the
// tests hold them to that for every contender.
package planet
