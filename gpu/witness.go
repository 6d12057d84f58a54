package gpu

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Witness lets peers prove that they are on this host, which names and addresses only
// claim. It answers on a Unix socket, which no other machine reaches, whatever file
// systems they share:
//
//   - this rank tells a peer the socket's Path, over a connection that has proved who
//     the peer is;
//   - the peer calls Prove with the path and the name by which this rank knows it, and
//     returns what it gets, over that connection;
//   - Check says whether it is what the Witness gives for that name, and no other.
//
// Someone who helps from here could pass a proof on to another host: that is a member
// that lies, and no longer a question of where it is.
type Witness struct {
	folder   string
	listener net.Listener
	secret   [32]byte
	serving  sync.WaitGroup
	slots    chan struct{}
}

const (
	proofSize = sha256.Size
	maxName   = 255 // bytes of a name, whose length is a byte
	maxAsking = 16  // connections at once
	retry     = 10 * time.Millisecond
	patience  = 5 * time.Second
)

// NewWitness begins to answer. The caller closes it.
func NewWitness() (*Witness, error) {
	w := &Witness{slots: make(chan struct{}, maxAsking)}
	_, _ = rand.Read(w.secret[:]) // it never fails
	var err error
	if w.folder, err = os.MkdirTemp("", "peermesh-"); err != nil { // for this user alone
		return nil, fmt.Errorf("gpu: %w", err)
	}
	if w.listener, err = net.Listen("unix", w.Path()); err != nil {
		return nil, errors.Join(fmt.Errorf("gpu: %w", err), os.RemoveAll(w.folder))
	}
	w.serving.Go(w.serve)
	return w, nil
}

// Path is where the socket is.
func (w *Witness) Path() string { return filepath.Join(w.folder, "witness") }

// Close ends the answers, and waits for those under way.
func (w *Witness) Close() error {
	err := w.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	w.serving.Wait()
	return errors.Join(err, os.RemoveAll(w.folder))
}

// Check reports whether a proof is what a peer of that name got from this Witness.
func (w *Witness) Check(name string, proof []byte) bool {
	return hmac.Equal(w.proof(name), proof)
}

func (w *Witness) proof(name string) []byte {
	h := hmac.New(sha256.New, w.secret[:])
	h.Write([]byte(name)) // a Hash's Write does not fail
	return h.Sum(nil)
}

func (w *Witness) serve() {
	for {
		c, err := w.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(retry) // too many files are open, say; the peer waits
			continue
		}
		w.slots <- struct{}{}
		w.serving.Go(func() {
			defer func() { <-w.slots }()
			w.answer(c)
		})
	}
}

// answer reads a name and writes its proof. Whoever does not ask in time, or not so,
// has none.
func (w *Witness) answer(c net.Conn) {
	defer c.Close()
	if c.SetDeadline(time.Now().Add(patience)) != nil {
		return
	}
	var n [1]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		return
	}
	name := make([]byte, n[0])
	if _, err := io.ReadFull(c, name); err != nil {
		return
	}
	_, _ = c.Write(w.proof(string(name))) // who does not read it has no proof
}

// Prove gets from the Witness at a path the proof that a peer of that name, at most 255
// bytes, is on its host. A peer elsewhere finds no such socket.
func Prove(ctx context.Context, path, name string) ([]byte, error) {
	if len(name) > maxName {
		return nil, fmt.Errorf("gpu: a name of %d bytes, at most %d", len(name), maxName)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("gpu: %w", err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	proof := make([]byte, proofSize)
	_, err = c.Write(append([]byte{byte(len(name))}, name...))
	if err == nil {
		_, err = io.ReadFull(c, proof)
	}
	if err != nil {
		return nil, fmt.Errorf("gpu: no proof from %s: %w", path, err)
	}
	return proof, nil
}
