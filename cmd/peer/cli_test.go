package main

import (
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

const somePeer = "12D3KooWBpZHDZu7YSbvPaPXKhkRNJvR8MkTJMQQAAu3vVCpKBSp"

// badInput is what TestBadInput types, and what it is told.
var badInput = []struct {
	args string
	want string // in the line
}{
	{"--frobnicate", "unknown flag --frobnicate"},
	{"frobnicate", "unexpected argument frobnicate"},
	{"--net resnet", `--net must be one of "convnet","tutorial" but got "resnet"`},
	{"--world 0", "--world is 0, want 1 to"},
	{"--world=-3", "--world is -3"},
	{"--world -3", "--world is -3"},
	{"--world 1025", "--world is 1025"},
	{"--world four", "--world"},
	{"--epochs 0", "--epochs is 0"},
	{"--steps=-1", "--steps is -1"},
	{"--batch-size 0", "--batch-size is 0"},
	{"--batch-size=-5", "--batch-size is -5"},
	{"--batch-size 1000000", "--batch-size is 1000000"},
	{"--seed -1", "--seed"},
	{"--lr 0", "--lr is 0"},
	{"--lr NaN", "--lr is NaN"},
	{"--lr +Inf", "--lr is +Inf"},
	{"--threads 0", "--threads is 0"},
	{"--threads 1000", "--threads is 1000"},
	{"--wait 0s", "--wait is 0s"},
	{"--wait soon", "--wait"},
	{"--mesh=", "--mesh is empty"},
	{"--transport pigeon", "--transport must be one of"},
	{"--log xml", "--log must be one of"},
	{"--log-level loud", "--log-level must be one of"},
	{"--world 2 --bootstrap 10.0.0.1:4001", "not a multiaddr"},
	{"--world 2 --bootstrap /ip4/10.0.0.1/tcp/4001", "lacks the peer's ID"},
	{"--world 2 --bootstrap /ip4/10.0.0.1/tcp/4001/p2p/nonsense", "multiaddr"},
	{"--bootstrap /ip4/10.0.0.1/tcp/4001/p2p/" + somePeer, "--world is 1: say how many ranks"},
	{"launch", "--num-processes"},
	{"launch -n 0", "--num-processes is 0"},
	{"launch -n -1", "--num-processes is -1"},
	{"launch -n 1000", "--num-processes is 1000"},
	{"launch -n 2 --epochs 0", "--epochs is 0"},
	{"launch -n 2 --bootstrap x", "unknown flag --bootstrap"},
	{"schedule", "<kind>"},
	{"schedule all-reduced", "must be one of"},
	{"schedule barrier --ranks 0", "--ranks is 0"},
	{"schedule barrier --ranks 100000", "--ranks is 100000"},
	{"schedule barrier --bytes 12XB", "is not a size"},
	{"schedule barrier --rate 0", "--rate is 0"},
	{"--steps -1", "--steps is -1, want 0 or more"},
	{"--lr -0.5 --steps 3", "--lr is -0.5"},
	{"launch -n 2 --batch-size -5", "--batch-size is -5"},
	{"schedule barrier --latency -1s", "--latency is -1s"},
	{"schedule barrier --algorithm ring", "only dissemination, one-shot"},
	{"schedule barrier --root 1", "in barrier no rank is special"},
	{"schedule reduce --ranks 4 --root 4", "--root is 4, want 0 to 3"},
	{"schedule reduce --ranks 4 --root=-1", "--root is -1"},
	{"--min 5 --world 4", "--min is 5, want 1 to --world, which is 4"},
	{"--min -1 --world 4", "--min is -1"},
	{"--min 2 --world 4 --net tutorial", "--min is for --net convnet"},
	{"--quorum most", "--quorum must be one of"},
	{"--resume", "--resume is given without --checkpoint"},
	{"--checkpoint d --every 0", "--every is 0"},
	{"--checkpoint d --keep 0", "--keep is 0"},
	{"--checkpoint d --net tutorial", "are for --net convnet"},
	{"--relay --nat --world 2", "give one or the other"},
	{"--nat --world 2", "--nat is given without --bootstrap"},
	{"bench --op all_reduced", "want some of pingpong, stream"},
	{"bench --sizes 12XB", "is not a size"},
	{"bench --sizes 8..4", "the smaller first"},
	{"bench --dtypes float31", "want some of float32"},
	{"bench -n -1", "--num-processes is -1"},
	{"bench -n 2 --world 2", "give one or the other"},
	{"bench --world 2 --transport memory", "give --num-processes"},
	{"bench --transport pigeon", "--transport must be one of"},
	{"bench --iters -1", "--iters is -1"},
	{"bench --warmup -1", "--warmup is -1"},
	{"bench --budget 0", "--budget is 0"},
	{"bench --budget NaN", "--budget is NaN"},
	{"bench --lanes 1000", "--lanes is 1000"},
	{"bench --against /nonexistent", "--against: open /nonexistent: no such file"},
	{"id", "--identity"},
}

// TestBadInput goes through what people mistype: one line says what to mend,
// and the status is 2. What needs files is in train_test.go.
func TestBadInput(t *testing.T) {
	for _, test := range badInput {
		t.Run(test.args, func(t *testing.T) {
			status, stdout, stderr := in(strings.Fields(test.args)...)
			if status != statusUsage {
				t.Errorf("status %d, want %d", status, statusUsage)
			}
			isOneLine(t, stderr)
			if !strings.Contains(stderr, test.want) {
				t.Errorf("stderr %q lacks %q", stderr, test.want)
			}
			if stdout != "" {
				t.Errorf("stdout: %q, want nothing", stdout)
			}
		})
	}
}

// TestHelp asks for help at each place.
func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "launch --help", "train --help", "schedule --help", "bench --help", "id --help", "version --help"} {
		status, stdout, stderr := in(strings.Fields(args)...)
		if status != 0 || stderr != "" || !strings.HasPrefix(stdout, "Usage: peer") {
			t.Errorf("peer %s: status %d, stdout %.60q, stderr %q", args, status, stdout, stderr)
		}
	}
}

// TestDefaultCommand reads flags of train with and without the verb.
func TestDefaultCommand(t *testing.T) {
	const flags = "--world 4 --net tutorial --epochs 3 --steps 9 --batch-size 8 --seed 7 --lr 0.25 --data /d --threads 2" +
		" --no-dropout --transport quic --log json -v --mesh m --wait 3s --listen /ip4/127.0.0.1/tcp/0 --listen /ip4/127.0.0.1/tcp/1" +
		" --bootstrap /ip4/10.0.0.1/tcp/4001/p2p/" + somePeer + " --identity key"
	want := &trainCmd{
		Training: Training{Net: "tutorial", Epochs: new(3), Steps: 9, BatchSize: new(8), Seed: new(uint64(7)), LR: new(0.25),
			Data: "/d", Threads: new(2), NoDropout: true, Log: "json",
			Checkpointing: Checkpointing{Every: 200, Keep: 3}, Computing: Computing{Device: "cpu"}, Compression: Compression{Compress: "none"}, Syncing: Syncing{Method: "ddp"},
			Common: Common{Verbose: true, LogLevel: "info", Mesh: "m", Wait: 3 * time.Second}},
		Joining: Joining{World: 4, Identity: "key",
			Listen:    []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/1"},
			Bootstrap: []string{"/ip4/10.0.0.1/tcp/4001/p2p/" + somePeer}},
		Transport: "quic", Quorum: "majority",
	}
	for _, verb := range []string{"", "train "} {
		got, err := parse(strings.Fields(verb+flags), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("peer %s%s:\n got %+v\nwant %+v", verb, flags, got, want)
		}
	}
	bare, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got := bare.(*trainCmd); got.World != 1 || got.Net != netConvNet || got.Mesh != "default" || got.Transport != "all" {
		t.Errorf("peer without arguments: %+v", got)
	}
}

func TestVersion(t *testing.T) {
	status, stdout, stderr := in("version")
	if status != 0 || stderr != "" || !strings.HasPrefix(stdout, "peer ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}
