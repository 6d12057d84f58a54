// Package watch shows a run while it goes on: to people, as a page that is live, and to
// Prometheus.
//
//	recorder := flight.New(0)
//	board := watch.New(watch.Config{Title: "convnet", Wanted: 4, Recorder: recorder})
//	page, err := watch.Listen(board, watch.Options{Addr: ":8080"}) // on loopback
//	...
//	group := ops.NewGroup(world, ops.Config{Observer: recorder})
//	board.Enter(watch.Place{World: world, Peer: …, Relayed: …})
//	board.Step(epoch, step, samples, loss)
//
// A [Board] is what one rank knows. The operations in flight and the counts of those that
// have ended it reads from the flight recorder, which notes each once for all that want to
// know of it. The other ranks are asked how they do while somebody looks, by signals past all lanes, and
// answer with a report (report.go has it byte by byte). Nobody sends anything while
// nobody looks, so every rank of a run may have a Board and any may have the page.
//
// Who is slow: a rank that works much longer than the median one between its operations
// (state.go, laggard). What a rank waits for in an operation is another's time, not its
// own, so the one that waits least is the one that the others wait for. Computing that
// overlaps with an operation counts as waiting, on all ranks alike.
//
// # The page
//
// The folder page is the whole of it, by hand and without a build: an HTML file, a style
// sheet for light and dark, and five modules. It is embedded, so one binary has it, and
// works without a network. A [State] comes twice a second as a server-sent event; what
// has not changed is not drawn. Ranks are on a circle, one stop for the keyboard and
// arrows from there; the rank that is chosen has its links in a table. A test looks at
// the page in Chromium: names, keys, contrast, labels that overlap, and the console.
//
//	GET /              the page
//	GET /events        States, as they come
//	GET /state         the State now
//	GET /metrics       for Prometheus; examples/deploy/grafana says which there are
//	GET /healthz       ok
//	GET /debug/pprof/  with Options.Pprof
//
// There is no password, so an address without a host is loopback, and there a request
// must name the peer by address or as localhost: a name of another site's that leads here
// is refused.
//
// # What it costs
//
// An operation pays for the flight recorder, which a run has in any case, and no more. A
// page of 64 ranks takes 0.8 % of a processor, with the ranks' answers and whoever reads it,
// and a scrape of /metrics each second as much again. Memory is kept from one state to the
// next, which took the most (scribe.go).
// TestCostOfWatching and TestCostOfPage measure it.
package watch
