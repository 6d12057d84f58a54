package logger

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// CRC-32C has RFC 3720's check value, and its mask is what testdata/events.py makes of it.
func TestMasked(t *testing.T) {
	if crc := crc32.Checksum([]byte("123456789"), castagnoli); crc != 0xe3069283 {
		t.Errorf("%#x", crc)
	}
	if got := masked([]byte("123456789")); got != 0xc78ab0e5 {
		t.Errorf("%#x", got)
	}
}

// Events have these bytes, written down by hand from event.proto, summary.proto and the
// encoding's description.
func TestEventBytes(t *testing.T) {
	for _, c := range []struct {
		what, want string
		got        []byte
	}{
		{"version", "09 000000000000f83f" + "1a 0d 627261696e2e4576656e743a32", versionEvent(1.5)},
		{"scalars", "09 000000000000f83f" + "10 ac02" + "2a 14" + // wall time, step 300, a summary of 20 bytes
			"0a 08 0a01 61 15 0000c03f" + // a is 1.5
			"0a 08 0a01 62 15 000000c0", // b is -2
			scalarEvent(1.5, 300, map[string]float64{"b": -2, "a": 1.5})},
		{"step 0", "09 000000000000f83f" + "2a 0a" + "0a 08 0a01 61 15 0000c07f", scalarEvent(1.5, 0, map[string]float64{"a": math.NaN()})},
		{"a record", "0100000000000000" + "0175de41" + "ff" + "d8e884a2", appendRecord(nil, []byte{0xff})},
	} {
		if got := hex.EncodeToString(c.got); got != strings.ReplaceAll(c.want, " ", "") {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// A file has one version event and then a step's scalars each, as a reader finds that
// knows the format's description and none of this code.
func TestTensorBoard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "1")
	names := make(map[string]bool)
	for range 3 { // in one second
		b, err := OpenTensorBoard(dir)
		if err != nil {
			t.Fatal(err)
		}
		names[b.Name()] = true
		for step, m := range []map[string]float64{{"train/loss": 0.5}, {"train/loss": 0.25, "val/größe": 1e6}, {"x": -1}} {
			if err := b.Log(int64(step)*100_000_000_000, m); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := b.Log(1, nil); err == nil {
			t.Error("a closed file takes an event")
		}
		if err := b.Close(); err == nil {
			t.Error("closed twice without an error")
		}
		if len(names) < 3 {
			continue
		}
		got := python(t, b.Name())
		want := `{"version": "brain.Event:2"}
{"step": 0, "values": {"train/loss": 0.5}}
{"step": 100000000000, "values": {"train/loss": 0.25, "val/gr\u00f6\u00dfe": 1000000.0}}
{"step": 200000000000, "values": {"x": -1.0}}
`
		if got != want {
			t.Errorf("read:\n%s", got)
		}
	}
	if len(names) != 3 {
		t.Errorf("three runs have %d files", len(names))
	}
	if _, err := OpenTensorBoard(filepath.Join(b0(t), "below")); err == nil {
		t.Error("a folder below a file")
	}
}

// b0 is an empty file.
func b0(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// python reads an event file with testdata/events.py.
func python(t *testing.T, name string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	out, err := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "events.py"), name).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v\n%s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestConsole(t *testing.T) {
	var b bytes.Buffer
	c := &Console{Out: &b}
	if err := c.Log(50, map[string]float64{"val/loss": 1. / 3, "train/loss": 2}); err != nil {
		t.Fatal(err)
	}
	if want := "step 50 train/loss 2 val/loss 0.333333\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if err := (&Console{Out: broken{}}).Log(1, nil); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

func TestJSONLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose time begins with 2000
		var b bytes.Buffer
		j := &JSONLines{Out: &b}
		if err := j.Log(50, map[string]float64{"val/loss": 0.25, "nan": math.NaN(), "inf": math.Inf(-1)}); err != nil {
			t.Fatal(err)
		}
		if want := `{"inf":"-Inf","nan":"NaN","step":50,"time":946684800,"val/loss":0.25}` + "\n"; b.String() != want {
			t.Errorf("%s, want %s", b.String(), want)
		}
		if !json.Valid(b.Bytes()) {
			t.Error("no JSON")
		}
	})
	if err := (&JSONLines{Out: broken{}}).Log(1, nil); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

var errBroken = errors.New("the pipe is broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.csv")
	log := func(step int64, metrics map[string]float64) {
		t.Helper()
		c, err := OpenCSV(path) // each time anew, as runs that resume do
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Log(step, metrics), c.Log(step+1, metrics), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want string) {
		t.Helper()
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
	log(1, map[string]float64{"b": 0.1, `a, "quoted"`: 2})
	is("step,\"a, \"\"quoted\"\"\",b\n1,2,0.1\n2,2,0.1\n")
	log(3, map[string]float64{"b": math.Inf(1), "new": 1e-300})
	is("step,\"a, \"\"quoted\"\"\",b,new\n1,2,0.1,\n2,2,0.1,\n3,,+Inf,1e-300\n4,,+Inf,1e-300\n")

	torn, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = torn.WriteString("5,,0.12,0.")
	if err := errors.Join(err, torn.Close()); err != nil {
		t.Fatal(err)
	}
	log(5, map[string]float64{"b": 3})
	is("step,\"a, \"\"quoted\"\"\",b,new\n1,2,0.1,\n2,2,0.1,\n3,,+Inf,1e-300\n4,,+Inf,1e-300\n5,,3,\n6,,3,\n")
}

func TestCSVRefuses(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.csv")
	if err := os.WriteFile(other, []byte("name,age\nx,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other, dir, filepath.Join(dir, "nowhere", "x.csv")} {
		if c, err := OpenCSV(path); err == nil {
			t.Errorf("%s is opened: %v", path, c.Close())
		}
	}
	if p, err := os.ReadFile(other); err != nil || !slices.Equal(p, []byte("name,age\nx,1\n")) {
		t.Errorf("another's file is %q, %v", p, err)
	}
	c, err := OpenCSV(filepath.Join(dir, "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	many := make(map[string]float64)
	for i := range MaxColumns {
		many[strings.Repeat("x", i+1)] = 1
	}
	for _, m := range []map[string]float64{{"step": 1}, many} {
		if err := c.Log(1, m); err == nil {
			t.Errorf("%d metrics are taken", len(m))
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Log(1, nil); err == nil {
		t.Error("a closed file takes a row")
	}
}

// Whatever a file is, what is read of it is a table, and written again reads the same.
func FuzzTable(f *testing.F) {
	for _, s := range []string{"", "step\n", "step,a\n1,2\n", "step,a\n1,2", "step,a\n1\n2,3\n", "step,\"a\nb\"\n1,\"2\n", "x\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		rows, err := readTable(p)
		if err != nil || len(rows) == 0 {
			return
		}
		for _, row := range rows {
			if len(row) != len(rows[0]) {
				t.Fatalf("%q", rows)
			}
		}
		path := filepath.Join(t.TempDir(), "x.csv")
		if err := os.WriteFile(path, p, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := OpenCSV(path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.read()
		if err != nil || c.Close() != nil || len(again) != len(rows) || !slices.EqualFunc(again, rows, slices.Equal) {
			t.Fatalf("%q became %q, %v", rows, again, err)
		}
	})
}
