package gpu

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// found is a finder with an environment, and files that lie where a pattern says.
func found(env map[string]string, files map[string][]string) finder {
	return finder{
		env: func(name string) string { return env[name] },
		glob: func(pattern string) ([]string, error) {
			if strings.Contains(pattern, "[") {
				return nil, filepath.ErrBadPattern
			}
			return slices.Clone(files[pattern]), nil
		},
	}
}

// TestSearch tries an override alone, the loader first, and Python's environments.
func TestSearch(t *testing.T) {
	override := found(map[string]string{EnvCUDA: "/a/libcuda.so", EnvNCCL: "/b/libnccl.so"}, nil)
	if got := override.cuda(); !slices.Equal(got, []string{"/a/libcuda.so"}) {
		t.Errorf("cuda: %v", got)
	}
	if got := override.nccl(); !slices.Equal(got, []string{"/b/libnccl.so"}) {
		t.Errorf("nccl: %v", got)
	}
	const lib = "/nvidia/nccl/lib/libnccl.so.2"
	usual := found(map[string]string{"VIRTUAL_ENV": "/venv", "CONDA_PREFIX": "/con[da"}, map[string][]string{
		"/venv/lib/python3*/site-packages" + lib: {"/venv/lib/python3.11/site-packages" + lib, "/venv/lib/python3.12/site-packages" + lib},
		"/usr/lib/python3*/dist-packages" + lib:  {"/usr/lib/python3/dist-packages" + lib},
	})
	cuda, nccl := usual.cuda(), usual.nccl()
	if cuda[0] != "libcuda.so.1" || !slices.Contains(cuda, "/usr/lib/wsl/lib/libcuda.so.1") {
		t.Errorf("cuda: %v", cuda)
	}
	want := []string{"libnccl.so.2", "/venv/lib/python3.12/site-packages" + lib, "/venv/lib/python3.11/site-packages" + lib,
		"/venv/lib/libnccl.so.2", "/con[da/lib/libnccl.so.2"}
	if !slices.Equal(nccl[:len(want)], want) {
		t.Errorf("nccl: %v", nccl)
	}
	if !slices.Contains(nccl, "/usr/lib/python3/dist-packages"+lib) {
		t.Errorf("nccl lacks Debian's: %v", nccl)
	}
	if bare := found(nil, nil).nccl(); bare[1] != "/usr/local/lib/libnccl.so.2" {
		t.Errorf("without an environment of Python's: %v", bare)
	}
	if nvml := usual.nvml(); nvml[0] != "libnvidia-ml.so.1" {
		t.Errorf("nvml: %v", nvml)
	}
}

// TestLoad has no library, one that is none, and ones without the functions or of
// another version.
func TestLoad(t *testing.T) {
	needFakes(t)
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, words := range map[string]string{
		"/nowhere/libcuda.so.1": "/nowhere/libcuda.so.1",
		text:                    text,
		os.Getenv(EnvNCCL):      "has no cuInit",
	} {
		_, err := loadDriver(found(map[string]string{EnvCUDA: path}, nil))
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), words) {
			t.Errorf("a driver at %s: %v", path, err)
		}
	}
	fail(t, EnvCUDA, "cuInit", 1, 100)
	if _, err := loadDriver(host); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "cuInit") {
		t.Errorf("a driver without a device: %v", err)
	}
	if _, err := loadNCCL(found(map[string]string{EnvNCCL: os.Getenv(EnvCUDA)}, nil)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("NCCL of another kind: %v", err)
	}
	fail(t, EnvNCCL, "ncclGetVersion", 1, 3)
	if _, err := loadNCCL(host); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "ncclGetVersion") {
		t.Errorf("NCCL that does not say its version: %v", err)
	}
	t.Setenv("FAKE_NCCL_VERSION", "20900")
	if _, err := loadNCCL(host); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "2.9.0") {
		t.Errorf("an old NCCL: %v", err)
	}
}

// TestLoadNVML opens the driver's management library before NCCL, if there is one.
func TestLoadNVML(t *testing.T) {
	needFakes(t)
	folder, usual := t.TempDir(), driverFolders
	if err := os.Symlink(os.Getenv(EnvCUDA), filepath.Join(folder, "libnvidia-ml.so.1")); err != nil {
		t.Fatal(err)
	}
	driverFolders = []string{folder}
	defer func() { driverFolders = usual }()
	if n, err := loadNCCL(host); err != nil || n.path != os.Getenv(EnvNCCL) {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestNoLibraries is what a machine without a GPU says, in a process of its own, for
// what is found first is kept.
func TestNoLibraries(t *testing.T) {
	if os.Getenv("PEERMESH_TEST_NONE") != "" {
		_, devices := Devices()
		_, open := Open(Config{})
		_, id := NewUniqueID()
		for _, err := range []error{devices, open, id} {
			if !errors.Is(err, ErrUnavailable) {
				t.Errorf("%v is not %v", err, ErrUnavailable)
			}
		}
		s := Look()
		if r := s.String(); !strings.Contains(r, "missing   driver: ") || !strings.Contains(r, "/nowhere") || !strings.Contains(r, mendDriver) {
			t.Errorf("the report does not say what is missing:\n%s", r)
		}
		if s.Usable() || len(s.Lacks) != 1 || s.Devices == nil {
			t.Errorf("%+v", s)
		}
		return
	}
	needFakes(t)
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoLibraries$")
	again.Env = append(os.Environ(), "PEERMESH_TEST_NONE=1")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
