// Package liar has peers that lie, for tests of those who listen to them.
//
// Attack speaks every protocol that a peer has, and says what nobody should
// believe: noise, lengths without end, beginnings without an end, nothing at all.
// Corrupt is a rank's transport whose messages are not what they say:
//
//	n, err := node.Start(ctx, net.Links().Host(9).Config())
//	…
//	err = liar.Attack(ctx, n, victim, seed)
//
// What must hold of the victim is that it lives, answers others, and holds no
// stream of the liar's for good.
package liar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
	"peermesh/ops"
)

const (
	// patience is how long a victim may take to end a stream that makes no sense.
	patience = 30 * time.Second
	// noise is how many random bytes a lie has.
	noise = 4096
)

// ErrHeld is what Attack returns when a victim keeps a stream open on which nothing
// sensible was said.
var ErrHeld = errors.New("liar: the victim holds a stream")

// lies are what is said on a stream, by name. After each the liar says no more.
func lies(rng *rand.Rand) map[string][]byte {
	random := make([]byte, noise)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	return map[string][]byte{
		"noise":    random,
		"endless":  bytes.Repeat([]byte{0xff}, noise),
		"zeros":    make([]byte, noise),
		"cut":      random[:1],
		"nothing":  nil,
		"protocol": []byte("/multistream/1.0.0\n"),
	}
}

// Attack opens a stream for every lie and every protocol that the victim says it
// speaks, but libp2p's own, and tells the lie. It returns when the victim has ended
// all of them: ErrHeld if it has not in half a minute. It is deterministic but for
// the order of the protocols' handlers at the victim's.
func Attack(ctx context.Context, n *node.Node, victim peer.AddrInfo, seed uint64) error {
	if err := n.Connect(ctx, victim); err != nil {
		return fmt.Errorf("liar: %w", err)
	}
	protocols, err := n.Host().Peerstore().GetProtocols(victim.ID)
	if err != nil {
		return fmt.Errorf("liar: what %s speaks: %w", victim.ID, err)
	}
	slices.Sort(protocols)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, p := range protocols {
		if !strings.HasPrefix(string(p), "/peermesh/") {
			continue
		}
		all := lies(rng)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			s, err := n.Host().NewStream(ctx, victim.ID, p)
			if err != nil {
				return fmt.Errorf("liar: %s: %w", p, err)
			}
			if err := tell(s, all[name]); err != nil {
				return fmt.Errorf("%w: %s after %s", err, p, name)
			}
		}
	}
	return nil
}

// tell says one lie and waits for the end of the stream.
func tell(s network.Stream, lie []byte) error {
	defer func() { _ = s.Reset() }() // over either way
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("liar: %w", err)
	}
	if _, err := s.Write(lie); err != nil {
		if node.IsTimeout(err) {
			return ErrHeld
		}
		return nil // refused already: no one listened to the end
	}
	answer := make([]byte, 1024)
	for {
		if _, err := s.Read(answer); node.IsTimeout(err) {
			return ErrHeld
		} else if err != nil {
			return nil // ended, in whatever way
		}
	}
}

// A Corrupt transport sends other tags, or the last message once more: the wrong
// digest and the replay of a rank that is a member and lies all the same.
type Corrupt struct {
	ops.Transport
	// Tag, if set, may change the tag of every message that is sent.
	Tag func(to int, t *ops.Tag)
	// Twice sends every message a second time.
	Twice bool
}

// Send is ops.Transport's, with what Corrupt adds.
func (c *Corrupt) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	if c.Tag != nil {
		c.Tag(to, &tag)
	}
	var whole []byte
	for p, err := range parts {
		if err != nil {
			return fmt.Errorf("liar: %w", err)
		}
		whole = append(whole, p...)
	}
	times := 1
	if c.Twice {
		times = 2
	}
	for range times {
		err := c.Transport.Send(ctx, to, lane, tag, n, func(yield func([]byte, error) bool) { yield(whole, nil) })
		if err != nil {
			return err
		}
	}
	return nil
}
