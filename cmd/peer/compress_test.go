package main

import (
	"reflect"
	"strings"
	"testing"

	"peermesh/testnet/memnet"
	"peermesh/trainer/compress"
)

// TestCompressNames: the flag has all that package compress has, and nothing else.
func TestCompressNames(t *testing.T) {
	field, _ := reflect.TypeFor[Compression]().FieldByName("Compress")
	if want := noCompression + "," + strings.Join(compress.Names(), ","); len(field.Tag.Get("enum")) != len(want) {
		t.Errorf("--compress is one of %s, want %s in any order", field.Tag.Get("enum"), want)
	}
	for _, name := range compress.Names() {
		cmd, err := parse([]string{"--compress", name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(cmd.(*trainCmd).shared(), " "); got != "--compress "+name {
			t.Errorf("others are to be started with %q", got)
		}
	}
	for flags, want := range map[string]string{
		"--compress zip":                    "--compress",
		"--compress int8 --net tutorial":    "--compress is for --net convnet",
		"--compress none --net tutorial -x": "-x",
	} {
		if _, err := parse(strings.Fields(flags), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", flags, err, want)
		}
	}
}

// TestCompressed trains with one of each kind: train sees to it that all ranks end with
// the same.
func TestCompressed(t *testing.T) {
	data := load(t)
	plain := train(t, 2, data, Training{Net: netConvNet, Steps: 12, BatchSize: new(8), NoDropout: true})[0].last
	for _, name := range []string{"int8", "topk", "powersgd"} {
		flags := Training{Net: netConvNet, Steps: 12, BatchSize: new(8), NoDropout: true, Compression: Compression{name}}
		last := train(t, 2, data, flags)[0].last
		if last.hash == plain.hash {
			t.Errorf("%s: to the bit what it is without", name)
		}
		if !(last.loss < plain.loss*1.5) {
			t.Errorf("%s: a loss of %v, %v without", name, last.loss, plain.loss)
		}
	}
}

// TestCompressAgree starts one rank with another compression.
func TestCompressAgree(t *testing.T) {
	_, errs := everyRank(t, 2, load(t), func(rank int) plan {
		return (&Training{Net: netConvNet, Compression: Compression{[]string{"int8", "int4"}[rank]}}).plan(2, 2)
	}, func(r *training, w *memnet.World) error { return whole(t.Context(), r, w) })
	for rank, want := range []string{"with --compress int4, this rank with --compress int8", "with --compress int8, this rank with --compress int4"} {
		if err := errs[rank]; exitStatus(err) != statusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want status 2 and %q", rank, err, want)
		}
	}
}
