package gpu

import (
	"errors"
	"fmt"
	"testing"
)

// TestError has texts with all that a library says, and with what is left when it says
// nothing; and the states that a code stands for.
func TestError(t *testing.T) {
	for _, c := range []struct {
		e     Error
		text  string
		state error
	}{
		{Error{"cuda", "cuMemAlloc_v2", 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory", "8 bytes"},
			"gpu: cuMemAlloc_v2: 8 bytes: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)", ErrOutOfMemory},
		{Error{"cuda", "cuInit", 999, "", "", ""}, "gpu: cuInit: (cuda 999)", nil},
		{Error{"cuda", "cuEventSynchronize", 719, "", "unspecified launch failure", ""},
			"gpu: cuEventSynchronize: unspecified launch failure (cuda 719)", ErrLost},
		{Error{"cuda", "cuMemHostRegister", 712, "", "", ""}, "gpu: cuMemHostRegister: (cuda 712)", nil},
		{Error{"nccl", "ncclSend", 2, "", "", ""}, "gpu: ncclSend: (nccl 2)", nil},
	} {
		err := fmt.Errorf("ops: %w", &c.e)
		if c.e.Error() != c.text {
			t.Errorf("%q, want %q", c.e.Error(), c.text)
		}
		for _, state := range []error{ErrOutOfMemory, ErrLost, ErrClosed, ErrUnavailable} {
			if errors.Is(err, state) != (state == c.state) {
				t.Errorf("%v is %v: %v", err, state, state != c.state)
			}
		}
	}
}

// TestFirstLine has an error of the loader name the library, whether it does so itself or not.
func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{
		"/a/lib.so: no such file\nat all": "/a/lib.so: no such file",
		"no such file":                    "/a/lib.so: no such file",
	} {
		if got := firstLine("/a/lib.so", errors.New(text)).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNoFunction calls what a library does not have.
func TestNoFunction(t *testing.T) {
	l := &library{name: "cuda", path: "libcuda.so.1"}
	var e *Error
	if err := l.call("cuNone"); !errors.As(err, &e) || e.Call != "cuNone" || e.Code != noFunction {
		t.Errorf("%v", err)
	}
}
