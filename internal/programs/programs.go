// Package programs has the module's programs for tests that run them, as people would:
// without the race detector.
//
// A program takes seconds to link. Whoever runs the tests of many packages builds all of
// them once, and says where they are:
//
//	go build -o bin/ ./...
//	PEERMESH_PROGRAMS=$PWD/bin go test ./...
package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// Env names the folder of programs that have been built; unset or empty: none has.
const Env = "PEERMESH_PROGRAMS"

// Put puts the programs of some packages, such as "peermesh/cmd/peer", into a folder that
// there is. They are links to those of $PEERMESH_PROGRAMS, or else built, which takes
// minutes if nothing is in go's cache: ctx bounds it.
func Put(ctx context.Context, folder string, packages ...string) error {
	built := os.Getenv(Env)
	if built == "" {
		args := append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", folder + string(filepath.Separator)}, packages...)
		if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("programs: %w\n%s", err, out)
		}
		return nil
	}
	for _, p := range packages {
		program := filepath.Join(built, path.Base(p))
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("programs: $%s: %w", Env, err)
		}
		if err := os.Symlink(program, filepath.Join(folder, path.Base(p))); err != nil {
			return fmt.Errorf("programs: %w", err)
		}
	}
	return nil
}
