package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// ring is what README.md shows.
const ring = `all-reduce(ring): 3 ranks, 3 chunks
  0   0→1 [2]+  1→2 [0]+  2→0 [1]+
  1   0→1 [1]+  1→2 [2]+  2→0 [0]+
  2   1→0 [1]  2→1 [2]  0→2 [0]
  3   1→0 [2]  2→1 [0]  0→2 [1]
`

// TestScheduleRing compares the whole of what is printed but for the other
// candidates, whose figures are those of ops.
func TestScheduleRing(t *testing.T) {
	status, stdout, stderr := in("schedule", "all-reduce", "--ranks", "3", "--algorithm", "ring")
	var price time.Duration
	for _, c := range ops.Candidates(ops.KindAllReduce, 3, 0, 1<<20, ops.DefaultLinks) {
		if c.Schedule.Algorithm() == "ring" {
			price = c.Price.Round(time.Microsecond)
		}
	}
	head := ring + fmt.Sprintf(`
proved: every rank ends with the sum, each rank's part in it once, added up in one order
priced: %v over links of 100µs and 500MB/s

all-reduce of 1MiB among 3 ranks:
   algorithm       rounds  chunks           bytes          price
`, price)
	if status != 0 || stderr != "" || !strings.HasPrefix(stdout, head) {
		t.Errorf("status %d, stderr %q, stdout:\n%s\nwant it to begin with\n%s", status, stderr, stdout, head)
	}
	if want := fmt.Sprintf("  ring                 4       3         1398101 %14v\n", price); !strings.Contains(stdout, want) {
		t.Errorf("the table lacks%sbut is\n%s", want, stdout)
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if shown := "$ peer schedule all-reduce --ranks 3 --algorithm ring\n" + ring; !strings.Contains(string(readme), shown) {
		t.Errorf("README.md lacks\n%s", shown)
	}
}

// TestScheduleProves has every schedule of every collective printed, and so
// proved, and held to its canonical order where it claims one.
func TestScheduleProves(t *testing.T) {
	for kind, c := range collectives {
		for n := 1; n <= 9; n++ {
			root := 0
			if c.rooted() {
				root = n / 2
			}
			all := ops.Candidates(c.kind, n, root, 1<<20, ops.DefaultLinks)
			if len(all) == 0 {
				t.Errorf("no %s among %d", kind, n)
			}
			for _, a := range all {
				said, err := c.prove(a, root)
				if err != nil {
					t.Errorf("%s among %d: %v", kind, n, err)
				}
				if strings.Contains(said, "canonical") != (c.sums && a.Canonical) || strings.Contains(said, "ROOT") {
					t.Errorf("%s by %s among %d is proved: %s", kind, a.Schedule.Name, n, said)
				}
			}
		}
	}
}

// TestScheduleDisproves shows that the line is earned.
func TestScheduleDisproves(t *testing.T) {
	broken := ops.Candidate{Schedule: schedule.Ring(3)} // half of an all-reduce
	if said, err := collectives["all-reduce"].prove(broken, 0); err == nil {
		t.Errorf("a ring's first half is proved: %s", said)
	}
	loose := ops.Candidate{Schedule: schedule.AllReduce(schedule.Ring(3)), Canonical: true}
	if said, err := collectives["all-reduce"].prove(loose, 0); err == nil {
		t.Errorf("a ring is proved to be canonical: %s", said)
	}
}

// TestScheduleKinds gives the command every collective that ops can choose for.
func TestScheduleKinds(t *testing.T) {
	known := make(map[ops.Kind]string)
	for name, c := range collectives {
		known[c.kind] = name
		args := []string{"schedule", name, "--ranks", "5", "--bytes", "10kB"}
		if c.rooted() {
			args = append(args, "--root", "3")
		}
		status, stdout, stderr := in(args...)
		if status != 0 || !strings.Contains(stdout, "\nproved: ") || strings.Count(stdout, "\n*") != 1 {
			t.Errorf("%s: status %d, stderr %q, stdout:\n%s", name, status, stderr, stdout)
		}
		if want := strings.ReplaceAll(c.kind.String(), "_", "-"); name != want {
			t.Errorf("%s is known to ops as %s", name, want)
		}
	}
	// Blocks that differ, and those that are coded, go by the same schedules.
	same := []ops.Kind{ops.KindGatherList, ops.KindScatterList, ops.KindAllToAllV, ops.KindAllReduceCoded}
	for k := range ops.Kind(255) {
		if len(ops.Candidates(k, 4, 0, 1, ops.DefaultLinks)) > 0 && known[k] == "" && !slices.Contains(same, k) {
			t.Errorf("%v has schedules and no name here", k)
		}
	}
}

// TestScheduleLarge prints a summary, and all when asked to.
func TestScheduleLarge(t *testing.T) {
	_, stdout, _ := in("schedule", "reduce", "--ranks", "600", "--bytes", "8")
	if want := "binomial: 600 ranks, 1 chunks, 10 rounds, 599 moves; --algorithm binomial prints them\n\nproved: "; !strings.HasPrefix(stdout, want) {
		t.Errorf("stdout begins with %.200q, want %q", stdout, want)
	}
	_, stdout, _ = in("schedule", "all-reduce", "--ranks", "128", "--algorithm", "halving")
	if want := "all-reduce(halving): 128 ranks, 128 chunks\n  0   0→64 [64:128]+"; !strings.HasPrefix(stdout, want) {
		t.Errorf("stdout begins with %.200q, want %q", stdout, want)
	}
}

// TestBusiest holds the bytes to the theory, 2(n−1)/n of the vector for a ring.
func TestBusiest(t *testing.T) {
	for n := 1; n < 20; n++ {
		bytes := int64(n) << 20
		if got, want := busiest(schedule.AllReduce(schedule.Ring(n)), bytes), 2*int64(n-1)<<20; got != want {
			t.Errorf("a ring of %d: the busiest sends %d bytes, want %d", n, got, want)
		}
	}
}

func TestScheduleSVG(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ring.svg")
	for range 2 { // the second replaces the first
		status, stdout, stderr := in("schedule", "all-reduce", "--ranks", "3", "--algorithm", "ring", "--svg", file)
		if status != 0 || !strings.HasPrefix(stdout, ring) {
			t.Fatalf("status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
		}
	}
	var want strings.Builder
	if err := schedule.WriteSVG(&want, schedule.AllReduce(schedule.Ring(3))); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want.String() {
		t.Errorf("%v, the file has %d bytes, want %d", err, len(got), want.Len())
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("%v, files: %v", err, left)
	}
}

// TestScheduleSVGFails leaves nothing behind, and what is there as it was.
func TestScheduleSVGFails(t *testing.T) {
	dir := t.TempDir()
	old, link := filepath.Join(dir, "old.svg"), filepath.Join(dir, "link.svg")
	write(t, old, []byte("old"))
	if err := os.Symlink(old, link); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "none", "a.svg"): "no such file",
		dir:                                 "no regular file",
		link:                                "no regular file",
		old:                                 "at most 65536",
	} {
		args := []string{"schedule", "all-reduce", "--ranks", "3", "--svg", file}
		if file == old {
			args = []string{"schedule", "all-gather", "--ranks", "300", "--algorithm", "ring", "--svg", file}
		}
		status, stdout, stderr := in(args...)
		if status != statusUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, stdout %.80q, stderr %q, want %q", file, status, stdout, stderr, want)
		}
	}
	if got, err := os.ReadFile(old); err != nil || string(got) != "old" {
		t.Errorf("the file has become %.80q, %v", got, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, files: %v", err, left)
	}
}

// A counter is a world that sees which rounds its group has come to.
type counter struct {
	*memnet.World
	mu   *sync.Mutex
	seen map[uint32]bool
}

func (c counter) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	c.mu.Lock()
	c.seen[binary.LittleEndian.Uint32(tag[28:])] = true // see mesh/SPEC.md
	c.mu.Unlock()
	return c.World.Send(ctx, to, lane, tag, n, parts)
}

// TestScheduleTakenIsTaken compares the marked line with what groups do.
func TestScheduleTakenIsTaken(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		for _, bytes := range []int{8, 64 << 10, 1 << 20, 1<<20 + 8*3*4, 4 << 20} {
			s := scheduleCmd{Kind: "all-reduce", Ranks: n, Bytes: size(bytes), Latency: 100 * time.Microsecond, Rate: 5e8}
			all := s.candidates(int64(bytes))
			want := all[s.taken(all)].Schedule

			seen, most := map[uint32]bool{}, int64(0)
			worlds, mu, ranks := memnet.New(n), new(sync.Mutex), new(sync.WaitGroup)
			for _, w := range worlds {
				g := ops.NewGroup(counter{w, mu, seen}, ops.Config{})
				ranks.Go(func() {
					if err := g.AllReduce(t.Context(), tensor.New(tensor.Float32, bytes/4), tensor.Sum).Wait(); err != nil {
						t.Error(err)
					}
				})
			}
			ranks.Wait()
			for _, w := range worlds {
				most = max(most, w.Sent())
			}
			about := float64(most) / float64(max(busiest(want, int64(bytes)), 1)) // chunks are of whole elements
			if len(seen) != len(want.Rounds) || about < 0.99 || about > 1.01 && bytes > 1000 {
				t.Errorf("%d ranks, %d bytes: %s would take %d rounds and %d bytes, the group took %d and %d",
					n, bytes, want.Name, len(want.Rounds), busiest(want, int64(bytes)), len(seen), most)
			}
		}
	}
}
