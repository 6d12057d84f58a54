package gpu

import (
	"fmt"
	"strings"
)

// Report says in words what the package has found on this machine, for a person: the
// driver, its devices and NCCL, with their versions and places; and of what is missing,
// where it was looked for.
func Report() string {
	var b strings.Builder
	l, err := driver()
	if err != nil {
		fmt.Fprintf(&b, "driver   %v\n", err)
		return b.String()
	}
	major, minor, err := version(l)
	if err != nil {
		fmt.Fprintf(&b, "driver   %s: %v\n", l.path, err)
	} else {
		fmt.Fprintf(&b, "driver   %s, for CUDA %d.%d\n", l.path, major, minor)
	}
	reportDevices(&b)
	n, err := nccl()
	if err != nil {
		fmt.Fprintf(&b, "nccl     %v\n", err)
	} else {
		fmt.Fprintf(&b, "nccl     %s, version %v\n", n.path, ncclVersion(n.version))
	}
	return b.String()
}

func reportDevices(b *strings.Builder) {
	all, err := Devices()
	if err != nil {
		fmt.Fprintf(b, "devices  %v\n", err)
		return
	}
	for _, i := range all {
		fmt.Fprintf(b, "device %d %s, %.1f GiB, compute capability %d.%d, bus %s, uuid %x\n",
			i.Ordinal, i.Name, float64(i.Memory)/(1<<30), i.Major, i.Minor, i.PCI, i.UUID)
		fmt.Fprintf(b, "         arithmetic %s\n", reportKernels(i.Ordinal))
	}
}

// reportKernels opens a device to see whether its driver compiles the kernels.
func reportKernels(ordinal int) string {
	d, err := Open(Config{Ordinal: ordinal, Chunk: granule, Depth: 1})
	if err != nil {
		return fmt.Sprintf("unknown: %v", err)
	}
	where := "on the device"
	if d.kernels.failure != nil {
		where = fmt.Sprintf("on the host: %v", d.kernels.failure)
	}
	if err := d.Close(); err != nil {
		where = fmt.Sprintf("unknown: %v", err)
	}
	return where
}
