package main

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/cpu"

	"peermesh/gpu"
)

// takeVitals looks at this machine. What cannot be found out is left out.
func takeVitals() vitals {
	v := vitals{Version: version(), CPUs: runtime.NumCPU(), Vector: runtime.GOARCH == "amd64",
		RecvUDP: kernelNumber("net/core/rmem_max"), SendUDP: kernelNumber("net/core/wmem_max"),
		Shm: freeShm(), GPUs: gpu.Look(), MTUs: make(map[string]int)}
	v.Files, v.HardFiles = openFiles()
	for name, has := range map[string]bool{"AVX2": cpu.X86.HasAVX2, "AVX-512": cpu.X86.HasAVX512F} {
		if has {
			v.Features = append(v.Features, name)
		}
	}
	v.interfaces()
	return v
}

// interfaces looks at those that are up.
func (v *vitals) interfaces() {
	all, err := net.Interfaces()
	if err != nil {
		return
	}
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil || len(addrs) == 0 {
			continue
		}
		v.MTUs[i.Name] = i.MTU
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				v.Addrs = append(v.Addrs, p.Addr().Unmap())
			}
		}
	}
}

// kernelNumber is a setting of Linux's; 0 elsewhere.
func kernelNumber(name string) int {
	text, err := os.ReadFile(filepath.Join("/proc/sys", name))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text))) // of what is none: 0
	return n
}
