package mnist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// world is a fetcher's outside: a cache, a go command and two mirrors, of
// which the second is better than the first.
type world struct {
	fetcher
	dir   string // what fill must return
	asked []string
	mu    sync.Mutex
}

// newWorld makes one whose go command behaves as mode says; empty: there is none.
// The handlers serve the mirrors; none means a mirror that has nothing.
func newWorld(t *testing.T, mode string, handlers ...http.Handler) *world {
	t.Helper()
	root := t.TempDir()
	w := &world{dir: filepath.Join(root, "peermesh", "mnist")}
	w.fetcher = fetcher{
		pins:   pinned(tiny()),
		cache:  func() (string, error) { return root, nil },
		goTool: "/there/is/no/go",
	}
	if mode != "" {
		t.Setenv(fakeGo, mode)
		t.Setenv("GORACE", "atexit_sleep_ms=0") // else each such command takes a second to end
		w.goTool = os.Args[0]
	}
	if handlers == nil {
		handlers = []http.Handler{http.NotFoundHandler()}
	}
	mux := http.NewServeMux()
	for i, h := range handlers {
		prefix := fmt.Sprintf("/%d", i)
		mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.URL.Path)
		w.mu.Unlock()
		mux.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.client = server.Client()
	for i := range handlers {
		w.mirrors = append(w.mirrors, fmt.Sprintf("%s/%d/", server.URL, i))
	}
	return w
}

// serve is a mirror of some files.
func serve(files map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := files[path.Base(r.URL.Path)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(b) // its failure is the client's test
	})
}

// filled checks that the cache holds the files and nothing else.
func (w *world) filled(t *testing.T) {
	t.Helper()
	dir, err := w.fill(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if dir != w.dir {
		t.Errorf("filled %s, want %s", dir, w.dir)
	}
	if got := listing(t, dir); len(got) != len(w.pins) {
		t.Errorf("the cache holds %v", got)
	}
	for _, p := range w.pins {
		if b, err := os.ReadFile(filepath.Join(dir, p.name)); err != nil || !bytes.Equal(b, tiny()[p.name]) {
			t.Errorf("%s differs, %v", p.name, err)
		}
	}
}

// refused checks that nothing came in, and returns why.
func (w *world) refused(t *testing.T) string {
	t.Helper()
	_, err := w.fill(context.Background())
	if err == nil {
		t.Fatal("filled")
	}
	if got := listing(t, w.dir); len(got) > 0 {
		t.Errorf("the cache holds %v", got)
	}
	for _, want := range []string{"--data DIR", "MNIST_DIR", "go command", "mirror"} {
		if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "\n") {
			t.Errorf("%q, want one line with %q", text, want)
		}
	}
	return err.Error()
}

func goModule(t *testing.T, files map[string][]byte) string {
	dir := t.TempDir()
	folder(t, filepath.Join(dir, "data"), files)
	return "module " + dir
}

func TestFillFromTheModule(t *testing.T) {
	w := newWorld(t, goModule(t, tiny()))
	w.filled(t)
	w.filled(t)
	if len(w.asked) > 0 {
		t.Errorf("mirrors were asked for %v", w.asked)
	}
}

// A full cache needs neither a go command nor a network.
func TestFillOfAFullCache(t *testing.T) {
	w := newWorld(t, "")
	folder(t, w.dir, tiny())
	w.filled(t)
	if len(w.asked) > 0 {
		t.Errorf("mirrors were asked for %v", w.asked)
	}
}

func TestFillFromAMirror(t *testing.T) {
	for _, mode := range []string{"", "refused", "nonsense", "broken", goModule(t, nil)} {
		w := newWorld(t, mode, serve(tiny()))
		w.filled(t)
		if len(w.asked) != 4 {
			t.Errorf("go %q: asked for %v", mode, w.asked)
		}
	}
}

func TestFillFromTheSecondMirror(t *testing.T) {
	spoilt := tiny()
	spoilt["train-images-idx3-ubyte.gz"] = pack(images(13))                         // another file
	spoilt["train-labels-idx1-ubyte.gz"] = spoilt["train-labels-idx1-ubyte.gz"][1:] // short
	delete(spoilt, "t10k-labels-idx1-ubyte.gz")
	w := newWorld(t, "", serve(spoilt), serve(tiny()))
	w.filled(t)
	second := slices.DeleteFunc(w.asked, func(p string) bool { return strings.HasPrefix(p, "/0/") })
	if len(second) != 3 {
		t.Errorf("the second mirror was asked for %v", second)
	}
}

// What is damaged in the cache is fetched again, and only that.
func TestFillMends(t *testing.T) {
	w := newWorld(t, "", serve(tiny()))
	files := tiny()
	files["t10k-images-idx3-ubyte.gz"][20] ^= 1
	folder(t, w.dir, files)
	w.filled(t)
	if want := []string{"/0/t10k-images-idx3-ubyte.gz"}; !slices.Equal(w.asked, want) {
		t.Errorf("asked for %v, want %v", w.asked, want)
	}
}

func TestFillRefusesOtherBytes(t *testing.T) {
	endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return // the client hung up
			}
		}
	})
	other := tiny()
	for name, b := range other {
		other[name] = append(b, 0)
	}
	for name, c := range map[string]struct {
		mode   string
		mirror http.Handler
		want   []string
	}{
		"nothing":   {"", nil, []string{"no such file", "404"}},
		"other":     {goModule(t, other), serve(other), []string{"is not MNIST's: its SHA-256 begins"}},
		"endless":   {"refused", endless, []string{"module lookup disabled", "is not MNIST's"}},
		"broken go": {"broken", nil, []string{"exit status 2: go: broken éé", "…;"}},
		"nonsense":  {"nonsense", nil, []string{"not JSON"}},
	} {
		w := newWorld(t, c.mode)
		if c.mirror != nil {
			w = newWorld(t, c.mode, c.mirror)
		}
		text := w.refused(t)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q, want %q", name, text, want)
			}
		}
	}
}

func TestFillWithoutACache(t *testing.T) {
	w := newWorld(t, "", serve(tiny()))
	w.cache = func() (string, error) { return "", errors.New("no home") }
	if _, err := w.fill(context.Background()); err == nil || !strings.Contains(err.Error(), "no home") || !strings.Contains(err.Error(), "--data") {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.cache = func() (string, error) { return file, nil }
	if _, err := w.fill(context.Background()); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Error(err)
	}
}

// The ranks of a first run all find the cache empty.
func TestFillByFourAtOnce(t *testing.T) {
	gate := make(chan struct{}) // opens when all four have asked
	var all sync.WaitGroup
	all.Add(4)
	first := tiny()
	mirror := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "train-labels") { // the first of the pins
			all.Done()
			<-gate
		}
		serve(first).ServeHTTP(w, r)
	})
	w := newWorld(t, "", mirror)
	go func() { all.Wait(); close(gate) }()
	var ranks sync.WaitGroup
	for range 4 {
		ranks.Go(func() {
			if _, err := w.fill(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	ranks.Wait()
	w.filled(t)
}

func TestFillStopsInMidDownload(t *testing.T) {
	begun := make(chan struct{}, 1)
	w := newWorld(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("\x1f\x8b"))
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
	}), serve(tiny()))
	w.stops(t, begun)
	if len(w.asked) != 1 {
		t.Errorf("asked for %v", w.asked)
	}
}

func TestFillStopsTheGoCommand(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		if c, err := l.Accept(); err == nil {
			t.Cleanup(func() { c.Close() })
		}
	}()
	w := newWorld(t, "hang "+l.Addr().String(), serve(tiny()))
	w.stops(t, begun)
	if len(w.asked) > 0 {
		t.Errorf("asked for %v", w.asked)
	}
}

// stops cancels fill once it has begun, and checks that it leaves no trace.
func (w *world) stops(t *testing.T, begun <-chan struct{}) {
	t.Helper()
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { <-begun; cancel(interrupted) }()
	_, err := w.fill(ctx)
	if !errors.Is(err, interrupted) || !strings.HasPrefix(err.Error(), "mnist: ") {
		t.Errorf("%v, want %v", err, interrupted)
	}
	if got := listing(t, w.dir); len(got) > 0 {
		t.Errorf("the cache holds %v", got)
	}
}

func TestPublicMirrorsAreHTTPS(t *testing.T) {
	for _, m := range public().mirrors {
		if !strings.HasPrefix(m, "https://") || !strings.HasSuffix(m, "/") {
			t.Errorf("mirror %s", m)
		}
	}
}
