package mesh

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// someState has something in every field.
func someState(t testing.TB) *state {
	t.Helper()
	stood := func(r roster) *past {
		p := &past{roster: r}
		for range r.Members {
			p.Stands = append(p.Stands, bytes.Repeat([]byte{7}, maxStand))
		}
		return p
	}
	last := stood(world(4, "abc"))
	a := newAnnouncement(t, "m", 3)
	return &state{ID: a.ID, Mesh: "m", Known: [][]byte{a.raw}, Memory: &memory{
		Promised: 9, Last: last, Line: []*past{stood(world(2, "abx")), stood(world(3, "ay"))}, Voter: true, Born: 3, Bare: []uint64{4, 7},
		Before: []former{{world(2, "abx"), true}, {world(3, "ay"), false}}, Ahead: 2,
		Doubt: []roster{world(6, "ab"), world(7, "bc")}, Passed: []passing{{9, digest{1}}},
	}}
}

func TestStateThereAndBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peer.world")
	if s, err := loadState(path); s != nil || err != nil {
		t.Errorf("no file: %v, %v", s, err)
	}
	for _, s := range []*state{someState(t), {ID: "x", Mesh: "m", Memory: &memory{}}} {
		if err := s.save(path); err != nil {
			t.Fatal(err)
		}
		got, err := loadState(path)
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v became %+v, %v", s, got, err)
		}
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	if err := someState(t).save(filepath.Join(path, "no/dir")); err == nil {
		t.Error("saved where there is no directory")
	}
}

func TestStateDamaged(t *testing.T) {
	whole := someState(t).encode()
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 4
		if s, err := decodeState(bad); err == nil {
			t.Fatalf("byte %d: accepted %+v", i, s)
		}
		if s, err := decodeState(whole[:i]); err == nil {
			t.Fatalf("%d bytes: accepted %+v", i, s)
		}
	}
	path := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(path, make([]byte, maxState+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadState(path); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}

// A state file that is damaged or of another mesh is as good as none; one of
// another peer is an error, and so is a directory.
func TestRecall(t *testing.T) {
	n := startNode(t, loopback)
	path := filepath.Join(t.TempDir(), "state")
	try := func() (*Mesh, error) {
		m, err := Join(t.Context(), n, Config{World: 2, State: path})
		if err == nil {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return m, err
	}
	s := someState(t)
	s.Mesh = "elsewhere"
	s.ID = n.ID()
	s.Memory.Doubt, s.Memory.Before, s.Memory.Last, s.Memory.Voter = nil, nil, nil, false
	if err := s.save(path); err != nil {
		t.Fatal(err)
	}
	if m, err := try(); err != nil || m.memory.Promised != 0 {
		t.Errorf("of another mesh: %+v, %v", m, err)
	}
	s.Mesh = defaultName
	if err := s.save(path); err != nil {
		t.Fatal(err)
	}
	if m, err := try(); err != nil || m.memory.Promised != 9 || len(m.former) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if err := os.WriteFile(path, []byte("peermesh\x01\x00 and then nonsense, for more than a checksum's length"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := try(); err != nil || m.memory.Promised != 0 {
		t.Errorf("damaged: %+v, %v", m, err)
	}
	s.ID = peer.ID("another")
	if err := s.save(path); err != nil {
		t.Fatal(err)
	}
	if _, err := try(); err == nil || !strings.Contains(err.Error(), "is that of") {
		t.Errorf("another's: %v", err)
	}
	path = filepath.Dir(path)
	if _, err := try(); err == nil {
		t.Error("a directory")
	}
}

// A peer that leaves owes nothing; one that closes does.
func TestLeaveForgets(t *testing.T) {
	a, b := startNode(t, loopback), startNode(t, loopback)
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	meshes := []*Mesh{
		join(t, a, Config{World: 2, State: paths[0]}),
		join(t, b, Config{World: 2, State: paths[1], Bootstrap: []string{a.Addrs()[0].String()}}),
	}
	worldsOf(t, meshes)
	for _, path := range paths {
		if s, err := loadState(path); err != nil || s.Memory.blank() || s.Memory.Promised == 0 {
			t.Errorf("%s: %+v, %v", path, s, err)
		}
	}
	if err := meshes[0].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := meshes[1].Close(); err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		if _, err := os.Stat(path); (err == nil) != (i == 1) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A past is proven by all its members, and by nobody else.
func TestPastProof(t *testing.T) {
	var members []peer.ID
	keys := map[peer.ID]crypto.PrivKey{}
	for range 3 {
		a, key := signed(t, "m", 3)
		members = append(members, a.ID)
		keys[a.ID] = key
	}
	p := stood(t, newRoster("m", 5, digest{}, members), keys)
	if err := p.check(); err != nil {
		t.Error(err)
	}
	got, err := readPast(bytes.NewReader(p.append(nil)), "m")
	if err != nil || !reflect.DeepEqual(got, p) || got.check() != nil {
		t.Errorf("%+v became %+v, %v", p, got, err)
	}
	if other, err := readPast(bytes.NewReader(p.append(nil)), "n"); err != nil || other.check() == nil {
		t.Error("proven in another mesh")
	}
	p.Epoch = 1 << 61
	if huge, err := readPast(bytes.NewReader(p.append(nil)), "m"); err != nil || huge.check() == nil {
		t.Error("proven in another epoch")
	}
	if err := checkStand("short", digest{}, nil); err == nil {
		t.Error("an ID without a key")
	}
}

func FuzzState(f *testing.F) {
	f.Add(someState(f).encode())
	f.Fuzz(func(t *testing.T, p []byte) {
		if s, err := decodeState(p); err == nil && !bytes.Equal(s.encode(), p) {
			t.Errorf("%x became %x", p, s.encode())
		}
	})
}

// The memory alone, because no fuzzer forges a checksum.
func FuzzMemory(f *testing.F) {
	f.Add(someState(f).Memory.append(nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		m, err := readMemory(bytes.NewReader(p), "m")
		if err == nil && !bytes.HasPrefix(p, m.append(nil)) {
			t.Errorf("%x became %x", p, m.append(nil))
		}
	})
}

func FuzzPresence(f *testing.F) {
	f.Add(presence{Asks: true, In: 4, Last: someState(f).Memory.Last}.append(nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		got, err := readPresence(bytes.NewReader(p), "m")
		if err == nil && !bytes.HasPrefix(p, got.append(nil)) {
			t.Errorf("%x became %x", p, got.append(nil))
		}
	})
}

func FuzzVote(f *testing.F) {
	f.Add(appendVote(&answer{Code: answerYes, Epoch: 3}, someState(f).Memory))
	f.Fuzz(func(t *testing.T, p []byte) {
		a, m, err := readVote(bytes.NewReader(p), "m")
		if err == nil && (m != nil) != (a.Code == answerYes || a.Code == declineStale) {
			t.Errorf("%+v, %+v", a, m)
		}
	})
}
