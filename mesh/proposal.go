package mesh

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
)

// maxEpoch keeps arithmetic on epochs from ever wrapping.
const maxEpoch = 1 << 62

// A proposal is a roster and the announcements of its members, which prove that
// each of them wants it, and say where each is; and what the proposer remembers,
// which says what world the next one follows.
type proposal struct {
	roster  roster
	members []*announcement
	mind    *memory
}

func (p *proposal) append(b []byte) []byte {
	blocks, size := make([][]byte, len(p.members)), 0
	for i, a := range p.members {
		blocks[i] = a.raw
		size += 2 + len(a.raw)
	}
	b = appendEpochDigest(slices.Grow(b, size+presenceSize), p.roster.Epoch, p.roster.Base)
	return p.mind.append(appendBlocks(b, blocks))
}

// readProposal checks everything that can be checked without knowing our own
// state.
func readProposal(r io.Reader, from peer.ID) (*proposal, error) {
	epoch, base, err := readEpochDigest(r)
	if err != nil {
		return nil, fmt.Errorf("mesh: proposal: %w", err)
	}
	if epoch == 0 || epoch > maxEpoch {
		return nil, fmt.Errorf("mesh: proposal of epoch %d", epoch)
	}
	blocks, err := readBlocks(r, MaxWorld, maxAnnouncement)
	if err != nil {
		return nil, fmt.Errorf("mesh: proposal: %w", err)
	}
	p := &proposal{}
	var ids []peer.ID
	for i, raw := range blocks {
		a, err := openAnnouncement(raw)
		if err != nil {
			return nil, fmt.Errorf("mesh: proposal: %w", err)
		}
		if i > 0 && compareID(ids[i-1], a.ID) >= 0 {
			return nil, errors.New("mesh: proposal: members out of order")
		}
		ids = append(ids, a.ID)
		p.members = append(p.members, a)
	}
	if !slices.Contains(ids, from) {
		return nil, fmt.Errorf("mesh: proposal by %s, which is none of its members", from)
	}
	name := p.members[0].Mesh
	p.roster = newRoster(name, epoch, base, ids)
	if p.mind, err = readMemory(r, name); err != nil {
		return nil, err
	}
	if p.mind.base() != base || p.mind.epoch() >= epoch {
		return nil, fmt.Errorf("mesh: proposal of epoch %d does not follow the world of its proposer", epoch)
	}
	return p, nil
}
