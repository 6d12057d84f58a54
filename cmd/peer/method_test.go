package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"peermesh/testnet/memnet"
	"peermesh/trainer/local"
)

// TestMethodNames: the flag has all that package local has, and nothing else.
func TestMethodNames(t *testing.T) {
	field, _ := reflect.TypeFor[Syncing]().FieldByName("Method")
	has := strings.Split(field.Tag.Get("enum"), ",")
	want := append(local.Names(), methodDDP)
	slices.Sort(has)
	slices.Sort(want)
	if !slices.Equal(has, want) {
		t.Errorf("--method is one of %q, want %q", has, want)
	}
	for _, name := range local.Names() {
		flags := "--method " + name + " --sync-every 7"
		cmd, err := parse(strings.Fields(flags), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(cmd.(*trainCmd).shared(), " "); got != flags {
			t.Errorf("others are to be started with %q", got)
		}
	}
	for flags, want := range map[string]string{
		"--method gossip":                       "--method",
		"--sync-every 8":                        "--sync-every is for a --method other than ddp",
		"--method diloco --sync-every -1":       "--sync-every is -1",
		"--method diloco --net tutorial":        "--method is for --net convnet",
		"--method diloco --compress powersgd":   "--compress powersgd is for gradients",
		"--method pairs --compress int8":        "pairs exchange models as they are",
		"--method streaming --sync-every 2":     "4 parts in 2 steps",
		"--method localsgd --sync-every 2 --xx": "--xx",
	} {
		if _, err := parse(strings.Fields(flags), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", flags, err, want)
		}
	}
}

// TestMethods trains by each: train sees to it that all ranks end with one model, which
// has learnt what it learns with DDP, give or take.
func TestMethods(t *testing.T) {
	data := load(t)
	flags := Training{Net: netConvNet, Steps: 24, BatchSize: new(8), NoDropout: true}
	plain := train(t, 3, data, flags)[0].last
	for _, name := range local.Names() {
		flags.Syncing = Syncing{Method: name, SyncEvery: 5}
		last := train(t, 3, data, flags)[0].last
		if last.hash == plain.hash {
			t.Errorf("%s: to the bit what DDP is", name)
		}
		if !(last.loss < plain.loss*1.5) {
			t.Errorf("%s: a loss of %v, %v with DDP", name, last.loss, plain.loss)
		}
	}
	flags.Syncing, flags.Compression = Syncing{Method: "diloco", SyncEvery: 5}, Compression{"int4"}
	if last := train(t, 2, data, flags)[0].last; !(last.loss < plain.loss*1.5) {
		t.Errorf("diloco in four bits: a loss of %v, %v with DDP", last.loss, plain.loss)
	}
}

// TestMethodsAgree starts one rank with other steps between synchronisations.
func TestMethodsAgree(t *testing.T) {
	_, errs := everyRank(t, 2, load(t), func(rank int) plan {
		return (&Training{Net: netConvNet, Syncing: Syncing{"diloco", 5 + rank}}).plan(2, 2)
	}, func(r *training, w *memnet.World) error { return whole(t.Context(), r, w) })
	for rank, want := range []string{"with --sync-every 6, this rank with --sync-every 5", "with --sync-every 5, this rank with --sync-every 6"} {
		if err := errs[rank]; exitStatus(err) != statusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want status 2 and %q", rank, err, want)
		}
	}
}

// TestMethodGoesOn loses a peer of three in the middle of rounds, and lets it in again.
func TestMethodGoesOn(t *testing.T) {
	const n = 1024
	f := newFleet(t, 3, "--transport", "tcp", "--min", "2", "--data", writeSomeDigits(t, n, 50), "--epochs", manyEpochs, "--threads", "1", "--no-dropout",
		"--method", "diloco", "--sync-every", "5", "--compress", "int8")
	f.startAll()
	f.train("at first", time.Time{})
	f.kill(0)
	for _, i := range []int{1, 2} {
		inTime(t, soon, "a step in a world of two", func() bool {
			return f.has(i, func(e told) bool { return e.Event == "resumed" && e.World == 2 })
		})
	}
	f.start(0)
	f.train("with the lost one", time.Now())
	f.interrupt()
	f.audit(n, 1, f.last())
}
