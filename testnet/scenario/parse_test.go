package scenario

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"peermesh/testnet/simlink"
)

const coasts = `
name two-coasts
nodes 4       # so many
seed 7
region east 0-1
region west 2-3
port 0-3 up=10MB down=100MB queue=64KiB
port 3 up=1MB
link * * latency=1ms
link east west latency=35ms jitter=2ms loss=0.001
link 3 0 rate=0.5MB
min 3
rounds 20
bytes 1MiB
pause 10ms
at 1.5s cut 0 2
at 2s heal 0 2
round 10 kill 3
at 20s restart 3
round 4 slow 1 up=1kB down=2kB
round 5 relink 1 2 latency=1s
round 6 freeze 1
at 6s thaw 1
`

func TestParse(t *testing.T) {
	s, err := Parse(coasts)
	if err != nil {
		t.Fatal(err)
	}
	if s.Nodes != 4 || s.Seed != 7 || s.Min != 3 || s.Rounds != 20 || s.Bytes != 1<<20 || s.Pause != 10*time.Millisecond || len(s.Faults) != 8 {
		t.Errorf("got %+v", s)
	}
	for _, c := range []struct {
		a, b int
		want simlink.Link
	}{
		{0, 1, simlink.Link{Latency: time.Millisecond}},
		{2, 1, simlink.Link{Latency: 35 * time.Millisecond, Jitter: 2 * time.Millisecond, Loss: 0.001}},
		{0, 3, simlink.Link{Rate: 5e5}},
	} {
		if got := s.link(c.a, c.b); got != c.want || s.link(c.b, c.a) != c.want {
			t.Errorf("%d to %d: %+v, want %+v", c.a, c.b, got, c.want)
		}
	}
	if got := s.port(3); got != (simlink.Port{Up: 1e6}) {
		t.Errorf("port 3: %+v", got)
	}
	if got := s.port(0); got != (simlink.Port{Up: 10e6, Down: 100e6, Queue: 64 << 10}) {
		t.Errorf("port 0: %+v", got)
	}
	again, err := Parse(s.String())
	if err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("%v: read again:\n%v\nof\n%v", err, again, s)
	}
}

// Every error names the line, and what is wrong with it.
func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "how many nodes",
		"rounds 3\nnodes 2":                   "line 1: \"rounds\" before",
		"nodes 0":                             "line 1: \"0\": want a whole number from 1",
		"nodes 2\nnodes 3":                    "line 2: the nodes are counted twice",
		"nodes 2\n\nfly 1":                    "line 3: \"fly\"",
		"nodes 2\nmin 3":                      "at least 3 of 2",
		"nodes 2\nregion 1 0-1":               "line 2: region \"1\"",
		"nodes 2\nregion a 0-2":               "node 2 of 2",
		"nodes 3\nregion a 0-1\nregion b 1-2": "line 3: region b shares",
		"nodes 2\nport 0 up=-1":               "line 2: \"-1\"",
		"nodes 2\nport 0 up=1 up=2":           "comes twice",
		"nodes 2\nport 0":                     "want: port",
		"nodes 2\nlink 0 mars latency=1s":     "\"mars\" is neither",
		"nodes 2\nlink 0 1 loss=1":            "want a share",
		"nodes 2\nlink 0 1 latency=-1s":       "want a time",
		"nodes 2\nat 1s explode 1":            "\"explode\"",
		"nodes 2\nat 1s kill 2":               "\"2\": want a whole number from 0 to 1",
		"nodes 2\nat 1s cut 1 1":              "with itself",
		"nodes 2\nat 1s cut 1":                "cut needs 2 nodes",
		"nodes 2\nat 1s kill 1 0":             "\"0\" after the nodes of kill",
		"nodes 2\nround 0 kill 1":             "\"0\": want",
		"nodes 2\nbytes 1.5":                  "want whole bytes",
		"nodes 2\nbytes 1TB":                  "want whole bytes",
		"nodes 2\nseed x":                     "line 2",
		"name a b":                            "want one",
		"name ü":                              "want ASCII",
		strings.Repeat("#", maxText+1):        "want at most",
	} {
		_, err := Parse(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// What can be read can be written and read as the same.
func FuzzParse(f *testing.F) {
	f.Add(coasts)
	f.Add("nodes 1")
	f.Add("nodes 2\nlink * * rate=1e-7B\nlink 0 * loss=1e-9\nport 0-1 queue=3")
	if text, err := os.ReadFile("testdata/partition.txt"); err == nil {
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%v: read again:\n%v\nof\n%v", err, again, s)
		}
	})
}
