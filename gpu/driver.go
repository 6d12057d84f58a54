package gpu

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// driverFunctions are those of the driver API that the package needs. All have been
// there since CUDA 10.
var driverFunctions = []string{
	"cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString",
	"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceTotalMem_v2",
	"cuDeviceGetAttribute", "cuDeviceGetPCIBusId", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
	"cuCtxSetCurrent", "cuMemGetInfo_v2", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost",
	"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async",
	"cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2",
	"cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamWaitEvent", "cuLaunchHostFunc",
	"cuEventCreate", "cuEventDestroy_v2", "cuEventRecord", "cuEventQuery", "cuEventSynchronize",
	"cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuLaunchKernel",
}

// driver is the driver's library, initialised, or why there is none. What is found
// first is kept: a driver does not come while a process runs.
var driver = sync.OnceValues(func() (*library, error) { return loadDriver(host) })

func loadDriver(f finder) (*library, error) {
	l, err := load("cuda", f.cuda(), driverFunctions, nil)
	if err != nil {
		return nil, err
	}
	l.describe = func(e *Error) {
		var name, words unsafe.Pointer
		// Both leave a nil pointer where the driver does not know the code.
		invoke(l.functions["cuGetErrorName"], uintptr(e.Code), uintptr(unsafe.Pointer(&name)))
		invoke(l.functions["cuGetErrorString"], uintptr(e.Code), uintptr(unsafe.Pointer(&words)))
		e.Name, e.Text = text(name), text(words)
	}
	if err := l.call("cuInit", 0); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnavailable, l.path, err)
	}
	return l, nil
}

// version is the highest CUDA version of the driver, as in 12.4.
func version(l *library) (major, minor int, err error) {
	var v int32
	err = l.call("cuDriverGetVersion", uintptr(unsafe.Pointer(&v)))
	return int(v) / 1000, int(v) % 1000 / 10, err
}

// An Info describes a device.
type Info struct {
	Ordinal int      // its number among those that the process sees
	Name    string   // as in "NVIDIA A100-SXM4-40GB"
	UUID    [16]byte // the same in every process of the host, whatever its ordinal there
	PCI     string   // its place on the bus, as in "0000:3b:00.0"
	Memory  int64    // in bytes
	Major   int      // of the compute capability
	Minor   int
}

// maxDevices bounds what a driver says that it has.
const maxDevices = 256

// Devices describes the devices of this process. Without a driver, or without any
// device, that is ErrUnavailable.
func Devices() ([]Info, error) {
	l, err := driver()
	if err != nil {
		return nil, err
	}
	var n int32
	if err := l.call("cuDeviceGetCount", uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("%w: %s has no device", ErrUnavailable, l.path)
	}
	all := make([]Info, min(n, maxDevices))
	for i := range all {
		if _, all[i], err = inquire(l, i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Attributes of a device, of enum CUdevice_attribute.
const (
	attributeMajor = 75
	attributeMinor = 76
)

// inquire asks the driver about a device, and gives its handle.
func inquire(l *library, ordinal int) (device int32, info Info, err error) {
	if err := l.call("cuDeviceGet", uintptr(unsafe.Pointer(&device)), uintptr(ordinal)); err != nil {
		return 0, info, fmt.Errorf("gpu: device %d: %w", ordinal, err)
	}
	var name, bus [128]byte
	var memory uint64
	var major, minor int32
	d := uintptr(device)
	err = errors.Join(
		l.call("cuDeviceGetName", uintptr(unsafe.Pointer(&name)), uintptr(len(name)-1), d),
		l.call("cuDeviceGetUuid", uintptr(unsafe.Pointer(&info.UUID)), d),
		l.call("cuDeviceTotalMem_v2", uintptr(unsafe.Pointer(&memory)), d),
		l.call("cuDeviceGetAttribute", uintptr(unsafe.Pointer(&major)), attributeMajor, d),
		l.call("cuDeviceGetAttribute", uintptr(unsafe.Pointer(&minor)), attributeMinor, d),
		l.call("cuDeviceGetPCIBusId", uintptr(unsafe.Pointer(&bus)), uintptr(len(bus)-1), d),
	)
	if err != nil {
		return 0, info, fmt.Errorf("gpu: device %d: %w", ordinal, err)
	}
	info.Ordinal, info.Memory, info.Major, info.Minor = ordinal, int64(memory), int(major), int(minor)
	info.Name, info.PCI = text(unsafe.Pointer(&name)), text(unsafe.Pointer(&bus))
	return device, info, nil
}
