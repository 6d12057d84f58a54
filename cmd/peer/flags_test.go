package main

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// TestPlan compares the defaults with those of the two reference programs.
func TestPlan(t *testing.T) {
	tests := []struct {
		name         string
		training     Training
		world, local int
		want         plan
	}{
		{"convnet alone", Training{Net: "convnet"}, 1, 1,
			plan{world: 1, net: "convnet", epochs: 1, batch: 128, lr: 0.5, dropout: true, threads: runtime.NumCPU()}},
		{"convnet of 4", Training{Net: "convnet"}, 4, 1,
			plan{world: 4, net: "convnet", epochs: 1, batch: 32, lr: 0.5, dropout: true, threads: runtime.NumCPU()}},
		{"tutorial of 2", Training{Net: "tutorial"}, 2, 1,
			plan{world: 2, net: "tutorial", epochs: 10, batch: 64, seed: 1234, lr: 0.01, dropout: true, threads: runtime.NumCPU()}},
		{"more ranks than samples", Training{Net: "convnet", NoDropout: true, Steps: 5}, 200, 1 << 20,
			plan{world: 200, net: "convnet", epochs: 1, steps: 5, batch: 1, lr: 0.5, threads: 1}},
		{"all given", Training{Net: "tutorial", Epochs: new(2), BatchSize: new(3), Seed: new(uint64(0)), LR: new(0.1), Threads: new(5)}, 2, 2,
			plan{world: 2, net: "tutorial", epochs: 2, batch: 3, lr: 0.1, dropout: true, threads: 5}},
	}
	for _, test := range tests {
		if got := test.training.plan(test.world, test.local); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestTransports are the node's names, and where a launched rank listens.
func TestTransports(t *testing.T) {
	const tcp, quic = "/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"
	for flag, want := range map[string][2][]string{
		"tcp":  {{"tcp"}, {tcp}},
		"quic": {{"quic"}, {quic}},
		"all":  {nil, {tcp, quic}},
	} {
		if got := [2][]string{transports(flag), loopback(flag)}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", flag, got, want)
		}
	}
}

// TestShared reads the arguments for the other peers back in.
func TestShared(t *testing.T) {
	for _, flags := range []string{
		"",
		"--net tutorial",
		"--mesh my-run --net tutorial --steps 7 --epochs 3 --batch-size 16 --seed 5 --lr 0.125 --no-dropout --log-dir runs/1",
	} {
		first, err := parse(strings.Fields(flags), nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(first.(*trainCmd).shared(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first, again) {
			t.Errorf("%q became %q:\n got %+v\nwant %+v", flags, first.(*trainCmd).shared(), again, first)
		}
	}
}

// TestJoinCommand is a line that a person pastes into another terminal.
func TestJoinCommand(t *testing.T) {
	s := &session{cmd: &trainCmd{Training: Training{Net: "tutorial", Common: Common{Mesh: "it's mine"}}, Joining: Joining{World: 4}}}
	want := `peer --bootstrap /a --world 4 --mesh 'it'\''s mine' --net tutorial`
	if got := s.joinCommand("/a"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
