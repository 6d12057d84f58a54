package perfetto_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"peermesh/ops/flight/perfetto"
)

// Two ranks of which the second comes late.
func Example() {
	_ = perfetto.Write(os.Stdout, []perfetto.Event{
		perfetto.Process(0, "rank 0"),
		perfetto.Track(0, 1, "collectives"),
		perfetto.Slice(0, 1, "barrier #0", 1500*time.Nanosecond, time.Millisecond).With("note", "late"),
		perfetto.Mark(1, 1, "killed", time.Second),
	})
	// Output:
	// {"displayTimeUnit":"ms","traceEvents":[{"name":"process_name","ph":"M","ts":0,"dur":0,"pid":0,"tid":0,"args":{"name":"rank 0"}},{"name":"thread_name","ph":"M","ts":0,"dur":0,"pid":0,"tid":1,"args":{"name":"collectives"}},{"name":"barrier #0","ph":"X","ts":1.5,"dur":1000,"pid":0,"tid":1,"args":{"note":"late"}},{"name":"killed","ph":"i","ts":1000000,"dur":0,"pid":1,"tid":1,"s":"t"}]}
}

// TestWith leaves the event that it was called on alone.
func TestWith(t *testing.T) {
	one := perfetto.Slice(0, 0, "a", 0, 0).With("x", 1)
	two := one.With("y", 2)
	if len(one.Args) != 1 || len(two.Args) != 2 {
		t.Errorf("%v, %v", one.Args, two.Args)
	}
	var b bytes.Buffer
	if err := perfetto.Write(&b, []perfetto.Event{two}); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("%s, %v", &b, err)
	}
}
