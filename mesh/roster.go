package mesh

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
)

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
	p = binary.LittleEndian.AppendUint64(p, epoch)
	p = append(p, base[:]...)
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

// neighbours lists the ranks that a rank holds a control stream to. It is every
// other one: a death is then noticed by everybody at first hand, at the price of
// n·(n-1)/2 streams, which MaxWorld bounds. A sparser graph changes this function
// and needs END frames to be passed on; nothing else knows its shape.
func neighbours(rank, size int) []int {
	var all []int
	for r := range size {
		if r != rank {
			all = append(all, r)
		}
	}
	return all
}
