package watch

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed page
var files embed.FS

const (
	// Interval is between two states of the page.
	Interval = 500 * time.Millisecond
	// maxPages bounds the pages that are open at once.
	maxPages = 32
	// headTime bounds the reading of a request, writeTime the writing of a state, and
	// closeTime the end of what is under way when the server closes.
	headTime, writeTime, closeTime = 5 * time.Second, 5 * time.Second, time.Second
	// maxHead bounds a request's head.
	maxHead = 16 << 10
)

// Options are what a Server is told besides its Board.
type Options struct {
	Addr  string // host and port; without a host it is loopback
	Pprof bool   // serve /debug/pprof, too
}

// A Server shows a Board to browsers and to Prometheus.
type Server struct {
	board  *Board
	http   *http.Server
	addr   net.Addr
	stop   context.CancelFunc // of the pages' streams
	tasks  sync.WaitGroup
	failed error

	mu     sync.Mutex
	scribe scribe
	pages  map[*page]bool
}

// A page that is open takes states from one channel and gives their memory back by the
// other. Two are all that it needs: the one that it writes, and the newest.
type page struct{ fresh, spent chan []byte }

// Listen opens the address and serves the Board until Close.
func Listen(b *Board, o Options) (*Server, error) {
	addr, err := Address(o.Addr)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{board: b, addr: l.Addr(), stop: stop, pages: make(map[*page]bool)}
	s.http = &http.Server{Handler: guarded(s.routes(o.Pprof)), ReadHeaderTimeout: headTime, MaxHeaderBytes: maxHead,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	s.tasks.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed = err
		}
	})
	s.tasks.Go(func() { s.loop(ctx) })
	return s, nil
}

// Address is the address that is meant: loopback unless it names a host.
func Address(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("watch: %q is not an address: want a port as in :8080, or a host and a port", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// URL is where the page is.
func (s *Server) URL() string { return "http://" + s.addr.String() + "/" }

// Close ends all pages and waits for them.
func (s *Server) Close() error {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.tasks.Wait()
	return errors.Join(err, s.failed)
}

func (s *Server) routes(profile bool) http.Handler {
	mux := http.NewServeMux()
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /state", s.state)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(s.board), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	if profile {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// guarded keeps other sites' pages out: the page needs nothing from elsewhere, and a
// name that resolves to this machine for another site's sake is not ours to answer.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && !named(r.Host, local) {
			http.Error(w, "this peer is reached by its address, or as localhost", http.StatusMisdirectedRequest)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// named reports whether a request's host is what a person or a scraper would call a
// server there: on loopback only an IP address or localhost is, which spoils DNS
// rebinding; elsewhere any name may be.
func named(host string, local net.Addr) bool {
	tcp, ok := local.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return true
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return host == "localhost" || net.ParseIP(host) != nil
}

// state answers with the State as it is now.
func (s *Server) state(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(s.snapshot()) // who asked is gone
}

// loop makes a state for all pages at once, as long as there are any.
func (s *Server) loop(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.publish()
		}
	}
}

// publish gives every page the newest state. One that has not taken the last yet has
// this one instead.
func (s *Server) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pages) == 0 {
		return
	}
	s.board.Ask()
	text := s.scribe.write(s.board)
	for p := range s.pages {
		var room []byte
		select {
		case room = <-p.fresh:
		default:
			select {
			case room = <-p.spent:
			default: // it writes the only one that there is
			}
		}
		p.fresh <- append(room[:0], text...)
	}
}

// snapshot has the others report, for the next one, and is the State as it is now.
func (s *Server) snapshot() []byte {
	s.board.Ask()
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.scribe.write(s.board))
}

// enter makes room for a page.
func (s *Server) enter() (p *page, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pages) >= maxPages {
		return nil, false
	}
	p = &page{make(chan []byte, 1), make(chan []byte, 2)}
	s.pages[p] = true
	return p, true
}

func (s *Server) exit(p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, p)
}

// events streams states as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	p, ok := s.enter()
	if !ok {
		http.Error(w, fmt.Sprintf("%d pages are open, which is all that there may be", maxPages), http.StatusServiceUnavailable)
		return
	}
	defer s.exit(p)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	write := func(format string, args ...any) bool {
		if err := out.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return false
		}
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && out.Flush() == nil
	}
	if !write("retry: 1000\ndata: %s\n\n", s.snapshot()) {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case text := <-p.fresh:
			if !write("data: %s\n\n", text) {
				return
			}
			p.spent <- text
		}
	}
}
