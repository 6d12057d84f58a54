// Package fake builds the libraries that stand in for a driver and for NCCL in tests, and
// speaks to them: they fail when they are told to, and say what is alive.
package fake

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"unsafe"
)

// Build compiles the libraries of a folder, of which libraries has the environment's
// variables that say where they are to be found, by their names, as in "cuda". It sets the
// variables, and returns what removes the libraries. Without a compiler, or where nothing
// could open them, it is ErrUnsupported.
func Build(folder string, libraries map[string]string) (remove func() error, err error) {
	if _, err := exec.LookPath("cc"); err != nil || !linkable {
		return nil, fmt.Errorf("%w: no fake libraries: loader %v, cc: %v", errors.ErrUnsupported, linkable, err)
	}
	to, err := os.MkdirTemp("", "peermesh-gpu")
	if err != nil {
		return nil, err
	}
	remove = func() error { return os.RemoveAll(to) }
	for name, variable := range libraries {
		path := filepath.Join(to, "lib"+name+".so")
		out, err := exec.Command("cc", "-Wall", "-Werror", "-O1", "-ffp-contract=off", "-fPIC", "-shared",
			"-fvisibility=hidden", "-o", path, filepath.Join(folder, name+".c"), "-lpthread", "-ldl", "-lm").CombinedOutput()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cc of %s: %w\n%s", name, err, out), remove())
		}
		if err := os.Setenv(variable, path); err != nil {
			return nil, errors.Join(err, remove())
		}
	}
	return remove, nil
}

// Main is a TestMain with the libraries of a folder, and faked set where there are any. Once
// the tests are over, left says what should have ended. It returns the exit status.
func Main(m interface{ Run() int }, folder string, libraries map[string]string, faked *bool, left func() error) int {
	remove, err := Build(folder, libraries)
	if errors.Is(err, errors.ErrUnsupported) {
		fmt.Println(err)
		return m.Run()
	}
	if err != nil {
		panic(err)
	}
	*faked = true
	code := m.Run()
	if err := errors.Join(remove(), left()); err != nil {
		fmt.Println(err)
		code = max(code, 1)
	}
	return code
}

// Tell calls a function of a library's that is for tests; see its source.
func Tell(library, function string, args ...uintptr) (int, error) {
	f, err := find(library, function)
	if err != nil {
		return 0, err
	}
	return int(int32(invoke(f, args...))), nil
}

// Fail has the nth call of a function from now on fail with a code.
func Fail(library, function string, nth, code int) error {
	name := append([]byte(function), 0)
	var pinner runtime.Pinner
	pinner.Pin(&name[0])
	defer pinner.Unpin()
	_, err := Tell(library, "fake_fail", uintptr(unsafe.Pointer(&name[0])), uintptr(nth), uintptr(code))
	return err
}

// Kinds are what the fake driver counts.
var Kinds = []string{"device memory", "pinned memory", "streams", "events", "modules", "contexts"}

// Alive is how many of each there are.
func Alive(library string) (n [6]int, err error) {
	for i := range n {
		if n[i], err = Tell(library, "fake_alive", uintptr(i)); err != nil {
			return n, err
		}
	}
	return n, nil
}
