package flight

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// version is of the file's format; other ones are not read.
const version = 1

const (
	// maxLine bounds a line of a file, in bytes; the header names the peers of a world.
	maxLine = 1 << 20
	// maxSize bounds the size of a world.
	maxSize = 1 << 14
	// maxFiles bounds the files of a folder that are read.
	maxFiles = maxSize
)

// A Reason is why a record is written.
type Reason struct {
	Text string // empty: somebody asked
	Lost int    // the rank that the world was lost with; −1: none
}

// A Header is the first line of a record.
type Header struct {
	Flight int    `json:"flight"` // the format's version, 1
	Time   int64  `json:"time"`   // of writing, ns since 1970
	Reason string `json:"reason,omitempty"`
	Lost   int    `json:"lost"`
	World  World  `json:"world"` // the last one
	// Groups are those that have recorded operations, but for the world's own.
	Groups []Group `json:"groups,omitempty"`
}

// A Group is some ranks of a world, by their ranks in it. A rank has at most one of an ID.
type Group struct {
	Epoch uint64 `json:"epoch"`
	ID    uint32 `json:"id"`
	Ranks []int  `json:"ranks"`
}

// A Log is one rank's record.
type Log struct {
	Header
	Records []Record // the oldest first
}

// Log is the record as it stands.
func (r *Recorder) Log(why Reason) *Log {
	h := Header{Flight: version, Reason: clean(why.Text, maxError), Lost: why.Lost, World: r.now()}
	var records []Record
	records, h.Groups = r.records()
	h.Time = time.Now().UnixNano() // later than all of them
	return &Log{Header: h, Records: records}
}

// Write writes the record as JSON lines.
func (l *Log) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	if err := e.Encode(l.Header); err != nil {
		return fmt.Errorf("flight: %w", err)
	}
	for i := range l.Records {
		if err := e.Encode(&l.Records[i]); err != nil {
			return fmt.Errorf("flight: %w", err)
		}
	}
	return nil
}

// WriteFile writes the record to flight-RANK.jsonl in a folder, which it makes if need be,
// and returns the file's path. The file takes the place of an older one when it is whole.
func (r *Recorder) WriteFile(dir string, why Reason) (path string, err error) {
	l := r.Log(why)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("flight: %w", err)
	}
	path = filepath.Join(dir, fmt.Sprintf("flight-%d.jsonl", l.World.Rank))
	f, err := os.CreateTemp(dir, ".flight-*")
	if err != nil {
		return "", fmt.Errorf("flight: %w", err)
	}
	b := bufio.NewWriter(f)
	err = errors.Join(l.Write(b), b.Flush(), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", fmt.Errorf("flight: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return path, nil
}

// Read reads a record. It may come from anywhere: what is out of bounds is an error, and
// no text in it does anything to a terminal.
func Read(r io.Reader) (*Log, error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	l := new(Log)
	for n := 0; s.Scan(); n++ {
		var err error
		switch {
		case n == 0:
			err = l.head(s.Bytes())
		case n > MaxPlaces:
			err = fmt.Errorf("more than %d operations", MaxPlaces)
		default:
			err = l.add(s.Bytes())
		}
		if err != nil {
			return nil, fmt.Errorf("flight: line %d: %w", n+1, err)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("flight: %w", err)
	}
	if l.Flight == 0 {
		return nil, errors.New("flight: an empty file")
	}
	return l, nil
}

func (l *Log) head(line []byte) error {
	if err := json.Unmarshal(line, &l.Header); err != nil {
		return fmt.Errorf("no flight record: %w", err)
	}
	w := &l.World
	switch {
	case l.Flight != version:
		return fmt.Errorf("a flight record of version %d, want %d", l.Flight, version)
	case w.Size < 0 || w.Size > maxSize || w.Rank < 0 || w.Rank > max(0, w.Size-1):
		return fmt.Errorf("rank %d of %d", w.Rank, w.Size)
	case len(w.Peers) != 0 && len(w.Peers) != w.Size:
		return fmt.Errorf("%d peers of %d", len(w.Peers), w.Size)
	case l.Lost < -1 || l.Lost >= max(1, w.Size):
		return fmt.Errorf("lost rank %d of %d", l.Lost, w.Size)
	}
	for _, g := range l.Groups {
		if slices.ContainsFunc(g.Ranks, func(rank int) bool { return rank < 0 || rank >= maxSize }) {
			return fmt.Errorf("group %08x of ranks %v", g.ID, g.Ranks)
		}
	}
	l.Reason, w.Name = clean(l.Reason, maxError), clean(w.Name, maxText)
	for i := range w.Peers {
		w.Peers[i] = clean(w.Peers[i], maxText)
	}
	return nil
}

func (l *Log) add(line []byte) error {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]State{Scheduled, Started, Done, Failed}, r.State):
		return fmt.Errorf("state %q", clean(string(r.State), maxText))
	case r.Size < 0 || r.Size > maxSize || r.Peer < -1 || r.Peer >= maxSize:
		return fmt.Errorf("a group of %d, peer %d", r.Size, r.Peer)
	}
	for _, s := range []*string{&r.Call, &r.Kind, &r.DType, &r.Op, &r.Algorithm} {
		*s = clean(*s, maxText)
	}
	r.Error = clean(r.Error, maxError)
	l.Records = append(l.Records, r)
	return nil
}

// ReadDir reads the records of a folder: all files named as WriteFile names them.
func ReadDir(dir string) ([]*Log, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("flight: %w", err)
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), "flight-*.jsonl")
	switch {
	case err != nil:
		return nil, fmt.Errorf("flight: %w", err)
	case len(names) == 0:
		return nil, fmt.Errorf("flight: no flight-*.jsonl in %s: want the folder that the ranks wrote their records to, or copies of all in one", dir)
	case len(names) > maxFiles:
		return nil, fmt.Errorf("flight: %d files in %s, want at most %d", len(names), dir, maxFiles)
	}
	var logs []*Log
	for _, name := range names {
		f, err := root.Open(name)
		if err != nil {
			return nil, fmt.Errorf("flight: %w", err)
		}
		l, err := Read(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		logs = append(logs, l)
	}
	return logs, nil
}
