package simlink

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// exactHeap is how large the heap may grow, in bytes, before garbage is collected
// after all while something runs exactly.
const exactHeap = 2 << 30

// exactly is held by the one that runs exactly.
var exactly sync.Mutex

// Exact runs f, which starts a bubble of testing/synctest, in a way that makes what
// goroutines do at one instant the same every time: on one processor, where they run
// in the order in which they became ready, and without the garbage collector, which
// would stop them in between. What is left to chance is what f leaves to it, such as
// the order of a map or of ready cases of a select.
//
// The whole process runs so meanwhile; calls wait for each other, and nothing else
// should run beside them. The race detector shuffles goroutines on purpose: see Raced.
func Exact(f func()) {
	exactly.Lock()
	defer exactly.Unlock()
	runtime.GC() // begin alike
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(exactHeap))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f()
}
