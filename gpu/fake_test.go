package gpu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
)

// TestMain builds the two libraries that stand in for a driver and for NCCL, and
// has the package find them as it would find real ones.
func TestMain(m *testing.M) {
	if _, err := exec.LookPath("cc"); err != nil || !linkable {
		fmt.Printf("no fakes: loader %v, cc: %v\n", linkable, err)
		os.Exit(m.Run())
	}
	if os.Getenv("PEERMESH_TEST_NONE") != "" { // as if there were nothing
		os.Setenv(EnvCUDA, "/nowhere/libcuda.so.1")
		os.Setenv(EnvNCCL, "/nowhere/libnccl.so.2")
		os.Exit(m.Run())
	}
	folder, err := os.MkdirTemp("", "peermesh-gpu")
	if err != nil {
		panic(err)
	}
	for name, variable := range map[string]string{"cuda": EnvCUDA, "nccl": EnvNCCL} {
		path := filepath.Join(folder, "lib"+name+".so")
		out, err := exec.Command("cc", "-Wall", "-Werror", "-O1", "-ffp-contract=off", "-fPIC", "-shared",
			"-fvisibility=hidden", "-o", path, filepath.Join("testdata", "fake", name+".c"), "-lpthread", "-ldl").CombinedOutput()
		if err != nil {
			panic(fmt.Sprintf("cc of %s: %v\n%s", name, err, out))
		}
		if err := os.Setenv(variable, path); err != nil {
			panic(err)
		}
		faked = true
	}
	code := m.Run()
	if err := errors.Join(os.RemoveAll(folder), goleak.Find()); err != nil {
		fmt.Println(err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// faked says that the fakes are there.
var faked bool

// needFakes skips a test where there are none.
func needFakes(t testing.TB) {
	t.Helper()
	if !faked {
		t.Skip("there are no fake libraries: no loader for this platform, or no cc")
	}
}

// tell calls a function of a fake that is for tests.
func tell(t testing.TB, library, function string, args ...uintptr) int {
	t.Helper()
	handle, err := open(os.Getenv(library))
	if err != nil {
		t.Fatal(err)
	}
	f, err := symbol(handle, function)
	if err != nil {
		t.Fatal(err)
	}
	return int(int32(invoke(f, args...)))
}

// fail has the nth call of a function from now on fail with a code.
func fail(t testing.TB, library, function string, nth, code int) {
	t.Helper()
	name := append([]byte(function), 0)
	var pinner runtime.Pinner
	pinner.Pin(&name[0])
	defer pinner.Unpin()
	tell(t, library, "fake_fail", uintptr(unsafe.Pointer(&name[0])), uintptr(nth), uintptr(code))
}

// kinds are what the fake driver counts.
var kinds = []string{"device memory", "pinned memory", "streams", "events", "modules", "contexts"}

// alive is how many of each there are.
func alive(t testing.TB) (n [6]int) {
	t.Helper()
	for i := range kinds {
		n[i] = tell(t, EnvCUDA, "fake_alive", uintptr(i))
	}
	return n
}

// opened is a device, of which the test ends with nothing left.
func opened(t testing.TB, c Config) *Device {
	t.Helper()
	return openAll(t, c)[0]
}

// openAll opens several.
func openAll(t testing.TB, configs ...Config) (all []*Device) {
	t.Helper()
	needFakes(t)
	before := alive(t)
	for _, c := range configs {
		d, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	t.Cleanup(func() {
		tell(t, EnvCUDA, "fake_reset")
		for _, d := range all {
			if err := d.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if after := alive(t); after != before {
			t.Errorf("%v: %v alive after Close, %v before Open", kinds, after, before)
		}
	})
	return all
}

// Fail and Tell are for tests of the package's callers.
var (
	Fail = fail
	Tell = tell
)
