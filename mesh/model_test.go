package mesh

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
)

var histories = flag.Int("histories", 300, "random histories of TestNeverTwoWorlds")

// A model is a mesh whose only substance is memories: what is proposed, heard,
// forgotten and cut is up to chance. It does all that the protocol allows, in any
// order, and never what it forbids.
type model struct {
	rng      *rand.Rand
	peers    map[peer.ID]*modelPeer
	ids      []peer.ID
	attempts []*attempt
	side     map[peer.ID]int // of the partition
	log      []string
	live     []*attempt // worlds that stood on every rank
	finished *work      // the last step that all members of its world have taken
	undone   error      // it is, and should not be
	lost     int        // how often it was lost with all who had it
	carries  int        // worlds in which something had to be carried
}

type modelPeer struct {
	mind *memory
	life int      // it has started again so often
	in   *attempt // promised, or committed, or standing: what it has not left
	has  *work    // what it has of the training; nil: nothing
}

// An attempt is a proposal and what became of it.
type attempt struct {
	r         roster
	proposer  peer.ID
	minds     map[peer.ID]*memory // of those that acknowledged
	decided   bool
	commit    bool
	committed map[peer.ID]bool
	stood     map[peer.ID]bool
	lives     map[peer.ID]int  // in which they stood
	holds     map[peer.ID]bool // to whom the proposer said so
	best      *work            // what is carried in the world
	carrying  bool
	carried   map[peer.ID]bool
	next      *work // the step at hand
}

func (m *model) note(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) any() peer.ID { return m.ids[m.rng.IntN(len(m.ids))] }

func (m *model) reach(a, b peer.ID) bool { return m.side[a] == m.side[b] }

// propose begins an attempt by a peer with some of those it can reach.
func (m *model) propose() {
	who := m.any()
	p := m.peers[who]
	if p.mind.blank() {
		return
	}
	members := []peer.ID{who}
	for _, id := range m.ids {
		if id != who && m.reach(who, id) && m.rng.IntN(4) > 0 {
			members = append(members, id)
		}
	}
	if m.rng.IntN(2) == 0 { // they have seen their world end
		for _, id := range members {
			m.leave(id)
		}
	}
	if p.in != nil || p.mind.mayGoOn(members) != nil {
		return
	}
	a := newAttempt(newRoster("m", p.mind.Promised+1+uint64(m.rng.IntN(3)), p.mind.base(), members), who)
	if p.mind.promise(a.r) != nil {
		return
	}
	p.in, a.minds[who] = a, p.mind.clone()
	m.attempts = append(m.attempts, a)
	m.note("%s proposes %d %q", who, a.r.Epoch, a.r.Members)
}

// acknowledge lets one member answer. It learns the proposer's last world first.
func (m *model) acknowledge(a *attempt, id peer.ID) {
	p := m.peers[id]
	if a.decided || a.minds[id] != nil || !m.reach(a.proposer, id) || p.in != nil {
		return
	}
	p.mind.follow(a.minds[a.proposer])
	if p.mind.promise(a.r) == nil {
		p.in, a.minds[id] = a, p.mind.clone()
		m.note("%s acknowledges %d", id, a.r.Epoch)
	}
}

// decide is the proposer's verdict; without all acknowledgements it is no.
func (m *model) decide(a *attempt) {
	p := m.peers[a.proposer]
	if a.decided || p.in != a {
		return
	}
	a.decided = true
	a.commit = len(a.minds) == len(a.r.Members) && allows(a.minds) == nil
	m.note("%d is decided: %v", a.r.Epoch, a.commit)
	m.hear(a, a.proposer)
}

// hear delivers the verdict, or lets a member hear of a commit from another.
func (m *model) hear(a *attempt, id peer.ID) {
	p, from := m.peers[id], a.proposer
	holds := a.decided && a.minds[id] != nil && a.minds[id].holds(bases(a.minds))
	if m.rng.IntN(3) == 0 {
		from, holds = a.r.Members[m.rng.IntN(len(a.r.Members))], false
	}
	switch {
	case !a.decided || p.in != a || !m.reach(from, id):
	case a.commit && (from == a.proposer || a.committed[from]):
		a.committed[id] = true
		m.note("%s commits %d, holds %v", id, a.r.Epoch, holds)
		if holds {
			a.holds[id] = true
			p.mind.had(a.r)
		}
	case !a.commit && from == a.proposer:
		p.mind.abort(a.r.Digest)
		p.in = nil
		m.note("%s aborts %d", id, a.r.Epoch)
	}
}

// stand is a member that is linked to all others.
func (m *model) stand(a *attempt, id peer.ID) {
	p := m.peers[id]
	if p.in != a || a.stood[id] || len(a.committed) < len(a.r.Members) || p.mind.stand(a.r, a.holds[id]) != nil {
		return
	}
	a.stood[id], a.lives[id] = true, p.life
	m.note("%s stands in %d", id, a.r.Epoch)
	if len(a.stood) == len(a.r.Members) {
		m.live = append(m.live, a)
	}
}

// settle lets a member hear that all others stand, or a peer of a past that
// another knows.
func (m *model) settle(a *attempt, id peer.ID) {
	if len(a.stood) == len(a.r.Members) && m.peers[id].in == a && m.peers[id].mind.settle(&past{roster: a.r}) {
		m.note("%s settles %d", id, a.r.Epoch)
	}
	from := m.any()
	if m.reach(id, from) && m.peers[id].in == nil {
		m.peers[id].mind.follow(m.peers[from].mind)
	}
}

// follow learns what worlds another remembers to have stood.
func (m *memory) follow(other *memory) {
	for _, p := range other.Line {
		m.settle(p)
	}
	if other.Last != nil {
		m.settle(other.Last)
	}
}

// leave is the end of a world, or of a promise, on one member.
func (m *model) leave(id peer.ID) {
	if m.peers[id].in != nil {
		m.note("%s leaves %d", id, m.peers[id].in.r.Epoch)
		m.peers[id].in = nil
	}
}

func (m *model) crash(id peer.ID) {
	m.leave(id)
	m.peers[id].life++
	m.peers[id].has = nil
	m.peers[id].mind.revive()
	m.note("%s starts again", id)
	if m.rng.IntN(3) == 0 {
		m.peers[id].mind = &memory{}
		m.note("%s forgets", id)
	}
}

// step does something.
func (m *model) step() {
	id := m.any()
	var a *attempt
	if n := len(m.attempts); n > 0 {
		a = m.attempts[n-1-min(m.rng.IntN(min(n, 4)), m.rng.IntN(4))]
		if m.rng.IntN(4) > 0 {
			id = a.r.Members[m.rng.IntN(len(a.r.Members))]
		}
	}
	switch k := m.rng.IntN(100); {
	case k == 0 && m.rng.IntN(2) == 0:
		for _, id := range m.ids {
			m.side[id] = m.rng.IntN(1 + m.rng.IntN(3))
		}
		m.note("cut: %v", m.side)
	case k == 1:
		m.crash(id)
	case k < 4:
		m.leave(m.any())
	case k < 8:
		m.propose()
	case a == nil:
	case k < 16:
		for range m.rng.IntN(8 * len(a.r.Members)) {
			m.advance(m.attempts[len(m.attempts)-1])
		}
	case k < 40:
		m.acknowledge(a, id)
	case k < 45:
		m.decide(a)
	case k < 60:
		m.hear(a, id)
	case k < 75:
		m.stand(a, id)
	case k < 85:
		m.settle(a, id)
	default:
		m.train(a, id)
	}
}

// advance lets a member of an attempt do what is next for it.
func (m *model) advance(a *attempt) {
	id := a.r.Members[m.rng.IntN(len(a.r.Members))]
	switch {
	case a.minds[id] == nil && a.proposer != "":
		m.acknowledge(a, id)
	case !a.decided && (len(a.minds) == len(a.r.Members) || m.rng.IntN(20) == 0):
		m.decide(a)
	case !a.committed[id]:
		m.hear(a, id)
	case !a.stood[id]:
		m.stand(a, id)
	case m.rng.IntN(3) == 0:
		m.settle(a, id)
	default:
		m.train(a, id)
	}
}

// check finds two worlds of one epoch, two that have all their members at once, or
// one that shares nobody with the one before.
func (m *model) check() error {
	epochs := make(map[uint64]bool)
	whole := 0
	for _, a := range m.live {
		if epochs[a.r.Epoch] {
			return fmt.Errorf("two worlds %d", a.r.Epoch)
		}
		epochs[a.r.Epoch] = true
		if !slices.ContainsFunc(a.r.Members, func(id peer.ID) bool { return m.peers[id].in != a }) {
			whole++
		}
	}
	if whole > 1 {
		return fmt.Errorf("%d worlds at once", whole)
	}
	chain := slices.SortedFunc(slices.Values(m.live), func(a, b *attempt) int { return int(a.r.Epoch) - int(b.r.Epoch) })
	for i, a := range chain[1:] {
		before := chain[i].r
		if quorum(before, func(id peer.ID) bool { return a.r.rank(id) >= 0 }) != nil {
			return fmt.Errorf("world %d of %q follows world %d of %q", a.r.Epoch, a.r.Members, before.Epoch, before.Members)
		}
	}
	return nil
}

func newModel(seed uint64) *model {
	m := &model{rng: rand.New(rand.NewPCG(seed, 5)), peers: map[peer.ID]*modelPeer{}, side: map[peer.ID]int{}}
	n := 3 + m.rng.IntN(5)
	for i := range n {
		id := peer.ID(rune('a' + i))
		m.ids = append(m.ids, id)
		m.peers[id] = &modelPeer{mind: &memory{}}
	}
	// The first world is a given: of as many fresh peers as it wants there may be
	// any number, and nothing tells one such world from another.
	first := newAttempt(newRoster("m", 1, digest{}, m.ids[:2+m.rng.IntN(n-1)]), "")
	first.decided, first.commit = true, true
	for _, id := range first.r.Members {
		p := m.peers[id]
		if err := p.mind.promise(first.r); err != nil {
			panic(err)
		}
		if err := p.mind.stand(first.r, true); err != nil {
			panic(err)
		}
		p.mind.settle(&past{roster: first.r})
		p.in, first.committed[id], first.stood[id] = first, true, true
	}
	m.live = append(m.live, first)
	m.attempts = append(m.attempts, first)
	return m
}

// Whatever is cut, killed, forgotten and lost, no two worlds go on at once, none
// have one epoch, each follows from the one before, and no step that was finished is
// undone while anybody lives who has it.
func TestNeverTwoWorlds(t *testing.T) {
	worlds, steps, carries, lost, sizes := 0, 0, 0, 0, make(map[int]int)
	for seed := range uint64(*histories) {
		m := newModel(seed)
		for range 2000 {
			before := len(m.live)
			m.step()
			err := m.undone
			if err == nil && len(m.live) > before {
				err = m.check()
			}
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(m.log, "\n"))
			}
		}
		worlds, carries, lost = worlds+len(m.live), carries+m.carries, lost+m.lost
		steps += m.finished.depth()
		for _, a := range m.live {
			sizes[len(a.r.Members)]++
		}
	}
	t.Logf("%d worlds, %d in which something was carried, %d steps, lost %d times with all who had them; by size: %v", worlds, carries, steps, lost, sizes)
	if len(sizes) < 6 || worlds < *histories+*histories/10 || steps < *histories || carries < *histories/10 {
		t.Errorf("too little happened: %v", slices.Collect(maps.Keys(sizes)))
	}
}
