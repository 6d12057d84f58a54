package gpu

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	"peermesh/ops/tensor"
)

var ncclFunctions = []string{
	"ncclGetVersion", "ncclGetErrorString", "ncclGetUniqueId", "ncclCommInitRankConfig",
	"ncclCommDestroy", "ncclCommAbort", "ncclCommFinalize", "ncclCommGetAsyncError",
	"ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclAllGather", "ncclReduceScatter", "ncclSend", "ncclRecv",
	"ncclGroupStart", "ncclGroupEnd", "ncclRedOpCreatePreMulSum", "ncclRedOpDestroy",
}

// ncclOptional came with later versions. The first of them takes the id by pointer.
var ncclOptional = []string{"ncclCommInitRankScalable", "ncclGetLastError"}

// ncclOldest is the first version whose communicators need not block.
const ncclOldest = 21400

// ncclLibrary is NCCL with its version, as in 22809 for 2.28.9.
type ncclLibrary struct {
	*library
	version     int32
	initByValue func(comm *uintptr, n int32, id UniqueID, rank int32, c *ncclConfig) int32
}

var nccl = sync.OnceValues(func() (*ncclLibrary, error) {
	if _, err := driver(); err != nil {
		return nil, err
	}
	return loadNCCL(host)
})

func loadNCCL(f finder) (*ncclLibrary, error) {
	// Ranks of one host meet on a socket that has no authentication, by default on an
	// interface that others reach. NCCL reads its environment when it is loaded.
	if f.env("NCCL_SOCKET_IFNAME") == "" {
		if err := os.Setenv("NCCL_SOCKET_IFNAME", "lo"); err != nil { // which no test can have fail
			return nil, fmt.Errorf("gpu: %w", err)
		}
	}
	for _, path := range f.nvml() {
		if _, err := open(path); err == nil {
			break // without it NCCL says so itself
		}
	}
	l, err := load("nccl", f.nccl(), ncclFunctions, ncclOptional)
	if err != nil {
		return nil, err
	}
	n := &ncclLibrary{library: l}
	l.describe = n.words
	if err := l.call("ncclGetVersion", uintptr(unsafe.Pointer(&n.version))); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnavailable, l.path, err)
	}
	if n.version < ncclOldest {
		return nil, fmt.Errorf("%w: %s is NCCL %v, of before %v", ErrUnavailable, l.path,
			ncclVersion(n.version), ncclVersion(ncclOldest))
	}
	n.initByValue = initByValue(l.functions["ncclCommInitRankConfig"])
	return n, nil
}

// words fills in what NCCL says of a code, and of the last thing that went wrong.
func (n *ncclLibrary) words(e *Error) {
	if p := invoke(n.functions["ncclGetErrorString"], uintptr(e.Code)); p != 0 {
		e.Text = text(at(p))
	}
	if n.has("ncclGetLastError") {
		if p := invoke(n.functions["ncclGetLastError"], 0); p != 0 {
			e.Detail = strings.TrimSpace(text(at(p)))
		}
	}
}

// ncclVersion writes 22809 as 2.28.9.
type ncclVersion int32

func (v ncclVersion) String() string {
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
}

// A UniqueID is by what the members of a communicator find each other. Whoever has
// it may take part: it goes to peers alone that are proven to be on this host.
type UniqueID [128]byte

// NewUniqueID makes the id of a new communicator, on one of its members, which has
// to stay until all have joined.
func NewUniqueID() (id UniqueID, err error) {
	n, err := nccl()
	if err != nil {
		return id, err
	}
	return id, n.call("ncclGetUniqueId", uintptr(unsafe.Pointer(&id)))
}

// ncclConfig is ncclConfig_t of NCCL 2.28. A library of another version reads what it
// knows of the first size bytes.
type ncclConfig struct {
	size                                      uintptr
	magic, version                            uint32
	blocking, clusters, leastBlocks, mostB    int32
	network                                   uintptr
	splitShare, trafficClass                  int32
	name                                      uintptr
	collnet, policy, shrinkShare, nvlsBlocks  int32
	channelsPerNetPeer, nvlinkCentricSchedule int32
}

// nonBlocking is a config that leaves all to NCCL but that no call may block.
func nonBlocking() *ncclConfig {
	const (
		magic     = 0xcafebeef
		undefined = -1 << 31
	)
	return &ncclConfig{
		size: unsafe.Sizeof(ncclConfig{}), magic: magic, version: 22800,
		clusters: undefined, leastBlocks: undefined, mostB: undefined,
		splitShare: undefined, trafficClass: undefined, collnet: undefined, policy: undefined,
		shrinkShare: undefined, nvlsBlocks: undefined, channelsPerNetPeer: undefined, nvlinkCentricSchedule: undefined,
	}
}

// ncclTypes are the values of ncclDataType_t. NCCL has no integers of 16 bits; a bool
// is moved, not reduced, as a byte.
var ncclTypes = map[tensor.DType]uintptr{
	tensor.Int8: 0, tensor.Uint8: 1, tensor.Int32: 2, tensor.Uint32: 3, tensor.Int64: 4, tensor.Uint64: 5,
	tensor.Float16: 6, tensor.Float32: 7, tensor.Float64: 8, tensor.BFloat16: 9,
}

// ncclOps are the values of ncclRedOp_t.
var ncclOps = map[tensor.Op]uintptr{
	tensor.Sum: 0, tensor.Product: 1, tensor.Max: 2, tensor.Min: 3, tensor.Avg: 4,
}

// ErrNotNCCL says that NCCL has no such element type or reduction. What is staged
// through the host has them all.
var ErrNotNCCL = errors.New("gpu: not an operation of NCCL")

// ncclMove is a type's value for what only moves: bytes, for types that NCCL lacks,
// and how many of them an element is.
func ncclMove(t tensor.DType) (value, each uintptr) {
	if value, ok := ncclTypes[t]; ok {
		return value, 1
	}
	return ncclTypes[tensor.Uint8], uintptr(t.Size())
}
