package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// crewIDs are as those of peers, of a crew of three.
var crewIDs = []string{"12D3KooWa", "12D3KooWb", "12D3KooWc"}

// by1 is the last line of a child whose world the middle one of them has ended.
const by1 = "peer: mesh: world 1 ended: rank 1 (12D3KooWb): boom"

// TestCulprit is about who is told to have failed first: by order of their ends, and what
// they have said.
func TestCulprit(t *testing.T) {
	const (
		by2   = "peer: mesh: world 1 ended: rank 2 (12D3KooWc): boom"
		by0   = "ops: barrier #3: rank 0 gave up: boom (rank 0 is 12D3KooWa)"
		by9   = "peer: mesh: world 1 ended: rank 9 (12D3KooWother): boom"
		deep  = "peer: mesh: world 1 ended: rank 0 (12D3KooWa): mesh: world 1 ended: rank 1 (12D3KooWb): boom"
		turns = "peer: mesh: refused by 12D3KooWb: its terms are others"
	)
	for _, c := range []struct {
		name string
		ends []int // the children that have failed, in this order
		said map[int]string
		want int
	}{
		{"nobody named", []int{0, 1}, map[int]string{0: "boom", 1: ""}, 0},
		{"another", []int{0, 1}, map[int]string{0: by1, 1: "boom"}, 1},
		{"another that names itself", []int{2, 0, 1}, map[int]string{0: by1, 1: by1, 2: by1}, 1},
		{"itself", []int{1, 0}, map[int]string{0: by1, 1: by1}, 1},
		{"one that has not failed", []int{0, 2}, map[int]string{0: by1, 2: by1}, 0},
		{"one of another machine", []int{0, 1}, map[int]string{0: by9, 1: by9}, 0},
		{"one after the other", []int{0, 1, 2}, map[int]string{0: by1, 1: by2, 2: "boom"}, 2},
		{"each other", []int{1, 0}, map[int]string{0: by1, 1: by0}, 1},
		{"by an aborted operation", []int{2, 0}, map[int]string{2: by0, 0: "boom"}, 0},
		{"the one within", []int{2, 0, 1}, map[int]string{2: deep, 0: by1, 1: "boom"}, 1},
		{"one that refuses", []int{0, 1}, map[int]string{0: turns, 1: "boom"}, 0},
	} {
		crew := &crew{first: 4, ids: crewIDs, said: make(map[int]func() string)}
		failures := make(map[int]*childError)
		for _, child := range c.ends {
			crew.said[child] = func() string { return c.said[child] }
			failures[child] = &childError{rank: 4 + child}
		}
		if got := crew.culprit(failures[c.ends[0]], failures); got != error(failures[c.want]) {
			t.Errorf("%s: got %v, want child %d", c.name, got, c.want)
		}
		if got := crew.culprit(io.EOF, failures); got != io.EOF {
			t.Errorf("%s: %v in place of what is no child's failure", c.name, got)
		}
	}
	silent := &crew{}
	if failure := (&childError{rank: 1}); silent.culprit(failure, map[int]*childError{1: failure}) != error(failure) {
		t.Error("a crew that is not listened to does not tell of its first failure")
	}
}

// TestCrewNamesTheCulprit has a child end before the one whose error it tells of, which
// waits until all know.
func TestCrewNamesTheCulprit(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(r)
	l := &launch{crew: crew{ids: crewIDs, said: make(map[int]func() string)}}
	l.onFailure = func() { closeAll(w) }
	p, con := &process{ctx: t.Context(), stdout: io.Discard, stderr: io.Discard}, new(console)
	for rank, script := range []string{`echo "` + by1 + `" >&2; exit 5`, `read x; echo boom >&2; exit 7`} {
		cmd := exec.Command("sh", "-c", script)
		if err := l.attach(cmd, con, p, rank, false, Placement{}); err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = r
		if err := l.enlist(rank, cmd); err != nil {
			t.Fatal(err)
		}
	}
	err = l.wait(t.Context())
	if failure, ok := errors.AsType[*childError](err); !ok || failure.rank != 1 || exitStatus(err) != 7 {
		t.Errorf("%v with status %d, want rank 1 with 7", err, exitStatus(err))
	}
}

// TestCrewSparesTheKilled has a child not end that another names: it is killed for that,
// and is not told to have failed by it.
func TestCrewSparesTheKilled(t *testing.T) {
	past := exec.Command("true") // takes no signals any more
	if err := past.Run(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := &crew{ids: crewIDs, ends: make(chan end), children: []*exec.Cmd{past, past}}
		c.said = map[int]func() string{0: func() string { return by1 }, 1: func() string { return "" }}
		go func() {
			c.ends <- end{0, errors.New("exit status 5")}
			time.Sleep(meshPatience + time.Second)
			c.ends <- end{1, errors.New("signal: killed")}
		}()
		if failure, ok := errors.AsType[*childError](c.wait(t.Context())); !ok || failure.rank != 0 {
			t.Errorf("got %v, want rank 0", failure)
		}
	})
}

// TestLastWords keeps the last line, whether it has an end or not.
func TestLastWords(t *testing.T) {
	long := strings.Repeat("x", 3*maxWords) + "end"
	for text, want := range map[string]string{
		"": "", "one": "one", "one\n": "one", "one\ntwo": "two", "one\r\n\n": "one", "10 %\r20 %": "20 %",
		long: long[len(long)-len(long)%maxWords-maxWords:],
	} {
		var all, single lastWords
		n, err := all.Write([]byte(text))
		for i := range len(text) {
			_, _ = single.Write([]byte(text[i : i+1]))
		}
		if n != len(text) || err != nil || all.said() != want || single.said() != want {
			t.Errorf("%.20q: %d, %v, %.20q and %.20q; want %.20q", text, n, err, all.said(), single.said(), want)
		}
		file := filepath.Join(t.TempDir(), "rank-0.err")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastIn(file); !strings.HasSuffix(want, got) || len(got) < min(len(want), maxWords) {
			t.Errorf("%.20q in a file: %.20q, want %.20q", text, got, want)
		}
	}
	if got := lastIn(filepath.Join(t.TempDir(), "none")); got != "" {
		t.Errorf("no file: %q", got)
	}
}
