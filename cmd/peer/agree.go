package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// settingsSize is the room for a rank's settings as text, in bytes.
const settingsSize = 4096

// agree compares the settings of all ranks before anything depends on them: a
// rank with another batch or network would train something else, or wait for
// messages that nobody sends.
func agree(ctx context.Context, g *ops.Group, settings string, peer func(rank int) string) error {
	all, err := gatherBytes(ctx, g, []byte(settings), settingsSize)
	if err != nil {
		return fmt.Errorf("comparing the settings of all ranks: %w", err)
	}
	ours := all[g.Rank()]
	for rank, theirs := range all {
		if !bytes.Equal(theirs, ours) {
			return usagef("rank %d (%s) was started with%s, this rank with%s: give every peer the same flags and data",
				rank, peer(rank), difference(theirs, ours), difference(ours, theirs))
		}
	}
	return nil
}

// settings are all that must be alike, in words.
func (t *training) settings() string {
	p := t.plan
	text := fmt.Sprintf("--net %s, --epochs %d, --steps %d, --batch-size %d, --seed %d, --lr %v, dropout %v, %d training images, %d test images",
		p.net, p.epochs, p.steps, p.batch, p.seed, p.lr, p.dropout, t.data.Train.Len(), t.data.Test.Len())
	if p.compresses() {
		text += ", --compress " + p.Compress
	}
	text += p.Syncing.settings()
	if t.more != "" {
		text += ", " + t.more
	}
	return text
}

// difference is what a says otherwise than b.
func difference(a, b []byte) string {
	var out []string
	others := strings.Split(text(b), ", ")
	for _, s := range strings.Split(text(a), ", ") {
		if !slices.Contains(others, s) {
			out = append(out, s)
		}
	}
	return " " + strings.Join(out, ", ")
}

// text is the printable part of what a peer sent, without its padding.
func text(p []byte) string {
	p = bytes.TrimRight(p, "\x00")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(p))
}

// compare compares the parameters of all ranks, and returns their hash.
func (t *training) compare(ctx context.Context) (string, error) {
	hash, err := trainer.Hash(t.recipe.params)
	if err != nil {
		return "", fmt.Errorf("the parameters' hash: %w", err)
	}
	all, err := gatherBytes(ctx, t.group, hash[:], len(hash))
	if err != nil {
		return "", fmt.Errorf("comparing the parameters of all ranks: %w", err)
	}
	return fmt.Sprintf("%x", hash), t.alike(all)
}

// alike names the ranks whose hash is not rank 0's.
func (t *training) alike(hashes [][]byte) error {
	var others []string
	for rank, h := range hashes {
		if !bytes.Equal(h, hashes[0]) {
			others = append(others, fmt.Sprintf("%d (%s) %x", rank, t.peer(rank), h))
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("after %d steps the parameters differ: rank 0 (%s) has %x, but rank %s",
		t.taken, t.peer(0), hashes[0], strings.Join(others, ", rank "))
}

// gatherBytes returns every rank's bytes, cut or padded to size.
func gatherBytes(ctx context.Context, g *ops.Group, own []byte, size int) ([][]byte, error) {
	in := make([]byte, size)
	copy(in, own)
	out := make([]byte, size*g.Size())
	if err := g.AllGather(ctx, tensor.Of(out), tensor.Of(in)).Wait(); err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(out, size)), nil
}
