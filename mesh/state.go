package mesh

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	// stateMagic begins a state file, and its version follows.
	stateMagic   = "peermesh"
	stateVersion = 4
	// maxState bounds a state file in bytes.
	maxState = 4 << 20
)

// A state is what a state file holds: whose memory it is, in which mesh, and where
// the members of its last world were.
type state struct {
	ID     peer.ID
	Mesh   string
	Memory *memory
	Known  [][]byte // announcements
}

func (s *state) encode() []byte {
	p := binary.LittleEndian.AppendUint16([]byte(stateMagic), stateVersion)
	p = appendBlock(p, []byte(s.ID))
	p = appendBlock(p, []byte(s.Mesh))
	p = s.Memory.append(p)
	p = appendBlocks(p, s.Known)
	sum := sha256.Sum256(p)
	return append(p, sum[:]...)
}

func decodeState(p []byte) (*state, error) {
	body := len(p) - sha256.Size
	if body < len(stateMagic)+2 || string(p[:len(stateMagic)]) != stateMagic {
		return nil, errors.New("mesh: not a state file")
	}
	if v := binary.LittleEndian.Uint16(p[len(stateMagic):]); v != stateVersion {
		return nil, fmt.Errorf("mesh: state file of version %d, want %d", v, stateVersion)
	}
	if sum := sha256.Sum256(p[:body]); !bytes.Equal(sum[:], p[body:]) {
		return nil, errors.New("mesh: state file is damaged: its checksum is wrong")
	}
	r := bytes.NewReader(p[len(stateMagic)+2 : body])
	id, err := readBlock(r, maxID)
	if err != nil {
		return nil, fmt.Errorf("mesh: state file: %w", err)
	}
	name, err := readBlock(r, MaxName)
	if err != nil {
		return nil, fmt.Errorf("mesh: state file: %w", err)
	}
	s := &state{ID: peer.ID(id), Mesh: string(name)}
	if s.Memory, err = readMemory(r, s.Mesh); err != nil {
		return nil, err
	}
	if s.Known, err = readBlocks(r, MaxWorld, maxAnnouncement); err != nil {
		return nil, fmt.Errorf("mesh: state file: %w", err)
	}
	if r.Len() > 0 {
		return nil, fmt.Errorf("mesh: state file has %d bytes too many", r.Len())
	}
	return s, nil
}

// loadState reads a state file; there is none before the first promise.
func loadState(path string) (*state, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mesh: state: %w", err)
	}
	defer f.Close()
	p, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err != nil {
		return nil, fmt.Errorf("mesh: state: %w", err)
	}
	if len(p) > maxState {
		return nil, fmt.Errorf("mesh: state file %s has more than %d bytes", path, maxState)
	}
	return decodeState(p)
}

// save replaces the file as a whole, and returns when that will outlast a loss of
// power.
func (s *state) save(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("mesh: state: %w", err)
	}
	_, err = f.Write(s.encode())
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("mesh: state: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename last, where the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("mesh: state: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("mesh: state: %w", err)
	}
	return nil
}
