package ops

import (
	"sync"
	"testing"
	"time"

	"peermesh/ops/schedule"
)

// A terrain has links that a test can change one figure of.
type terrain struct {
	near, far time.Duration
	rate      float64
	hosts     int64 // ranks by host in turn; 0: not known
	share     float64
}

func (l terrain) Latency(from, to int) time.Duration {
	if from < 2 && to < 2 {
		return l.near
	}
	return l.far
}

func (l terrain) Rate(from, to int) float64 { return l.rate }

func (l terrain) Host(rank int) int64 {
	if l.hosts == 0 {
		return 0
	}
	return 1 + int64(rank)%l.hosts
}

func (l terrain) Share(rank int) float64 { return l.share }

var hilly = terrain{near: 10 * time.Microsecond, far: 20 * time.Millisecond, rate: 1e8, share: 1}

// An answer of another rank, or of another world before, is what one's own would be.
func TestSharedChoicesAreOnesOwn(t *testing.T) {
	two := hilly
	two.hosts, two.share = 2, 0.5
	for _, l := range []schedule.Links{DefaultLinks, hilly, two} {
		for _, c := range []Config{{Links: l}, {Links: l, Deterministic: true}, {Links: l, Algorithm: "tree"}} {
			for _, k := range kinds() {
				for _, key := range []planKey{{k, noRoot, 3}, {k, 1, 3}, {k, 1, 22}} {
					for rank := range 3 {
						var p plans
						p.init(6, rank, c)
						all, err := p.rules(k, 1<<key.scale)
						if err != nil {
							t.Fatal(err)
						}
						got := p.cheapest(key, all)
						want := cheapest(all, 6, max(key.root, 0), 1<<key.scale, l, p.near)
						if got.Digest() != want.Digest() || got.Algorithm() != want.Algorithm() {
							t.Errorf("%v of 2^%d bytes on %v: %s, want %s", k, key.scale, l, got.Name, want.Name)
						}
					}
				}
			}
		}
	}
}

// Who asks at once, or later, gets the answer of the first; who asks something else does not.
func TestAnswersAreFoundOnce(t *testing.T) {
	var c choices
	var found int // by one at a time
	ask := func(q question) schedule.Schedule {
		return c.answer(q, func() schedule.Schedule {
			found++
			return schedule.Ring(2 + q.scale)
		})
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if s := ask(question{size: 2}); s.Ranks != 2 {
				t.Errorf("an answer for %d ranks", s.Ranks)
			}
		})
	}
	wg.Wait()
	if found != 1 {
		t.Errorf("found %d times", found)
	}
	for i := range 3 * sharedMost {
		if s := ask(question{planKey: planKey{scale: i}}); s.Ranks != 2+i {
			t.Errorf("question %d: an answer for %d ranks", i, s.Ranks)
		}
	}
	if len(c.known) > sharedMost {
		t.Errorf("%d answers kept", len(c.known))
	}
	if ask(question{size: 2}); found != 2+3*sharedMost {
		t.Errorf("found %d times: nothing was forgotten", found)
	}
}

// Links of other figures are other links, whichever figure it is.
func TestFiguresTellLinksApart(t *testing.T) {
	if figures(4, hilly) != figures(4, hilly) {
		t.Error("the same links differ")
	}
	seen := map[any]string{figures(4, hilly): "as it was"}
	for name, change := range map[string]func(l *terrain){
		"near":  func(l *terrain) { l.near++ },
		"far":   func(l *terrain) { l.far++ },
		"rate":  func(l *terrain) { l.rate++ },
		"hosts": func(l *terrain) { l.hosts = 2 },
		"share": func(l *terrain) { l.share /= 2 },
	} {
		l := hilly
		change(&l)
		f := figures(4, l)
		if other, ok := seen[f]; ok {
			t.Errorf("%s: the figures are those of %s", name, other)
		}
		seen[f] = name
	}
	bare := struct{ schedule.Links }{hilly} // knows neither hosts nor shares
	if _, ok := seen[figures(4, bare)]; ok {
		t.Error("links without hosts are not told from links with them")
	}
}
