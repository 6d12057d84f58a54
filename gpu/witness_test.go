package gpu

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func witness(t *testing.T) *Witness {
	t.Helper()
	w, err := NewWitness()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(w.folder); !os.IsNotExist(err) {
			t.Errorf("the folder is left: %v", err)
		}
	})
	return w
}

// TestWitness proves for the name and the Witness that a proof is for, and no other.
func TestWitness(t *testing.T) {
	w, other := witness(t), witness(t)
	var all sync.WaitGroup
	for _, name := range []string{"", "ann", "bob", strings.Repeat("x", 255)} {
		all.Go(func() {
			proof, err := Prove(t.Context(), w.Path(), name)
			if err != nil {
				t.Errorf("%q: %v", name, err)
				return
			}
			if !w.Check(name, proof) || w.Check(name+"?", proof) || other.Check(name, proof) || w.Check(name, proof[:31]) {
				t.Errorf("the proof of %q", name)
			}
		})
	}
	all.Wait()
	if w.Check("ann", nil) {
		t.Error("nothing proves it")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Prove(t.Context(), w.Path(), "ann"); err == nil {
		t.Error("a Witness answers after Close")
	}
}

// TestWitnessHostile asks and goes, asks half, and asks for too much.
func TestWitnessHostile(t *testing.T) {
	w := witness(t)
	for _, question := range []string{"", "\x05", "\x05abc"} {
		c, err := net.Dial("unix", w.Path())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(question)); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Prove(t.Context(), w.Path(), strings.Repeat("x", 256)); err == nil {
		t.Error("a name of 256 bytes")
	}
	if _, err := Prove(t.Context(), w.Path(), "ann"); err != nil {
		t.Errorf("after them: %v", err)
	}
}

// TestProveWaits gives up on a socket that does not answer, or that answers too little.
func TestProveWaits(t *testing.T) {
	path := t.TempDir() + "/silent"
	silent, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Prove(ctx, path, "ann"); err == nil {
		t.Error("a proof without an answer")
	}
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoWitness has no folder for the socket, and one whose name is too long for it.
func TestNoWitness(t *testing.T) {
	long := t.TempDir() + "/" + strings.Repeat("x", 120)
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"/nowhere/at/all", long} {
		t.Setenv("TMPDIR", folder)
		if w, err := NewWitness(); err == nil || !strings.HasPrefix(err.Error(), "gpu: ") {
			t.Errorf("a Witness in %s: %v, %v", folder, w, err)
		}
		if left, _ := os.ReadDir(folder); len(left) > 0 {
			t.Errorf("%s has %v left", folder, left)
		}
	}
}

// A crowded listener has no room for a connection at first.
type crowded struct {
	net.Listener
	once sync.Once
}

func (c *crowded) Accept() (net.Conn, error) {
	var err error
	c.once.Do(func() { err = errors.New("too many open files") })
	if err != nil {
		return nil, err
	}
	return c.Listener.Accept()
}

// TestWitnessRetries answers when there is room again, and does not answer who has gone.
func TestWitnessRetries(t *testing.T) {
	w := &Witness{folder: t.TempDir(), slots: make(chan struct{}, maxAsking)}
	l, err := net.Listen("unix", w.Path())
	if err != nil {
		t.Fatal(err)
	}
	w.listener = &crowded{Listener: l}
	w.serving.Go(w.serve)
	if proof, err := Prove(t.Context(), w.Path(), "ann"); err != nil || !w.Check("ann", proof) {
		t.Errorf("a proof of %d bytes: %v", len(proof), err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	ours, theirs := net.Pipe()
	if err := ours.Close(); err != nil {
		t.Error(err)
	}
	w.answer(ours)
	if n, err := theirs.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes are answered, %v", n, err)
	}
}
