package mesh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/mesh"
)

// within runs f in a bubble with a lab.
func within(t *testing.T, n int, c mesh.Config, f func(t *testing.T, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 1, n, c)
		defer l.close()
		l.startAll()
		l.await(30*time.Second, l.all()...)
		f(t, l)
	})
}

// A world goes on without the dead, and grows back when they start again: the
// bootstrap peer, rank 0, and several at once.
func TestSurvive(t *testing.T) {
	for _, dead := range [][]int{{0}, {1}, {3}, {0, 1}, {0, 3}} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			within(t, 5, mesh.Config{Min: 2}, func(t *testing.T, l *lab) {
				var rest []int
				for i := range l.sites {
					rest = append(rest, i)
				}
				for _, i := range dead {
					l.sites[i].kill()
					for j, r := range rest {
						if r == i {
							rest = append(rest[:j:j], rest[j+1:]...)
							break
						}
					}
				}
				l.await(5*time.Second, rest...)
				for _, i := range dead {
					l.sites[i].start()
				}
				l.await(20*time.Second, l.all()...)
			})
		})
	}
}

// Of a mesh that is cut in two the larger part goes on, and of two halves the one
// with rank 0; the other waits, and says for what. After the cut has healed there
// is one world again.
func TestPartition(t *testing.T) {
	for _, n := range []int{4, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			within(t, n, mesh.Config{Min: 2}, func(t *testing.T, l *lab) {
				l.net.Split(l.all()[:2], l.all()[2:])
				large, small := l.all()[2:], l.all()[:2]
				if n == 4 && (l.sites[0].in.Rank() == 0 || l.sites[1].in.Rank() == 0) {
					large, small = small, large
				}
				l.await(20*time.Second, large...)
				for _, i := range small {
					if l.sites[i].in != nil {
						t.Errorf("peer %d is in a world", i)
					}
					t.Log(l.sites[i].reason())
				}
				l.net.Join(l.all()[:2], l.all()[2:])
				l.await(30*time.Second, l.all()...)
			})
		})
	}
}

// A peer that is stopped is found out, and comes back when it goes on.
func TestFreeze(t *testing.T) {
	within(t, 4, mesh.Config{Min: 2}, func(t *testing.T, l *lab) {
		for i := range l.sites {
			begin := time.Now()
			l.net.Freeze(i)
			rest := l.all()
			rest = append(rest[:i:i], rest[i+1:]...)
			l.await(8*time.Second, rest...)
			t.Logf("peer %d stopped: the others in a new world after %s", i, time.Since(begin))
			l.net.Thaw(i)
			l.await(60*time.Second, l.all()...)
		}
	})
}

// A peer that has been let into a world, and has not yet been given what the others have
// done, is nobody to go on with: one of the others dies at that moment and comes back with
// nothing, the other is cut off. The two who are left wait for it.
func TestCarried(t *testing.T) {
	within(t, 3, mesh.Config{Min: 2}, func(t *testing.T, l *lab) {
		set := func(volatile, mute bool) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.volatile, l.mute = volatile, mute
		}
		set(true, false)
		l.sites[2].kill()
		l.await(5*time.Second, 0, 1)
		set(true, true)
		l.sites[2].start()
		within := func(hosts ...int) bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			for i, s := range l.sites {
				if (s.in != nil && s.in.Context().Err() == nil && s.in.Size() == len(hosts)) != slices.Contains(hosts, i) {
					return false
				}
			}
			return true
		}
		for begin := time.Now(); !within(l.all()...); time.Sleep(10 * time.Millisecond) {
			if time.Since(begin) > 20*time.Second {
				t.Fatal("it is not let in")
			}
		}
		set(true, false)
		l.net.Split([]int{1}, []int{0, 2})
		l.sites[0].kill()
		l.sites[0].start()
		time.Sleep(20 * time.Second)
		if !within() {
			t.Error("they go on without what was done")
		}
		if why := l.sites[0].reason() + l.sites[2].reason(); !strings.Contains(why, "had just been let in") {
			t.Error(why)
		}
		l.net.Join([]int{1}, []int{0, 2})
		l.await(20*time.Second, l.all()...)
	})
}

// A peer that comes and goes is let in later each time, so that it does not stop the
// others each time; in the end all are in one world.
func TestFlapping(t *testing.T) {
	within(t, 4, mesh.Config{Min: 2}, func(t *testing.T, l *lab) {
		var waits []time.Duration
		for range 6 {
			l.sites[3].kill()
			l.await(5*time.Second, 0, 1, 2)
			begin := time.Now()
			l.sites[3].start()
			l.await(time.Minute, l.all()...)
			waits = append(waits, time.Since(begin))
		}
		if first, last := waits[0], waits[len(waits)-1]; last < 8*time.Second || last < 4*first {
			t.Errorf("it is let in after %v", waits)
		}
		t.Log(waits)
	})
}
