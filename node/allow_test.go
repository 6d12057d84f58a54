package node

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

func TestReadAllow(t *testing.T) {
	const other = "12D3KooWCRscMgHgEo3ojm8ovzheydpvTEqsDtq7Vby38cMHrYjt"
	got, err := ReadAllow(write(t, "# who may come in\n\n"+someID+"  # a machine\r\n\t"+other, 0o644))
	if want := []peer.ID{mustID(t, someID), mustID(t, other)}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for want, file := range map[string]string{
		`line 3: "12D3Koo" is not a peer ID`: someID + "\n#\n12D3Koo\n",
		"there is no peer in it":             "# nobody\n",
		"too long":                           strings.Repeat("x", 1<<17),
	} {
		if _, err := ReadAllow(write(t, file, 0o600)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "node: ") {
			t.Errorf("%.40q: %v, want %q", file, err, want)
		}
	}
	if _, err := ReadAllow(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a list that is not there")
	}
}

func TestGater(t *testing.T) {
	member, stranger := mustID(t, someID), peer.ID("stranger")
	a, err := newAccess(nil, []peer.ID{member}, 1)
	if err != nil {
		t.Fatal(err)
	}
	g := gater{a}
	for _, p := range []peer.ID{member, stranger} {
		want := p == member
		if g.InterceptPeerDial(p) != want || g.InterceptAddrDial(p, nil) != want || g.InterceptSecured(network.DirOutbound, p, nil) != want {
			t.Errorf("dialling %s, who is to be dialled: %v", p, want)
		}
		if !g.InterceptAccept(nil) || !g.InterceptSecured(network.DirInbound, p, nil) {
			t.Errorf("%s is not told why", p)
		}
	}
}

func FuzzAllow(f *testing.F) {
	f.Add([]byte(someID + "\n# comment\n"))
	f.Add([]byte("12D3Koo"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ids, err := parseAllow(data)
		if err == nil && len(ids) == 0 {
			t.Error("a list of nobody")
		}
		for _, id := range ids {
			if id.Validate() != nil {
				t.Errorf("%q in the list", id)
			}
		}
	})
}

func FuzzAddr(f *testing.F) {
	f.Add("/ip4/192.0.2.7/tcp/4001/p2p/" + someID)
	f.Add("/ip4/192.0.2.7/udp/4001/quic-v1/p2p/" + someID + "/p2p-circuit/p2p/" + someID)
	f.Add("/p2p/" + someID)
	f.Add("localhost:4001")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddr(s)
		if err != nil {
			return
		}
		if len(a.Addrs) != 1 || a.ID.Validate() != nil {
			t.Fatalf("%q: %v", s, a)
		}
		whole, err := peer.AddrInfoToP2pAddrs(&a)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		again, err := ParseAddr(whole[0].String())
		if err != nil || again.ID != a.ID || !again.Addrs[0].Equal(a.Addrs[0]) {
			t.Errorf("%q: %v, then %v, %v", s, a, again, err)
		}
	})
}
