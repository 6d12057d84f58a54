package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"peermesh/ops"
)

// Load gives all ranks the state of the newest checkpoint of which every part is
// found somewhere: in the directory that they share, or each in its own. Every
// rank of the group calls it, at the same place among the group's operations. Any
// number of ranks may, whatever number has saved. All that is read is verified;
// a part that one rank cannot read it gets from another that can.
//
// Where no rank has any checkpoint, all get [ErrNoCheckpoint]; where none that there
// is can be put together, a *[CheckpointError]. After an error s is as before.
func (c *Checkpoints) Load(ctx context.Context, g *ops.Group, s *State) error {
	if err := s.compareLists(ctx, g); err != nil {
		return err
	}
	all, problem := c.List()
	var problems []string
	note := func(err error) {
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	note(problem)
	size := newBody(s.all()).size()
	for {
		for len(all) > 0 {
			err := s.fitsLabel(all[0].label)
			if err == nil {
				break
			}
			note(fmt.Errorf("%s: %w", all[0].Path, err))
			all = all[1:]
		}
		l, at, err := newest(ctx, g, all, partsOf(size))
		if err != nil {
			return err
		}
		if at == nil {
			return c.nothing(ctx, g, problems)
		}
		cargo := newCargo(l, size)
		note(c.read(cargo, filepath.Join(c.Dir, dirName(*at))))
		err = (&haul{cargo: cargo, label: l, have: cargo.have, size: size}).exchange(ctx, g)
		if lost, ok := errors.AsType[*LostPartsError](err); ok {
			note(fmt.Errorf("%s: %w", dirName(*at), lost))
			for len(all) > 0 && all[0].compare(*at) >= 0 {
				all = all[1:]
			}
			continue
		}
		if err != nil {
			return err
		}
		return cargo.unload(s)
	}
}

// fitsLabel is whether a label is of a state such as s.
func (s *State) fitsLabel(l label) error {
	h, err := decodeHead(l.head)
	if err == nil {
		err = s.fits(h)
	}
	return err
}

// newest is the label of the newest checkpoint that any rank has, given to all
// ranks, and nil where there is none. all is this rank's, the newest first.
func newest(ctx context.Context, g *ops.Group, all []Checkpoint, parts int) (label, *Progress, error) {
	own, mine := offer{}, label{sums: make([]sum, parts)}
	if len(all) > 0 {
		mine = all[0].label
		own = offer{Progress: all[0].Progress, whole: mine.hash(), head: int64(len(mine.head))}
	}
	offers, err := gatherOffers(ctx, g, own)
	if err != nil {
		return label{}, nil, err
	}
	top := -1
	for rank, o := range offers {
		if o.head > 0 && (top < 0 || o.compare(offers[top]) > 0) {
			top = rank
		}
	}
	if top < 0 {
		return label{}, nil, nil
	}
	l, err := mine.share(ctx, g, top, offers[top])
	return l, &offers[top].Progress, err
}

// nothing is why no checkpoint was loaded, on all ranks.
func (c *Checkpoints) nothing(ctx context.Context, g *ops.Group, problems []string) error {
	if len(problems) == 0 {
		if err := agree(ctx, g, nil); err != nil {
			return err
		}
		return ErrNoCheckpoint
	}
	return agree(ctx, g, errors.New(strings.Join(problems, "; ")))
}

// read fills a cargo from the shards that are in a directory, whoever wrote them.
// Its error says what cannot be read; the rest has been.
func (c *Checkpoints) read(cargo *cargo, dir string) error {
	names, err := c.fs().ReadDir(dir)
	problems := []error{err}
	for _, name := range names {
		var rank, ranks int
		n, err := fmt.Sscanf(name, "shard-%d-of-%d", &rank, &ranks)
		if err != nil || n != 2 || ranks < 1 || ranks > maxShards || rank < 0 || rank >= ranks || shardName(rank, ranks) != name {
			continue
		}
		lo, hi := shardParts(len(cargo.sums), rank, ranks)
		if err := cargo.readShard(c.fs(), filepath.Join(dir, name), lo, hi); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", filepath.Join(dir, name), err))
		}
	}
	return errors.Join(problems...)
}

func (c *cargo) readShard(fs files, name string, lo, hi int) error {
	f, err := fs.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(c.readParts(f, lo, hi), f.Close())
}

// readParts reads a shard. One of another state, left by a save that did not end,
// is no error: it has nothing for us.
func (c *cargo) readParts(f io.ReaderAt, lo, hi int) error {
	start := make([]byte, shardHeader)
	if _, err := f.ReadAt(start, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	want := shardStart(c.whole, lo, hi)
	if !bytes.Equal(start, want) {
		if bytes.Equal(start[:8], want[:8]) && !bytes.Equal(start[8:8+len(sum{})], c.whole[:]) {
			return nil
		}
		return fmt.Errorf("%w: no shard begins so", ErrFormat)
	}
	at := int64(shardHeader)
	var problems []error
	for i := lo; i < hi; i++ {
		p := c.part(i)
		if c.have[i] {
			at += int64(len(p))
			continue
		}
		if n, err := f.ReadAt(p, at); n < len(p) {
			return errors.Join(append(problems, fmt.Errorf("part %d ends after %d of %d bytes: %w", i, n, len(p), err))...)
		}
		if err := c.accept(i); err != nil {
			problems = append(problems, err)
		}
		at += int64(len(p))
	}
	return errors.Join(problems...)
}
