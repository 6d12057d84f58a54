package gpu

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestLook names what was found.
func TestLook(t *testing.T) {
	needFakes(t)
	s := Look()
	want := Card{Ordinal: 3, Name: "Fake 3", Memory: 256 << 20, Capability: "8.6", PCI: "0000:04:00.0",
		UUID: "fafafafafafafafafafafafafafafa03", Arithmetic: "device"}
	if !s.Usable() || len(s.Devices) != 4 || s.Devices[3] != want || len(s.Lacks) > 0 {
		t.Errorf("%+v", s)
	}
	r := s.String()
	for _, part := range []string{"for CUDA 12.4", os.Getenv(EnvCUDA), "device 3  Fake 3, 0.2 GiB", "capability 8.6", "0000:04:00.0",
		"arithmetic on the device", os.Getenv(EnvNCCL), "version 2.28.9"} {
		if !strings.Contains(r, part) {
			t.Errorf("no %q in\n%s", part, r)
		}
	}
	text, err := json.Marshal(s)
	var back Survey
	if err = errors.Join(err, json.Unmarshal(text, &back)); err != nil || !slices.Equal(back.Devices, s.Devices) || back.NCCL != s.NCCL {
		t.Errorf("%v: %s", err, text)
	}
}

// TestLookFails has each call fail, which the report says, with what to do, and nothing
// is left open.
func TestLookFails(t *testing.T) {
	needFakes(t)
	before := alive(t)
	for function, c := range map[string]struct {
		what, mend, arithmetic string
		usable                 bool
	}{
		"cuDriverGetVersion":       {"driver", mendInit, "device", true},
		"cuDeviceGetCount":         {"devices", mendInit, "", false},
		"cuModuleLoadData":         {"device 0", mendKernel, "host", true},
		"cuDevicePrimaryCtxRetain": {"device 0", mendDevice, "", true}, // the others are
		"cuStreamDestroy_v2":       {"device 0", mendDevice, "", true},
	} {
		fail(t, EnvCUDA, function, 1, 200)
		s := Look()
		tell(t, EnvCUDA, "fake_reset")
		if len(s.Lacks) != 1 || s.Lacks[0].What != c.what || s.Lacks[0].Mend != c.mend || !strings.Contains(s.Lacks[0].Why, function) || s.Usable() != c.usable {
			t.Errorf("a failing %s: %+v", function, s)
		}
		if len(s.Devices) > 0 && s.Devices[0].Arithmetic != c.arithmetic {
			t.Errorf("a failing %s: %+v", function, s.Devices[0])
		}
		if r := s.String(); !strings.Contains(r, "missing   "+c.what+": ") || !strings.Contains(r, "\n          "+c.mend) {
			t.Errorf("a failing %s:\n%s", function, r)
		}
	}
	if after := alive(t); after[0] != before[0] || after[1] != before[1] {
		t.Errorf("%v alive, %v before", after, before)
	}
}

// TestModule reads what the kernel module says.
func TestModule(t *testing.T) {
	says := func(text string, err error) string {
		return module(func(path string) ([]byte, error) {
			if path != moduleFile {
				t.Errorf("reads %s", path)
			}
			return []byte(text), err
		})
	}
	if got := says("", os.ErrNotExist); got != "" {
		t.Errorf("nothing: %q", got)
	}
	text := "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC version: 12\n"
	if got := says(text, nil); got != "NVIDIA UNIX x86_64 Kernel Module 550.54.15 Tue Mar 5" {
		t.Errorf("%q", got)
	}
	if got := says(strings.Repeat("x", 2*longest), nil); len(got) != longest {
		t.Errorf("%d bytes", len(got))
	}
}

// TestReport writes what is known of the kernel module, if anything is.
func TestReport(t *testing.T) {
	s := Survey{Module: "NVIDIA UNIX x86_64 Kernel Module 550.54.15"}
	if got := s.String(); got != "module    NVIDIA UNIX x86_64 Kernel Module 550.54.15\n" {
		t.Errorf("%q", got)
	}
	s.Module = ""
	if got := s.String(); got != "" {
		t.Errorf("%q", got)
	}
}

// TestMend tells what is not there from what does not work.
func TestMend(t *testing.T) {
	if !linkable {
		if got := mendFor(ErrUnavailable); got != mendBuild {
			t.Error(got)
		}
		return
	}
	if got := mendFor(ErrUnavailable); got != mendDriver {
		t.Error(got)
	}
	if got := mendFor(&Error{Call: "cuInit"}); got != mendInit {
		t.Error(got)
	}
}
