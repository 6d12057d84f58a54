package gpu

import (
	"errors"
	"fmt"
	"strings"
)

// The states that a caller may act on. errors.Is finds them in what the package
// returns.
var (
	// ErrUnavailable says that there is no driver, no device or no NCCL here, or
	// none that can be used; the error around it says which, and where was looked.
	ErrUnavailable = errors.New("gpu: not available")
	// ErrOutOfMemory says that the device, or what the host may pin, is full.
	ErrOutOfMemory = errors.New("gpu: out of memory")
	// ErrLost says that the device is of no more use to this process: a kernel
	// faulted, memory failed, or the card is gone. All that was on it is lost.
	ErrLost = errors.New("gpu: the device is lost")
	// ErrClosed says that what was called has been closed.
	ErrClosed = errors.New("gpu: closed")
)

// An Error is a call into a library that failed.
type Error struct {
	Library string // "cuda" or "nccl"
	Call    string // the function, as in "cuMemAlloc_v2"
	Code    int    // what it returned
	Name    string // the library's name for the code, as in "CUDA_ERROR_OUT_OF_MEMORY"
	Text    string // what the library says of it
	Detail  string // what was asked for, with sizes, where that helps
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gpu: %s: ", e.Call)
	if e.Detail != "" {
		fmt.Fprintf(&b, "%s: ", e.Detail)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, "%s ", e.Text)
	}
	if e.Name != "" {
		fmt.Fprintf(&b, "(%s, %d)", e.Name, e.Code)
	} else {
		fmt.Fprintf(&b, "(%s %d)", e.Library, e.Code)
	}
	return b.String()
}

// The codes that mean something here, of the driver's enum CUresult and of
// ncclResult_t.
const (
	cudaOutOfMemory  = 2
	cudaNotReady     = 600
	ncclInvalidUsage = 5 // among others, two ranks on one device
	ncclInProgress   = 7

	noFunction = -1 // ours: the library has no such function
)

// lost are the driver's codes after which a context has only errors.
var lost = map[int]string{
	214: "memory failed", 220: "a link failed", 700: "an illegal address", 702: "a kernel ran for too long",
	709: "the context is destroyed", 710: "an assertion", 714: "a stack failed", 715: "an illegal instruction",
	716: "a misaligned address", 717: "an address of another space", 718: "an invalid program counter", 719: "a kernel failed",
}

// Is reports whether e is of one of the states above.
func (e *Error) Is(target error) bool {
	if e.Library != "cuda" {
		return false
	}
	switch target {
	case ErrOutOfMemory:
		return e.Code == cudaOutOfMemory
	case ErrLost:
		return lost[e.Code] != ""
	}
	return false
}
