package mesh

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

// topicPrefix, and then the mesh's name, is the topic of announcements.
const topicPrefix = "/peermesh/announce/1/"

// gossip spreads announcements by pubsub, which is faster than meeting everybody
// in a large mesh. It may lose any of them, so nothing else rides on it, and a
// mesh works without it.
type gossip struct {
	cancel context.CancelFunc
	node   *node.Node
	topic  *pubsub.Topic
	sub    *pubsub.Subscription
	done   chan struct{}
}

// startGossip must come before the first connection: pubsub misses the
// subscriptions of peers that were there before it.
func startGossip(n *node.Node, name string, check func(raw []byte) bool) (*gossip, error) {
	ctx, cancel := context.WithCancel(context.Background())
	g := &gossip{cancel: cancel, node: n, done: make(chan struct{})}
	ps, err := pubsub.NewGossipSub(ctx, n.Host(),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), // announcements are signed
		pubsub.WithNoAuthor(),
		pubsub.WithMaxMessageSize(2*maxAnnouncement),
		pubsub.WithMessageIdFn(func(m *pb.Message) string {
			sum := sha256.Sum256(m.GetData())
			return string(sum[:])
		}))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mesh: gossip: %w", err), g.close())
	}
	topic := topicPrefix + name
	// The validator is also the receiver: what it accepts is in the view.
	err = ps.RegisterTopicValidator(topic, func(_ context.Context, _ peer.ID, m *pubsub.Message) bool {
		return check(m.GetData())
	}, pubsub.WithValidatorInline(true))
	if err == nil {
		g.topic, err = ps.Join(topic)
	}
	if err == nil {
		g.sub, err = g.topic.Subscribe()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mesh: gossip: %w", err), g.close())
	}
	go g.drain(ctx)
	return g, nil
}

// drain takes the messages that pubsub wants somebody to take.
func (g *gossip) drain(ctx context.Context) {
	defer close(g.done)
	for {
		if _, err := g.sub.Next(ctx); err != nil {
			return // the context ended, or the subscription with it
		}
	}
}

// publish offers an announcement to everyone.
func (g *gossip) publish(ctx context.Context, raw []byte) {
	if err := g.topic.Publish(ctx, raw); err != nil {
		log.Debugw("announcement not published", "err", err)
	}
}

func (g *gossip) close() error {
	var err error
	if g.sub != nil {
		g.sub.Cancel()
		<-g.done
	}
	if g.topic != nil {
		err = g.topic.Close()
	}
	g.cancel()
	for _, p := range pubsub.GossipSubDefaultProtocols {
		g.node.Host().SetStreamHandler(p, late) // not taken back: see node.Handle
	}
	return err
}

// late refuses a stream that has come after the end.
func late(s network.Stream) { _ = s.ResetWithError(node.CodeClosed) }
