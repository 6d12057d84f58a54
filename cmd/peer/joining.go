package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"peermesh/mesh"
	"peermesh/node"
)

// defaultMesh is the mesh of those who name none.
const defaultMesh = "default"

// Common is what every command has that meets other peers.
type Common struct {
	Mesh     string        `default:"default" placeholder:"NAME" help:"Name of the mesh; peers of another name are strangers."`
	Wait     time.Duration `default:"5m" placeholder:"TIME" help:"How long a world may take to form."`
	LogLevel string        `default:"info" enum:"debug,info,warn,error" help:"Least level of the log on stderr."`
	Verbose  bool          `short:"v" help:"Short for --log-level debug."`
}

// Validate finds what no mesh could have. Kong calls it.
func (c *Common) Validate() error {
	if c.Wait <= 0 {
		return fmt.Errorf("--wait is %v, want a positive duration", c.Wait)
	}
	return nil
}

// Joining is how a peer that was not launched finds the others.
type Joining struct {
	Listen    []string `sep:"none" placeholder:"ADDR" help:"Multiaddr to listen on; repeatable (every interface, any port)."`
	Bootstrap []string `sep:"none" placeholder:"ADDR" help:"Whom to meet first: a multiaddr with its /p2p/ID, tcp://host:port, file:///path, /dns4/…, /dnsaddr/…, lan or dht; repeatable. The first peer of a world is given no multiaddr."`
	DHT       []string `name:"dht" sep:"none" placeholder:"ADDR" help:"With --bootstrap dht: multiaddr of a peer that serves the DHT; repeatable (the public one of IPFS)."`
	World     int      `default:"1" placeholder:"N" help:"Ranks of the world; 1 is alone."`
	Identity  string   `placeholder:"FILE" help:"Private key, made if absent (a fresh one that is not kept)."`
	Secret    string   `placeholder:"FILE" help:"File with the secret of a private network, at least 16 random bytes; all peers have the same."`
	Allow     string   `placeholder:"FILE" help:"File with the peer IDs, one a line, that may connect (all that know the secret)."`
	Relay     bool     `name:"relay" help:"Let peers that cannot be dialled meet through this one."`
	NAT       bool     `name:"nat" help:"Others cannot dial this peer: reach them through the --bootstrap peers, which relay, and directly when that can be had."`
	Launched  bool     `hidden:"" help:"This is a child of another peer."`
}

// Validate finds what no mesh could be joined with. Kong calls it.
func (j *Joining) Validate() error {
	switch {
	case j.World < 1 || j.World > mesh.MaxWorld:
		return fmt.Errorf("--world is %d, want 1 to %d", j.World, mesh.MaxWorld)
	case j.World == 1 && len(j.Bootstrap) > 0:
		return errors.New("--bootstrap is given but --world is 1: say how many ranks the world has, as --world 4")
	}
	switch {
	case j.Relay && j.NAT:
		return errors.New("--relay is for a peer that others can dial, --nat for one that they cannot: give one or the other")
	case j.NAT && len(namedPeers(j.Bootstrap)) == 0:
		return errors.New("--nat is given without --bootstrap, the multiaddrs of the peers that relay")
	}
	for _, a := range j.Bootstrap {
		if err := checkBootstrap(a); err != nil {
			return fmt.Errorf("--bootstrap %s: %w", a, err)
		}
	}
	return checkDHT(j.DHT)
}

// An entrant is a peer on its way into a mesh.
type entrant struct {
	*Joining
	*Common
	transport string
	tether    *tether // nil unless launched
	elastic   elasticMesh
	terms     []string // what all must have been started with
	// command is the command line by which another peer joins at an address.
	command func(addr string) string
	// invite tells whoever started the first peer of a world how the others find it:
	// ways for a person, own for a program, which may want all addresses.
	invite func(ways []entrance, own []string) error
}

// An elasticMesh is what a mesh does without those that are lost; zero: nothing.
type elasticMesh struct {
	min    int
	quorum string
}

// A place is a peer's place in a mesh.
type place struct {
	node *node.Node
	mesh *mesh.Mesh
}

// enter starts a node and joins the mesh. A flag is behind all that can be wrong
// with either: a key, an address, a name.
func (e *entrant) enter(ctx context.Context) (*place, error) {
	n, err := e.start(ctx)
	if err != nil {
		return nil, err
	}
	bootstrap, err := e.meet(ctx, n)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if err := serveClock(ctx, n); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	c, err := e.config(bootstrap)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	m, err := mesh.Join(ctx, n, c)
	if err != nil {
		return nil, errors.Join(cause(ctx, usagef("%w", err)), n.Close())
	}
	return &place{n, m}, nil
}

// config is the mesh as the flags have it. A peer that keeps its identity keeps its
// say in the next world, too, when it starts again.
func (e *entrant) config(bootstrap []string) (mesh.Config, error) {
	c := mesh.Config{Name: e.Mesh, World: e.World, Bootstrap: bootstrap, Wait: e.Wait, Min: e.elastic.min, Carries: e.elastic.min > 0, Terms: e.terms, DHT: e.DHT}
	if e.elastic.quorum == mesh.Any.String() {
		c.Quorum = mesh.Any
	}
	if e.Identity != "" {
		c.Pins = e.Identity + ".pins"
	}
	if e.elastic.min > 0 && e.Identity != "" && !e.forgets() {
		c.State = e.Identity + ".world"
	}
	return c, nil
}

// close ends what enter began. What it returns is not asked: whatever needed an
// orderly end had it in leave.
func (p *place) close() {
	_ = p.mesh.Close()
	_ = p.node.Close()
}

// leave says good-bye.
func (p *place) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	return p.mesh.Leave(ctx)
}

// forgets reports whether this peer's identity ends with it: a launched one that is not
// to be started again.
func (e *entrant) forgets() bool { return e.tether != nil && !e.tether.keep }

// start starts the node. A launched peer's key is its launcher's to choose and
// nobody's to keep.
func (e *entrant) start(ctx context.Context) (*node.Node, error) {
	c := node.Config{Identity: e.Identity, Listen: e.Listen, Transports: transports(e.transport), Peers: e.World, Relay: e.Relay, NAT: e.NAT}
	if e.NAT {
		c.Relays = namedPeers(e.Bootstrap)
	}
	if err := e.access(&c); err != nil {
		return nil, err
	}
	if e.World == 1 && len(c.Listen) == 0 {
		c.Listen = loopback(e.transport) // nobody is expected: only an open port
	}
	n, err := e.listen(ctx, c)
	if err != nil {
		return nil, cause(ctx, usagef("%w", err))
	}
	if e.forgets() {
		if err := forget(e.Identity); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// listen starts the node and, if the others are told to find somebody on this machine,
// has it listen there; unless another process of this machine does so already.
func (e *entrant) listen(ctx context.Context, c node.Config) (*node.Node, error) {
	if len(c.Listen) > 0 || !overTCPOnly(e.transport) {
		return node.Start(ctx, c)
	}
	at := c
	if at.Listen = meetingPlace(ctx, e.Bootstrap, e.transport); at.Listen == nil {
		return node.Start(ctx, c)
	}
	n, err := node.Start(ctx, at)
	if used := (*node.AddrInUseError)(nil); errors.As(err, &used) {
		return node.Start(ctx, c)
	}
	return n, err
}

// access reads who may connect.
func (e *entrant) access(c *node.Config) (err error) {
	if e.Secret != "" {
		if c.Secret, err = node.ReadSecret(e.Secret); err != nil {
			return usagef("--secret: %w", err)
		}
	}
	if e.Allow != "" {
		if c.Allow, err = node.ReadAllow(e.Allow); err != nil {
			return usagef("--allow: %w", err)
		}
	}
	return nil
}

// meet finds the bootstrap addresses: the launcher's, or those of the flags.
// The first peer of a world is told none; it tells the others its own.
func (e *entrant) meet(ctx context.Context, n *node.Node) ([]string, error) {
	var own []string
	for _, a := range n.Addrs() {
		own = append(own, a.String())
	}
	switch {
	case e.tether != nil && len(e.Bootstrap) == 0:
		return e.tether.meet(ctx, own)
	case e.World > 1 && len(e.Bootstrap) == 0:
		ways := entrances(n.Addrs(), defaultRoute())
		for i := range ways {
			ways[i].command = e.command(ways[i].addr)
		}
		return nil, e.invite(ways, own)
	}
	return e.Bootstrap, nil
}

// transports are the node's names for what --transport chooses.
func transports(flag string) []string {
	if flag == "all" {
		return nil
	}
	return []string{flag}
}

// loopback is where a peer listens that only this machine is to find.
func loopback(transport string) []string {
	tcp, quic := "/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"
	switch transport {
	case node.TCP:
		return []string{tcp}
	case node.QUIC:
		return []string{quic}
	case "all":
		return []string{tcp, quic}
	}
	return nil // what has no port needs no address
}
