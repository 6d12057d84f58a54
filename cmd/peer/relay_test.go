package main

import (
	"strings"
	"testing"
)

// TestRelayFlags has a peer that relays and two that nobody is to dial train together.
// On one machine the two find a direct way in the end, or the relay carries them: either
// way each says of its world which links are relayed, and all come to the same end.
func TestRelayFlags(t *testing.T) {
	f := newFleet(t, 3, "--transport", "tcp", "--data", writeDigits(t), "--steps", "3", "--threads", "1")
	args := func(i int, more ...string) []string {
		return append(append([]string{"--world", "3", "--identity", f.keys[i], "--listen", f.addrs[i], "--log", "json"}, more...), f.flags...)
	}
	relay := f.addrs[0] + "/p2p/" + f.ids[0]
	f.lives[0] = []*spawned{spawn(t, args(0, "--relay")...)}
	eventually(t, "the relay", func() bool { return strings.Contains(f.now(0).out(), "listening") })
	for _, i := range []int{1, 2} {
		f.lives[i] = []*spawned{spawn(t, args(i, "--nat", "--bootstrap", relay)...)}
	}
	f.finish(2 * soon)
	var done string
	for i := range 3 {
		for _, e := range f.events(i) {
			if e.Event == "world" {
				t.Logf("peer %d is rank %d of %d, relayed are %v", i, e.Rank, e.Size, e.Relayed)
			}
			if i == 0 && len(e.Relayed) > 0 {
				t.Errorf("the relay reaches %v through a relay", e.Relayed)
			}
			if e.Event != "done" {
				continue
			}
			if done != "" && done != e.ParamsHash {
				t.Errorf("peer %d ends with %.16s, another with %.16s", i, e.ParamsHash, done)
			}
			done = e.ParamsHash
		}
	}
	if done == "" {
		t.Error("nobody has come to the end")
	}
}
