package convnet

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"peermesh/gpu"
	"peermesh/gpu/internal/fake"
	"peermesh/trainer/nn"
)

// faked says that there is a fake driver.
var faked bool

// TestMain builds the libraries that stand in for a driver and for NCCL.
func TestMain(m *testing.M) {
	os.Exit(fake.Main(m, filepath.Join("..", "testdata", "fake"), map[string]string{"cuda": gpu.EnvCUDA, "nccl": gpu.EnvNCCL}, &faked,
		func() error { return goleak.Find() }))
}

// fail has the nth call of a driver's function from now on fail with a code.
func fail(t *testing.T, function string, nth, code int) {
	t.Helper()
	if err := fake.Fail(os.Getenv(gpu.EnvCUDA), function, nth, code); err != nil {
		t.Fatal(err)
	}
}

// reset has nothing fail any more.
func reset(t *testing.T) {
	t.Helper()
	if _, err := fake.Tell(os.Getenv(gpu.EnvCUDA), "fake_reset"); err != nil {
		t.Fatal(err)
	}
}

// alive is what the driver counts.
func alive(t *testing.T) [6]int {
	t.Helper()
	n, err := fake.Alive(os.Getenv(gpu.EnvCUDA))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// opened is a device, of which the test ends with nothing left, nor forgotten.
func opened(t *testing.T, ordinal int) *gpu.Device {
	t.Helper()
	if !faked {
		t.Skip("there is no fake driver: no loader for this platform, or no cc")
	}
	before := alive(t)
	d, err := gpu.Open(gpu.Config{Ordinal: ordinal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		reset(t)
		if left := d.Leaks(); len(left) > 0 {
			t.Errorf("left on the device: %q", left)
		}
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if after := alive(t); after != before {
			t.Errorf("%v: %v alive after Close, %v before Open", fake.Kinds, after, before)
		}
	})
	return d
}

// made is a net on a device, closed at the test's end.
func made(t *testing.T, d *gpu.Device, c nn.Config) *Net {
	t.Helper()
	n, err := New(d, c)
	if err != nil {
		t.Fatal(err)
	}
	closedAtEnd(t, n)
	return n
}

func closedAtEnd(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close of %T: %v", c, err)
		}
	})
}
