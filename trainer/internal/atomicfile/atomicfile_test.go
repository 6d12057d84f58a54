package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteReplacesTheWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	for _, text := range []string{"a longer text than the next", "short", strings.Repeat("x", 3*buffer)} {
		err := Write(path, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Fatalf("the file has %d bytes, %v; want %d", len(got), err, len(text))
		}
	}
	alone(t, dir)
}

// A write that fails in the middle leaves the file of before, and nothing else.
func TestWriteThatFailsChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left")
	err := Write(path, func(w io.Writer) error {
		if _, err := w.Write(make([]byte, 2*buffer)); err != nil {
			return err
		}
		return full
	})
	if !errors.Is(err, full) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want %v with the path", err, full)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "before" {
		t.Errorf("the file is %q, %v", got, err)
	}
	alone(t, dir)
}

func TestWriteIntoNoFolder(t *testing.T) {
	err := Write(filepath.Join(t.TempDir(), "none", "model"), func(io.Writer) error { return nil })
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
}

// A folder in the way cannot be replaced, and is not.
func TestWriteOntoAFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	if err := os.MkdirAll(filepath.Join(path, "within"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, func(io.Writer) error { return nil }); err == nil {
		t.Error("a folder was replaced")
	}
	alone(t, dir)
}

// alone wants one name in the folder.
func alone(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("the folder has %v", entries)
	}
}
