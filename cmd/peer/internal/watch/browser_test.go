package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// serve serves a board until the end of the test.
func serve(t testing.TB, b *Board, o Options) *Server {
	t.Helper()
	if o.Addr == "" {
		o.Addr = ":0"
	}
	s, err := Listen(b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// PEERMESH_PICTURES names a folder to put pictures of the page in.
func keepPicture(t *testing.T, b *browser, name string) {
	if dir := os.Getenv("PEERMESH_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), b.picture(), 0o666); err != nil {
			t.Error(err)
		}
	}
}

func TestPageInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	b := openBrowser(t, 1400, 1180)
	for _, size := range []int{4, 64} {
		board, _ := fakeBoard(size)
		s := serve(t, board, Options{})
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%d ranks, %s", size, scheme), func(t *testing.T) {
				b.t = t
				b.open(s.URL(), scheme)
				b.wait("three updates", "return document.body.dataset.updates >= 3")
				keepPicture(t, b, fmt.Sprintf("%d-%s", size, scheme))
				for _, c := range b.complaints() {
					t.Errorf("on the console: %s", c)
				}
			})
		}
		b.t = t
	}
}
