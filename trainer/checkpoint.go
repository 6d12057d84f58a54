package trainer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// DefaultKeep is how many checkpoints stay where Checkpoints.Keep is zero.
const DefaultKeep = 3

// Checkpoints keeps states in a directory, of which the last few stay. Each rank
// writes a part of the state, and any number of ranks can go on from it.
//
// The directory may be one that all ranks share, or one of each rank's own: Load
// gathers what each finds. In the second case nobody has all of a checkpoint, and
// it takes ranks with all of its shards to load it.
//
// A checkpoint is a directory step-S-epoch-E with a shard of each rank and a
// manifest. The manifest is written when all shards are safe on their disks, so
// a checkpoint with one is complete. Every file is written under another name,
// synchronised, and then renamed: there are no halves. Numbers are little-endian.
//
//	manifest                             shard-00001-of-00004
//	  4  "PMCK"                            4  "PMSH"
//	  4  version, 1                        4  version, 1
//	  4  ranks that have written          32  hash of the state
//	  8  length of the head                8  first part
//	     the head, as a State's            8  number of parts
//	  8  number of parts                      the parts' bytes
//	 32  SHA-256 of each part
//	 32  SHA-256 of all above
//
// The body of a state is cut into parts of 1 MiB; of P parts, rank r of n has those
// from ⌊rP/n⌋ up to ⌊(r+1)P/n⌋. The hash of the state is the SHA-256 of its head
// and the parts' hashes.
type Checkpoints struct {
	Dir  string
	Keep int // complete checkpoints that stay; zero: DefaultKeep

	files files // nil: the operating system's
}

// ErrNoCheckpoint says that there is none, as at the first start of a run.
var ErrNoCheckpoint = errors.New("trainer: no checkpoint")

// A CheckpointError says that a rank could not do its part of Save, or that what
// Load found is not a whole checkpoint. Every rank gets it.
type CheckpointError struct {
	Rank   int
	Reason string // that rank's own error
}

func (e *CheckpointError) Error() string {
	return fmt.Sprintf("trainer: checkpoint: on rank %d: %s", e.Rank, e.Reason)
}

// A Checkpoint is one that has its manifest.
type Checkpoint struct {
	Progress
	Ranks int    // that have written it
	Path  string // of its directory

	label label
}

// List is the checkpoints in this rank's directory, the newest first. One whose
// manifest cannot be read is left out, and part of the error.
func (c *Checkpoints) List() ([]Checkpoint, error) {
	fs := c.fs()
	names, err := fs.ReadDir(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("trainer: checkpoints: %w", err)
	}
	var all []Checkpoint
	var problems []error
	for _, name := range names {
		var p Progress
		if !parseName(name, &p) {
			continue
		}
		path := filepath.Join(c.Dir, name)
		m, err := readManifest(fs, filepath.Join(path, manifestName))
		switch {
		case errors.Is(err, errMissing): // it was never complete
		case err != nil:
			problems = append(problems, fmt.Errorf("trainer: checkpoint %s: %w", path, err))
		case m.Step != p.Step || m.Epoch != p.Epoch:
			problems = append(problems, fmt.Errorf("trainer: checkpoint %s: its manifest is of %v", path, m.Progress))
		default:
			all = append(all, Checkpoint{m.Progress, m.ranks, path, m.label})
		}
	}
	slices.SortFunc(all, func(a, b Checkpoint) int { return b.compare(a.Progress) })
	return all, errors.Join(problems...)
}

// Latest is the newest of List, or ErrNoCheckpoint.
func (c *Checkpoints) Latest() (Checkpoint, error) {
	all, err := c.List()
	if len(all) > 0 {
		return all[0], nil
	}
	if err == nil {
		err = ErrNoCheckpoint
	}
	return Checkpoint{}, err
}

const (
	manifestName    = "manifest"
	manifestMagic   = "PMCK"
	shardMagic      = "PMSH"
	manifestVersion = 1

	maxShards   = 1 << 16
	maxManifest = maxHead + MaxStateBytes/partSize*sha256.Size + 1<<10 // bytes
)

func dirName(p Progress) string { return fmt.Sprintf("step-%012d-epoch-%06d", p.Step, p.Epoch) }

func parseName(name string, p *Progress) bool {
	n, err := fmt.Sscanf(name, "step-%d-epoch-%d", &p.Step, &p.Epoch)
	return err == nil && n == 2 && dirName(*p) == name
}

func shardName(rank, ranks int) string { return fmt.Sprintf("shard-%05d-of-%05d", rank, ranks) }

// shardParts are the parts in a rank's shard, [lo, hi).
func shardParts(parts, rank, ranks int) (lo, hi int) {
	return rank * parts / ranks, (rank + 1) * parts / ranks
}

const shardHeader = 4 + 4 + sha256.Size + 8 + 8

// shardStart is the header of a shard. To read one is to compare it.
func shardStart(whole sum, lo, hi int) []byte {
	p := append([]byte(nil), shardMagic...)
	p = binary.LittleEndian.AppendUint32(p, manifestVersion)
	p = append(p, whole[:]...)
	p = binary.LittleEndian.AppendUint64(p, uint64(lo))
	return binary.LittleEndian.AppendUint64(p, uint64(hi-lo))
}

// A manifest says what state is kept, and how.
type manifest struct {
	Progress
	label
	ranks int
}

func (m manifest) encode() []byte {
	p := append([]byte(nil), manifestMagic...)
	p = binary.LittleEndian.AppendUint32(p, manifestVersion)
	p = binary.LittleEndian.AppendUint32(p, uint32(m.ranks))
	p = binary.LittleEndian.AppendUint64(p, uint64(len(m.head)))
	p = append(p, m.head...)
	p = binary.LittleEndian.AppendUint64(p, uint64(len(m.sums)))
	for i := range m.sums {
		p = append(p, m.sums[i][:]...)
	}
	end := sha256.Sum256(p)
	return append(p, end[:]...)
}

// decodeManifest reads a manifest that may be anything.
func decodeManifest(p []byte) (manifest, error) {
	if len(p) < sha256.Size || !bytes.HasPrefix(p, []byte(manifestMagic)) {
		return manifest{}, fmt.Errorf("%w: no manifest begins so", ErrFormat)
	}
	p, end := p[:len(p)-sha256.Size], sum(p[len(p)-sha256.Size:])
	if sha256.Sum256(p) != end {
		return manifest{}, fmt.Errorf("%w: the manifest's checksum is wrong", ErrFormat)
	}
	r := reader{p: p[len(manifestMagic):]}
	if v := r.uint32(); r.err == nil && v != manifestVersion {
		return manifest{}, fmt.Errorf("manifest of version %d: this program reads %d", v, manifestVersion)
	}
	m := manifest{ranks: int(r.uint32())}
	m.head = r.takeAtMost(r.int64(), maxHead)
	parts := r.int64()
	if sums := r.takeAtMost(int64(len(r.p)), parts*sha256.Size); r.err == nil {
		for ; len(sums) >= sha256.Size; sums = sums[sha256.Size:] {
			m.sums = append(m.sums, sum(sums))
		}
	}
	if r.err != nil {
		return manifest{}, r.err
	}
	h, err := decodeHead(m.head)
	if err != nil {
		return manifest{}, err
	}
	if want := int64(partsOf(h.size())); parts != want || int64(len(m.sums)) != want || m.ranks < 1 || m.ranks > maxShards {
		return manifest{}, fmt.Errorf("%w: a manifest of %d ranks with %d of %d hashes, want %d", ErrFormat, m.ranks, len(m.sums), parts, want)
	}
	m.Progress = h.Progress
	return m, nil
}

// size is that of the body.
func (h head) size() int64 {
	var n int64
	for _, t := range h.tensors {
		size := int64(t.dtype.Size())
		for _, d := range t.shape {
			size *= int64(d)
		}
		n += size
	}
	return n
}
