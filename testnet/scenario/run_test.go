package scenario_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	golog "github.com/ipfs/go-log/v2"
	"go.uber.org/goleak"

	"peermesh/testnet/scenario"
	"peermesh/testnet/simlink"
)

func TestMain(m *testing.M) {
	simlink.RememberSignatures()
	golog.SetLogLevel("swarm2", "fatal") // it calls a killed host's listener an error
	goleak.VerifyTestMain(m)
}

func run(t *testing.T, text string) *scenario.Report {
	t.Helper()
	s, err := scenario.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestQuiet(t *testing.T) {
	r := run(t, "nodes 3\nlink * * latency=10ms\nrounds 5\nbytes 30\npause 1s")
	if r.Finished() != 5 || len(r.Rounds) != 5 || r.Took < 5*time.Second || r.Took > 6*time.Second {
		t.Errorf("%v", r)
	}
	for _, d := range r.Rounds {
		if d.Ranks != 3 || d.Failed != 0 || d.Epoch != 1 || d.To-d.From < 10*time.Millisecond || d.To-d.From > 100*time.Millisecond {
			t.Errorf("%+v", d)
		}
	}
	if len(r.Links) != 6 {
		t.Errorf("links %v", r.Links)
	}
}

// A node dies, the world goes on without it, and takes it back.
func TestKillAndRestart(t *testing.T) {
	r := run(t, "nodes 4\nlink * * latency=10ms\nmin 3\nrounds 20\nbytes 1kB\npause 1s\nround 5 kill 2\nat 8s restart 2")
	if r.Finished() != 20 {
		t.Errorf("%v", r)
	}
	var said []string
	for _, e := range r.Events {
		if e.Node == 2 {
			said = append(said, e.What)
		}
	}
	if !slices.Contains(said, "kill 2") || !slices.Contains(said, "is dead") || !slices.Contains(said, "restart 2") {
		t.Errorf("node 2: %q", said)
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The same text gives the same report, byte for byte: all of what happened to whom
// and when, and of what went over each link.
func TestSameAgain(t *testing.T) {
	if simlink.Raced {
		t.Skip("the race detector shuffles goroutines")
	}
	text := file(t, "rough.txt")
	first := run(t, text)
	if first.Finished() != 12 || !strings.Contains(first.String(), "! node 0 cut 0 3") {
		t.Errorf("got\n%v", first)
	}
	runs := 1
	if os.Getenv("PEERMESH_AGAIN") != "" {
		runs = 50
	}
	for range runs {
		again := strings.Split(run(t, text).String(), "\n")
		for i, line := range strings.Split(first.String(), "\n") {
			if i >= len(again) || again[i] != line {
				t.Fatalf("line %d was\n%s\nand is\n%s", i+1, line, again[min(i, len(again)-1)])
			}
		}
	}
}

// A world lives through a bad day that is not bad enough to end it.
func TestRough(t *testing.T) {
	r := run(t, file(t, "rough.txt"))
	if r.Finished() != 12 || !strings.Contains(r.String(), "! node 0 cut 0 3") {
		t.Errorf("got\n%v", r)
	}
}

// Of two parts of a world the one with more than half of it goes on, and no other.
func TestPartition(t *testing.T) {
	r := run(t, file(t, "partition.txt"))
	if r.Finished() != 12 {
		t.Errorf("got\n%v", r)
	}
	for _, e := range r.Events {
		if e.Node > 2 && e.What == "is done" {
			t.Errorf("node %d of the lesser part is done", e.Node)
		}
	}
}

func TestTrace(t *testing.T) {
	var b bytes.Buffer
	if err := run(t, "nodes 2\nrounds 2\nbytes 8\nround 2 slow 1 up=1MB down=1MB").WriteTrace(&b); err != nil {
		t.Fatal(err)
	}
	var got struct{ TraceEvents []struct{ Name, Ph string } }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for _, e := range got.TraceEvents {
		count[e.Ph]++
	}
	if count["M"] != 2 || count["X"] != 4 || count["i"] < 3 {
		t.Errorf("%v in %s", count, b.Bytes())
	}
}

func TestStop(t *testing.T) {
	s, err := scenario.Parse("nodes 2\nrounds 10\nbytes 8")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := scenario.Run(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func ExampleRun() {
	s, err := scenario.Parse(`
		nodes 3
		link * * latency=20ms
		rounds 2
		bytes 1kB
	`)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := scenario.Run(context.Background(), s)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Finished(), "rounds", r.Took > 40*time.Millisecond)
	// Output: 2 rounds true
}
