package trainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"peermesh/ops"
)

// Save keeps the state that all ranks have. Every rank of the group calls it, at
// the same place among the group's operations. When it returns nil, the
// checkpoint is complete and on disk on all ranks, and older ones than Keep are
// gone. Otherwise those that there were are still there, and this one may be; what
// one rank cannot write, all hear of, as a *[CheckpointError].
//
// The state is hashed and compared first: ranks that have parted from each other
// get a *[DivergedError] and overwrite nothing.
func (c *Checkpoints) Save(ctx context.Context, g *ops.Group, s *State) error {
	h, err := s.survey(ctx, g)
	if err != nil {
		return err
	}
	offers, err := gatherOffers(ctx, g, h.offer(s))
	if err != nil {
		return err
	}
	givers, err := choose(offers)
	if err == nil && slices.Contains(givers, false) {
		err = errors.New("trainer: checkpoint: ranks have different states")
	}
	if err != nil {
		return err
	}
	fs, dir := c.fs(), filepath.Join(c.Dir, dirName(s.Progress))
	err = fs.MkdirAll(dir)
	if err == nil {
		err = fs.SyncDir(c.Dir) // or the directory may be lost with all that is safe in it
	}
	if err == nil {
		err = h.writeShard(fs, dir, g.Rank(), g.Size())
	}
	if err := agree(ctx, g, err); err != nil {
		return err
	}
	temp := fmt.Sprintf(".%s-%05d", manifestName, g.Rank()) // ranks may share the directory
	err = writeFile(fs, dir, manifestName, temp, func(w io.Writer) error {
		_, err := w.Write(manifest{label: h.label, ranks: g.Size()}.encode())
		return err
	})
	if err := agree(ctx, g, err); err != nil {
		return err
	}
	return agree(ctx, g, c.prune(s.Progress))
}

// agree has all ranks fail if one does.
func agree(ctx context.Context, g *ops.Group, own error) error {
	text := ""
	if own != nil {
		text = own.Error()
		text = text[:min(len(text), maxReason)]
	}
	all, err := gatherText(ctx, g, text)
	if err != nil {
		return fmt.Errorf("trainer: checkpoint: comparing outcomes: %w", err)
	}
	if own != nil {
		return fmt.Errorf("trainer: checkpoint: %w", own)
	}
	for rank, text := range all {
		if text != "" {
			return &CheckpointError{Rank: rank, Reason: text}
		}
	}
	return nil
}

// maxReason bounds what a rank tells the others of its error, in bytes.
const maxReason = 1 << 12

func (h *haul) writeShard(fs files, dir string, rank, ranks int) error {
	lo, hi := shardParts(len(h.label.sums), rank, ranks)
	name := shardName(rank, ranks)
	return writeFile(fs, dir, name, "."+name, func(w io.Writer) error {
		if _, err := w.Write(shardStart(h.label.hash(), lo, hi)); err != nil {
			return err
		}
		for i := lo; i < hi; i++ {
			p, err := h.part(i)
			if err != nil {
				return err
			}
			if _, err := w.Write(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// prune removes all but the newest Keep checkpoints, and what came of saves that
// did not end before the one that did.
func (c *Checkpoints) prune(saved Progress) error {
	keep := c.Keep
	if keep == 0 {
		keep = DefaultKeep
	}
	whole, unreadable := c.List() // what cannot be read is of no use, and goes
	if len(whole) == 0 {
		return unreadable
	}
	stays := make(map[string]bool)
	for _, w := range whole[:min(max(keep, 1), len(whole))] {
		stays[filepath.Base(w.Path)] = true
	}
	names, err := c.fs().ReadDir(c.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		var p Progress
		if !parseName(name, &p) || stays[name] || p.compare(saved) >= 0 {
			continue
		}
		if err := c.remove(filepath.Join(c.Dir, name)); err != nil {
			return err
		}
	}
	return c.fs().SyncDir(c.Dir)
}

// Remove removes one of List from this rank's directory. That another rank has done so
// at the same time is no error.
func (c *Checkpoints) Remove(old Checkpoint) error {
	err := c.remove(old.Path)
	if err == nil {
		err = c.fs().SyncDir(c.Dir)
	}
	if err != nil {
		return fmt.Errorf("trainer: checkpoint %s: %w", old.Path, err)
	}
	return nil
}

// remove removes a checkpoint, its manifest first: there is none that lacks a
// shard. Another rank may be doing the same.
func (c *Checkpoints) remove(dir string) error {
	fs := c.fs()
	if err := fs.Remove(filepath.Join(dir, manifestName)); err != nil {
		return err
	}
	names, err := fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := fs.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return fs.Remove(dir)
}
