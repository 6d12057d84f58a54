package watch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// get is an answer's status and body.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	p, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(p)
}

func TestServer(t *testing.T) {
	board, _ := fakeBoard(4)
	plain, profiled := serve(t, board, Options{}), serve(t, board, Options{Pprof: true})
	for path, want := range map[string]string{
		"": "<!doctype html>", "page.js": "EventSource", "style.css": "prefers-color-scheme", "icon.svg": "<svg",
		"healthz": "ok", "state": `"title":"convnet"`, "metrics": "peermesh_world_ranks 4",
	} {
		if status, body := get(t, plain.URL()+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("/%s: %d, %.80q", path, status, body)
		}
	}
	if status, _ := get(t, plain.URL()+"debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("profiles without being asked for: %d", status)
	}
	if status, body := get(t, profiled.URL()+"debug/pprof/"); status != http.StatusOK || !strings.Contains(body, "goroutine") {
		t.Errorf("no profiles: %d", status)
	}
}

// The page is of one piece: it names nothing that is elsewhere.
func TestPageNeedsNothingElse(t *testing.T) {
	board, _ := fakeBoard(2)
	s := serve(t, board, Options{})
	away := regexp.MustCompile(`(src|href|import|url)[^\n]{0,20}(https?:)?//`)
	for _, file := range []string{"", "page.js", "map.js", "curve.js", "text.js", "style.css"} {
		if _, body := get(t, s.URL()+file); away.MatchString(body) {
			t.Errorf("/%s leads away: %s", file, away.FindString(body))
		}
	}
	r, err := http.Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if policy := r.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'self'") {
		t.Errorf("policy %q", policy)
	}
}

func TestAddress(t *testing.T) {
	for addr, want := range map[string]string{
		":8080": "127.0.0.1:8080", ":0": "127.0.0.1:0", "0.0.0.0:80": "0.0.0.0:80", "[::1]:80": "[::1]:80", "example.org:80": "example.org:80",
		"8080": "", "": "", "http://localhost:80": "",
	} {
		if got, err := Address(addr); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", addr, got, err, want)
		}
	}
	if _, err := Listen(New(Config{}), Options{Addr: "8080"}); err == nil {
		t.Error("listens on no address")
	}
}

// A name of another site that leads here is not answered.
func TestOtherNamesAreRefused(t *testing.T) {
	board, _ := fakeBoard(2)
	s := serve(t, board, Options{})
	for host, want := range map[string]int{"evil.example": http.StatusMisdirectedRequest, "evil.example:80": http.StatusMisdirectedRequest,
		"localhost": http.StatusOK, "127.0.0.1:1": http.StatusOK, "[::1]:1": http.StatusOK} {
		r, err := http.NewRequest("GET", s.URL()+"state", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, answer.StatusCode, want)
		}
	}
}

func TestEventsStream(t *testing.T) {
	board, w := fakeBoard(4)
	s := serve(t, board, Options{})
	r, err := http.Get(s.URL() + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("content type %q", kind)
	}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for seen := 0; seen < 3 && lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var state State
		if err := json.Unmarshal([]byte(data), &state); err != nil || state.World.Size != 4 {
			t.Fatalf("%v in %.80q", err, data)
		}
		seen++
	}
	if lines.Err() != nil || w.questions() < 6 {
		t.Errorf("%v; the others were asked %d times", lines.Err(), w.questions())
	}
}

func TestPagesAreBounded(t *testing.T) {
	board, _ := fakeBoard(2)
	s := serve(t, board, Options{})
	var open []io.Closer
	for range maxPages {
		r, err := http.Get(s.URL() + "events")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(r.Status, err)
		}
		open = append(open, r.Body)
	}
	if status, body := get(t, s.URL()+"events"); status != http.StatusServiceUnavailable {
		t.Errorf("one too many: %d, %s", status, body)
	}
	for _, page := range open {
		page.Close()
	}
}

// The dashboard and its page ask for metrics that are there, and for labels that they have.
func TestDashboardMatchesMetrics(t *testing.T) {
	board, _ := fakeBoard(4)
	s := serve(t, board, Options{})
	get(t, s.URL()+"metrics") // which asks the others
	_, exported := get(t, s.URL()+"metrics")
	const folder = "../../../../examples/deploy/grafana/"
	for _, file := range []string{"peermesh.json", "README.md"} {
		text, err := os.ReadFile(folder + file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`peermesh_[a-z_]+`).FindAllString(string(text), -1)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !strings.Contains(exported, "\n"+name+" ") && !strings.Contains(exported, "\n"+name+"{") && !strings.Contains(exported, "TYPE "+name+" histogram") {
				t.Errorf("%s asks for %s", file, name)
			}
		}
	}
	text, _ := os.ReadFile(folder + "peermesh.json")
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || len(dashboard.Panels) < 10 {
		t.Fatalf("%d panels, %v", len(dashboard.Panels), err)
	}
	by := regexp.MustCompile(`by \(([a-z, ]+)\) \(.*?(peermesh_[a-z_]+)`)
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			m := by.FindStringSubmatch(target.Expr)
			if m == nil {
				continue
			}
			for label := range strings.SplitSeq(m[1], ", ") {
				if label != "instance" && !regexp.MustCompile(`\n`+m[2]+`\{[^}]*\b`+label+`="`).MatchString(exported) {
					t.Errorf("%s has no label %s", m[2], label)
				}
			}
		}
	}
	for _, m := range metrics {
		readme, _ := os.ReadFile(folder + "README.md")
		if !strings.Contains(string(readme), prefix+m.name) {
			t.Errorf("the page has no word of %s", prefix+m.name)
		}
	}
}

func ExampleListen() {
	board := New(Config{Title: "digits", Wanted: 4})
	s, err := Listen(board, Options{Addr: ":0"}) // on loopback, any port that is free
	if err != nil {
		fmt.Println(err)
		return
	}
	board.Began("digits", 1, 100)
	board.Step(1, 1, 128, 2.31)
	r, err := http.Get(s.URL() + "healthz")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, _ := io.ReadAll(r.Body)
	r.Body.Close()
	fmt.Print(string(p))
	fmt.Println(s.Close())
	// Output:
	// ok
	// <nil>
}
