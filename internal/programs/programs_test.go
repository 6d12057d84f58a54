package programs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const tutorial = "peermesh/examples/tutorial"

// TestPut builds a program.
func TestPut(t *testing.T) {
	t.Setenv(Env, "")
	dir := t.TempDir()
	if err := Put(t.Context(), dir, "peermesh/doc/pictures"); err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), filepath.Join(dir, "pictures"), "-no-such-flag").Run(); !errors.As(err, new(*exec.ExitError)) {
		t.Errorf("it does not run: %v", err)
	}
	if err := Put(t.Context(), dir, "peermesh/no/such/program"); err == nil {
		t.Error("what is no package was built")
	}
}

// TestPutBuilt takes programs that are there already, and says which is not.
func TestPutBuilt(t *testing.T) {
	built, dir := t.TempDir(), t.TempDir()
	t.Setenv(Env, built)
	if err := os.WriteFile(filepath.Join(built, "tutorial"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Put(t.Context(), dir, tutorial); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "tutorial")); err != nil || string(text) != "#!/bin/sh\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := Put(t.Context(), dir, tutorial); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v", err)
	}
	if err := Put(t.Context(), dir, "peermesh/cmd/peer"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that was not built: %v", err)
	}
}
