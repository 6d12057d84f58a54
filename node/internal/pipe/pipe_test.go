package pipe

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// closed reports whether a channel is.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A deadline frees those who wait when it passes, can be put off before, and lifted
// after.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Deadline
		start := time.Now()
		if d.Passed() || closed(d.Wait()) {
			t.Error("passed before it was set")
		}
		waits := d.Wait()
		d.Set(start.Add(time.Second))
		d.Set(start.Add(3 * time.Second)) // put off
		<-waits
		if took := time.Since(start); took != 3*time.Second || !d.Passed() || !closed(d.Wait()) {
			t.Errorf("freed after %v; passed %v", took, d.Passed())
		}
		d.Set(time.Time{})
		if d.Passed() || closed(d.Wait()) {
			t.Error("passed after it was lifted")
		}
		waits = d.Wait()
		if d.Set(time.Unix(1, 0)); !d.Passed() || !closed(waits) {
			t.Error("one that is over has not passed at once")
		}
		d.Set(time.Now()) // over as well
		if !d.Passed() || !closed(d.Wait()) {
			t.Error("now is not over")
		}
		d.Set(time.Now().Add(time.Hour))
		if d.Passed() || closed(d.Wait()) {
			t.Error("passed an hour early")
		}
		d.Set(time.Time{}) // stops the timer, or the bubble would wait for it
	})
}

// However a deadline is set beside one that passes, it is what the last call has made it.
func TestDeadlineRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Deadline
		for range 200 {
			at := time.Now().Add(time.Millisecond)
			d.Set(at)
			time.Sleep(time.Until(at)) // the timer and this goroutine are ready at once
			d.Set(time.Now().Add(time.Hour))
			if d.Passed() || closed(d.Wait()) {
				t.Fatal("the old one has passed")
			}
		}
		d.Set(time.Time{})
	})
}

func TestSignal(t *testing.T) {
	s := NewSignal()
	s.Raise()
	s.Raise() // kept once
	<-s
	select {
	case <-s:
		t.Error("kept twice")
	default:
	}
}

// lender is a stream that says so.
type lender struct{ strings.Reader }

func (l *lender) Lend(int, func([]byte) (int, error)) (int, error) { return 0, nil }

func (l *lender) Read(p []byte) (int, error) {
	if len(p) == 0 {
		Asked(p, l)
		return 0, nil
	}
	return l.Reader.Read(p)
}

// wrapped is what libp2p makes of a stream.
type wrapped struct{ io.Reader }

// failing reads nothing at all.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A lender is found below whatever passes reads on, and only where there is one.
func TestFind(t *testing.T) {
	l := new(lender)
	if found := Find(wrapped{wrapped{l}}); found != l {
		t.Errorf("found %v", found)
	}
	for _, r := range []io.Reader{bytes.NewReader(nil), failing{}} {
		if found := Find(r); found != nil {
			t.Errorf("found %v in %T", found, r)
		}
	}
	Asked(nil, l) // by nobody
	Asked(make([]byte, 0, 8), l)
	inquiries.Range(func(any, any) bool {
		t.Error("an inquiry is left")
		return false
	})
}

// Several ask at once, and each finds its own.
func TestFindAtOnce(t *testing.T) {
	done := make(chan bool)
	for range 8 {
		go func() {
			l := new(lender)
			done <- !slices.ContainsFunc(make([]int, 100), func(int) bool { return Find(l) != l })
		}()
	}
	for range 8 {
		if !<-done {
			t.Error("found another's")
		}
	}
}

// What a connection says of its ends is what it was told.
func TestEnds(t *testing.T) {
	e := &Ends{Local: "a", Remote: "b", LocalAddr: multiaddr.StringCast("/memory/1"), RemoteAddr: multiaddr.StringCast("/memory/2"), Kind: "kind"}
	if e.LocalPeer() != peer.ID("a") || e.RemotePeer() != peer.ID("b") || e.RemotePublicKey() != nil || e.Scope() != nil || e.Transport() != nil ||
		!e.LocalMultiaddr().Equal(e.LocalAddr) || !e.RemoteMultiaddr().Equal(e.RemoteAddr) || e.ConnState().Transport != "kind" {
		t.Errorf("%+v", e)
	}
	if !errors.Is(Local(7), &network.StreamError{ErrorCode: 7}) || !errors.Is(Remote(7), &network.StreamError{ErrorCode: 7, Remote: true}) ||
		errors.Is(Local(7), Remote(7)) {
		t.Error("a reset here and one there are the same")
	}
}
