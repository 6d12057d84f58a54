package gpu

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"peermesh/gpu/internal/fake"
)

// TestMain builds the two libraries that stand in for a driver and for NCCL, and
// has the package find them as it would find real ones.
func TestMain(m *testing.M) {
	if os.Getenv("PEERMESH_TEST_NONE") != "" { // as if there were nothing
		os.Setenv(EnvCUDA, "/nowhere/libcuda.so.1")
		os.Setenv(EnvNCCL, "/nowhere/libnccl.so.2")
		os.Exit(m.Run())
	}
	os.Exit(fake.Main(m, filepath.Join("testdata", "fake"), map[string]string{"cuda": EnvCUDA, "nccl": EnvNCCL}, &faked,
		func() error { return goleak.Find() }))
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
	n, err := fake.Tell(os.Getenv(library), function, args...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fail has the nth call of a function from now on fail with a code.
func fail(t testing.TB, library, function string, nth, code int) {
	t.Helper()
	if err := fake.Fail(os.Getenv(library), function, nth, code); err != nil {
		t.Fatal(err)
	}
}

// kinds are what the fake driver counts.
var kinds = fake.Kinds

// alive is how many of each there are.
func alive(t testing.TB) [6]int {
	t.Helper()
	n, err := fake.Alive(os.Getenv(EnvCUDA))
	if err != nil {
		t.Fatal(err)
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
