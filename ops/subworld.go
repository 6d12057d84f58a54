package ops

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"sync"
	"time"

	"encoding/binary"

	"peermesh/ops/schedule"
)

// A subworld is some ranks of a world as a Transport of their own, so that a
// group of them needs nothing that a group of all does not. Its lanes and
// channels are the world's: the group's ID in them keeps groups apart. It ends
// with the world, and to end it is to end the world.
type subworld struct {
	Transport
	ranks ranks
	rank  int // −1 for a process that is none of them
}

// among is the subworld of some ranks of a world, given in their new order.
func among(t Transport, list []int) *subworld {
	r := ranks{n: len(list), list: list}
	self, ok := r.local(t.Rank())
	if !ok {
		self = -1
	}
	return &subworld{Transport: t, ranks: r, rank: self}
}

func (s *subworld) Rank() int { return s.rank }
func (s *subworld) Size() int { return s.ranks.n }

func (s *subworld) check(rank int) error {
	if rank < 0 || rank >= s.ranks.n || rank == s.rank || s.rank < 0 {
		return fmt.Errorf("ops: no lane from rank %d to rank %d of %v", s.rank, rank, s.ranks)
	}
	return nil
}

func (s *subworld) Send(ctx context.Context, to int, lane uint64, tag Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	if err := s.check(to); err != nil {
		return err
	}
	return s.Transport.Send(ctx, s.ranks.world(to), lane, tag, n, parts)
}

func (s *subworld) Ahead(to int, lane uint64) int64 {
	if s.check(to) != nil {
		return 0
	}
	return ahead(s.Transport, s.ranks.world(to), lane)
}

func (s *subworld) Host() string { return hostName(s.Transport) }

func (s *subworld) Processors() (n, set int) { return processorsOf(s.Transport) }

func (s *subworld) Recv(ctx context.Context, from int, lane uint64, accept func(tag Tag, n int64) error, land func(p []byte) error) error {
	if err := s.check(from); err != nil {
		return err
	}
	return s.Transport.Recv(ctx, s.ranks.world(from), lane, accept, land)
}

func (s *subworld) Signal(to int, channel uint32, p []byte) error {
	if err := s.check(to); err != nil {
		return err
	}
	return s.Transport.Signal(s.ranks.world(to), channel, p)
}

// OnSignal hears the members only.
func (s *subworld) OnSignal(channel uint32, f func(from int, p []byte)) {
	if f == nil {
		s.Transport.OnSignal(channel, nil)
		return
	}
	s.Transport.OnSignal(channel, func(from int, p []byte) {
		if i, ok := s.ranks.local(from); ok {
			f(i, p)
		}
	})
}

// linksAmong are a world's links as a subworld's schedules are priced on them.
type linksAmong struct {
	world schedule.Links
	ranks ranks
}

func (l linksAmong) Latency(from, to int) time.Duration {
	return l.world.Latency(l.ranks.world(from), l.ranks.world(to))
}

// Host is 0 where the world's links know of no hosts.
func (l linksAmong) Host(rank int) int64 {
	if known, ok := l.world.(Located); ok {
		return known.Host(l.ranks.world(rank))
	}
	return 0
}

// Share is 1 where the world's links know of no processors. Ranks that are not in the
// group are taken to be at work too.
func (l linksAmong) Share(rank int) float64 {
	if known, ok := l.world.(Shared); ok {
		return known.Share(l.ranks.world(rank))
	}
	return 1
}

func (l linksAmong) Rate(from, to int) float64 {
	return l.world.Rate(l.ranks.world(from), l.ranks.world(to))
}

// madeID marks the IDs that groups are given, apart from those of Config.
const madeID = 1 << 31

// salts is how many IDs a new group can choose from.
const salts = 64

// saltedID is one of the IDs that call seq of a group may give to the groups it
// makes.
func saltedID(parent uint32, seq uint64, salt int) uint32 {
	h := fnv.New32a()
	b := binary.LittleEndian.AppendUint32(nil, parent)
	b = binary.LittleEndian.AppendUint64(b, seq)
	h.Write(append(b, byte(salt)))
	return h.Sum32() | madeID
}

// ids are the IDs of the groups that this process has made from one root.
//
// An ID must be free on all members. So each offers those of the salted IDs that
// are free with it, and everyone takes the lowest that all have offered. What is
// offered is taken until that is settled, for another call may be choosing at the
// same time.
type ids struct {
	mu    sync.Mutex
	taken map[uint32]bool
}

// offer takes every salted ID that is free, and returns which.
func (s *ids) offer(parent uint32, seq uint64) (offered uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = make(map[uint32]bool)
	}
	for salt := range salts {
		if id := saltedID(parent, seq, salt); !s.taken[id] {
			s.taken[id] = true
			offered |= 1 << salt
		}
	}
	return offered
}

// settle gives back what was offered, but for the one that is kept; −1 keeps none.
func (s *ids) settle(parent uint32, seq uint64, offered uint64, keep int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for salt := range salts {
		if offered&(1<<salt) != 0 && salt != keep {
			delete(s.taken, saltedID(parent, seq, salt))
		}
	}
}
