package rendezvous

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// maxPins bounds the file of pins in bytes.
const maxPins = 1 << 20

// A ChangedError says that somebody else answers than the last time.
type ChangedError struct {
	Form    string
	Was, Is peer.ID
	File    string // that says who it was
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("rendezvous: %s was peer %s and is %s now, which may be somebody who wants to be taken for it: "+
		"if the change is meant, remove its line from %s", e.Form, e.Was, e.Is, e.File)
}

// pins are the IDs behind forms, one a line: the form, a space, the ID.
type pins struct {
	path string
	mu   sync.Mutex
	ids  map[string]peer.ID
}

// openPins reads a file of pins, of which none may be there yet.
func openPins(path string) (*pins, error) {
	if path == "" {
		return &pins{ids: make(map[string]peer.ID)}, nil
	}
	data, err := readUpTo(path, maxPins)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %w", err)
	}
	if len(data) > maxPins {
		return nil, fmt.Errorf("rendezvous: the pins in %s: it is longer than %d bytes", path, maxPins)
	}
	ids, err := readPins(data)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: the pins in %s: %w", path, err)
	}
	return &pins{path: path, ids: ids}, nil
}

func readPins(data []byte) (map[string]peer.ID, error) {
	ids := make(map[string]peer.ID)
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		form, text, ok := strings.Cut(line, " ")
		id, err := peer.Decode(text)
		if !ok || err != nil {
			return nil, fmt.Errorf("line %d is not a form, a space and a peer ID", n)
		}
		ids[form] = id
	}
	return ids, nil
}

func (p *pins) get(form string) peer.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[form]
}

// set adds a pin to the file, of which nothing is ever changed.
func (p *pins) set(form string, id peer.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids[form] == id {
		return nil
	}
	p.ids[form] = id
	if p.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return fmt.Errorf("rendezvous: %w", err)
	}
	f, err := os.OpenFile(p.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("rendezvous: who %s is cannot be written down: %w", form, err)
	}
	_, err = fmt.Fprintf(f, "%s %s\n", form, id)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("rendezvous: who %s is cannot be written down: %w", form, err)
	}
	return nil
}
