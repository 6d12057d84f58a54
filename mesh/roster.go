package mesh

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
)

// maxID bounds a peer's ID in bytes; those of Ed25519 keys have 38.
const maxID = 64

// digest names a roster in 32 bytes. The zero digest is that of no roster.
type digest [sha256.Size]byte

// A roster says who takes part in an epoch. Ranks are the members' places.
type roster struct {
	Epoch   uint64
	Base    digest    // of the roster before it
	Members []peer.ID // sorted
	Digest  digest
}

func newRoster(mesh string, epoch uint64, base digest, members []peer.ID) roster {
	members = slices.Clone(members)
	slices.SortFunc(members, compareID)
	h := sha256.New()
	p := append([]byte("peermesh-roster"), uint8(len(mesh)))
	p = append(p, mesh...)
	p = appendEpochDigest(p, epoch, base)
	for _, id := range members {
		p = appendBlock(p, []byte(id))
	}
	h.Write(p)
	return roster{Epoch: epoch, Base: base, Members: members, Digest: digest(h.Sum(nil))}
}

// rank is a peer's place; -1 if it has none.
func (r roster) rank(id peer.ID) int {
	if i, ok := slices.BinarySearchFunc(r.Members, id, compareID); ok {
		return i
	}
	return -1
}

// append writes a roster but for its digest, which whoever reads it makes anew.
func (r roster) append(p []byte) []byte {
	p = appendEpochDigest(p, r.Epoch, r.Base)
	p = binary.LittleEndian.AppendUint16(p, uint16(len(r.Members)))
	for _, id := range r.Members {
		p = appendBlock(p, []byte(id))
	}
	return p
}

// readRoster reads a roster of a mesh.
func readRoster(r io.Reader, mesh string) (roster, error) {
	epoch, base, err := readEpochDigest(r)
	if err != nil {
		return roster{}, fmt.Errorf("mesh: roster: %w", err)
	}
	blocks, err := readBlocks(r, MaxWorld, maxID)
	if err != nil {
		return roster{}, fmt.Errorf("mesh: roster: %w", err)
	}
	var ids []peer.ID
	for i, b := range blocks {
		if ids = append(ids, peer.ID(b)); i > 0 && compareID(ids[i-1], ids[i]) >= 0 {
			return roster{}, errors.New("mesh: roster: members out of order")
		}
	}
	if len(ids) == 0 || epoch == 0 || epoch > maxEpoch {
		return roster{}, fmt.Errorf("mesh: roster of %d members in epoch %d", len(ids), epoch)
	}
	return newRoster(mesh, epoch, base, ids), nil
}

// maxFull is the size up to which every two ranks of a world are linked.
const maxFull = 16

// neighbours lists the ranks that a rank holds a control stream to, in ascending
// order. In a world of up to maxFull it is every other one: a death is then noticed
// by everybody at first hand. In a larger one it is those at a distance of a power
// of two, either way round, so that there are 2·log₂ n streams a rank rather than
// n, news reaches everyone in log₂ n steps, and no 2·log₂ n − 1 deaths cut the rest
// in two: a ring with the fingers of Chord (Stoica et al., SIGCOMM 2001), both
// ways. What is not linked is passed on: see routes.go.
func neighbours(rank, size int) []int {
	var near []int
	for r := range size {
		d := (r - rank + size) % size
		if d != 0 && (size <= maxFull || isPower(d) || isPower(size-d)) {
			near = append(near, r)
		}
	}
	return near
}

func isPower(n int) bool { return n&(n-1) == 0 }
