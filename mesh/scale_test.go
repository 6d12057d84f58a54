package mesh

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// scales are the worlds of testnet/SCALE.md's model.
var scales = []float64{1_000, 100_000, 1_000_000}

// units are what its figures come in, as seconds, bytes, or once.
var units = map[string]float64{
	"": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "ms": 1e-3, "s": 1, "h": 3600, "days": 86400, "a second": 1,
}

// figure reads one: "0.7 MB", "1,780", "11 a second", "1 in 86 s".
func figure(t *testing.T, text string) float64 {
	t.Helper()
	rest, rare := strings.CutPrefix(strings.TrimSpace(text), "1 in ")
	number, unit, _ := strings.Cut(rest, " ")
	x, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	scale, known := units[unit]
	if err != nil || !known {
		t.Fatalf("%q is no figure: %v", text, err)
	}
	if rare {
		return 1 / (x * scale)
	}
	return x * scale
}

// scaleRows are the rows of three figures in the model's table, by their names.
func scaleRows(t *testing.T) (rows map[string][]string, text string) {
	t.Helper()
	page, err := os.ReadFile("../testnet/SCALE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, model, ok := strings.Cut(string(page), "## The model\n")
	if !ok {
		t.Fatal("SCALE.md has no model")
	}
	rows = make(map[string][]string)
	for line := range strings.Lines(model) {
		if cells := strings.Split(line, "|"); len(cells) == 7 && cells[1] != "---" && strings.TrimSpace(cells[1]) != "" {
			rows[strings.TrimSpace(cells[1])] = cells[2:6]
		}
	}
	return rows, model
}

// What testnet/SCALE.md reckons for worlds of a thousand, a hundred thousand and a million
// follows from the constants here, so that it cannot say one thing and the code do
// another. Figures have two digits, so they may be a twentieth off.
func TestScaleModel(t *testing.T) {
	const (
		pair    = 577   // bytes for each two peers while a world forms, as measured
		port    = 125e6 // bytes a second: 1 Gbit/s
		verify  = 50e-6 // seconds
		copies  = 6     // of each announcement, by gossip
		apart   = 0.080 // seconds of a round trip
		a       = 250   // bytes of an announcement: see TestScaleConstants
		id      = 38    // bytes of a peer ID: likewise
		aDay    = 24 * 3600
		renewal = 0.625 * float64(lifetime) / float64(time.Second) // the middle of lifetime/2 and 3/4
	)
	log := func(n float64) float64 { return math.Ceil(math.Log2(n)) }
	hops := func(n float64) float64 { return math.Ceil(math.Log2(n) / 2) }
	want := map[string]func(n float64) float64{
		"roster with announcements":        func(n float64) float64 { return n * a },
		"roster of IDs alone":              func(n float64) float64 { return n * id },
		"forming, a peer":                  func(n float64) float64 { return n * pair },
		"forming at 1 Gbit/s a peer":       func(n float64) float64 { return n * pair / port },
		"signatures to check, a peer":      func(n float64) float64 { return 2 * n * verify },
		"announcements a second":           func(n float64) float64 { return n / renewal },
		"of them, bytes a second and peer": func(n float64) float64 { return n / renewal * a * copies },
		"links of a peer":                  func(n float64) float64 { return 2 * log(n) },
		"hops that news takes":             hops,
		"depth of a tree":                  log,
		"time to notice a death, a round trip of 80 ms apart": func(n float64) float64 {
			return quietFloor.Seconds() + apart + hops(n)*apart/2
		},
		"deaths, if each peer dies once a day": func(n float64) float64 { return n / aDay },
	}
	rows, text := scaleRows(t)
	for name, of := range want {
		cells := rows[name]
		if cells == nil {
			t.Errorf("SCALE.md has no row %q", name)
			continue
		}
		for i, n := range scales {
			if got, should := figure(t, cells[i]), of(n); math.Abs(got-should) > should/20 {
				t.Errorf("%s at %.0f: SCALE.md says %s, the code %.3g", name, n, cells[i], should)
			}
		}
	}
	for name := range rows {
		if want[name] == nil {
			t.Errorf("nobody checks the row %q", name)
		}
	}
	if proposer := rows["forming at 1 Gbit/s a peer"][3]; !strings.Contains(proposer, "= 2 s, 5.6 h, 23 days") {
		t.Errorf("the proposer: %s", proposer)
	}
	for i, said := range []float64{figure(t, "2 s"), figure(t, "5.6 h"), figure(t, "23 days")} {
		if should := scales[i] * scales[i] * a / port; math.Abs(said-should) > should/20 {
			t.Errorf("the proposer at %.0f: %v s, the code %v s", scales[i], said, should)
		}
	}
	if said := fmt.Sprintf("MaxWorld is %d,%03d", MaxWorld/1000, MaxWorld%1000); !strings.Contains(text, said) {
		t.Errorf("SCALE.md does not say that %s", said)
	}
}

// The model's constants are what the code has.
func TestScaleConstants(t *testing.T) {
	a := newAnnouncement(t, "testnet", 1000, "/ip4/10.0.1.1/tcp/4001", "/ip4/10.0.1.1/udp/4001/quic-v1",
		"/ip4/192.0.2.7/tcp/4001", "/ip4/192.0.2.7/udp/4001/quic-v1",
		"/ip6/2001:db8::7/tcp/4001", "/ip6/2001:db8::7/udp/4001/quic-v1")
	if n := len(a.raw); n < 225 || n > 275 {
		t.Errorf("an announcement of six addresses has %d bytes, not about 250", n)
	}
	if n := len(a.ID); n != 38 {
		t.Errorf("a peer ID has %d bytes", n)
	}
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		near, most := neighbours(0, n), 2*int(math.Ceil(math.Log2(float64(n))))
		if len(near) > most || len(near) < most-4 {
			t.Errorf("a rank of %d has %d links, want about %d", n, len(near), most)
		}
	}
	for b := range 256 {
		after := lifetime - renewAt(peer.ID([]byte{byte(b)}))
		if after < 450*time.Second || after > 675*time.Second {
			t.Errorf("an announcement is renewed after %v, not 7.5 to 11.25 minutes", after)
		}
	}
}
