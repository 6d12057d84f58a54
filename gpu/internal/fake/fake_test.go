package fake

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// source is a folder with a library that compiles and one that does not.
func source(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"good.c": "int unused;\n", "bad.c": "no C\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// tests are some that end with a status.
type tests int

func (n tests) Run() int { return int(n) }

// TestBuild builds what can be built, leaves nothing of what cannot, and finds no function in a
// library that has none.
func TestBuild(t *testing.T) {
	const variable = "PEERMESH_TEST_FAKE"
	folder, temporary := source(t), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv(variable, "")
	remove, err := Build(folder, map[string]string{"good": variable})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	path := os.Getenv(variable)
	_, e1 := Tell(path, "fake_none")
	_, e2 := Tell(path+".gone", "fake_none")
	_, e3 := Alive(path)
	if e1 == nil || e2 == nil || e3 == nil {
		t.Errorf("a function that is not there: %v, %v, %v", e1, e2, e3)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	for name, to := range map[string]string{"bad": variable, "none": variable, "good": ""} { // no variable has no name
		if _, err := Build(folder, map[string]string{name: to}); err == nil {
			t.Errorf("built %s for %q", name, to)
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(temporary, "none"))
	if _, err := Build(folder, map[string]string{"good": variable}); err == nil {
		t.Error("built in a folder that is not there")
	}
}

// TestMainFake runs tests with libraries, without, and with ones that do not compile, and says
// what has not ended.
func TestMainFake(t *testing.T) {
	const variable = "PEERMESH_TEST_FAKE"
	folder := source(t)
	t.Setenv(variable, "")
	ended := func() error { return nil }
	faked := false
	good := map[string]string{"good": variable}
	if code := Main(tests(3), folder, good, &faked, ended); code != 3 {
		t.Errorf("tests that fail: %d", code)
	}
	if faked {
		if code := Main(tests(0), folder, good, &faked, func() error { return errors.New("one goroutine") }); code != 1 {
			t.Errorf("something is left: %d", code)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("tests without what they need")
				}
			}()
			Main(tests(0), folder, map[string]string{"bad": variable}, &faked, ended)
		}()
	}
	t.Setenv("PATH", "")
	faked = false
	if code := Main(tests(0), folder, good, &faked, ended); code != 0 || faked {
		t.Errorf("without a compiler: %d, %v", code, faked)
	}
}
