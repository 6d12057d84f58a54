package gpu

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// A Survey is what the package has found on this machine, and what it lacks. The names of
// its fields in JSON do not change.
type Survey struct {
	Driver  Library `json:"driver"`           // its version is the latest of CUDA's that it knows
	Module  string  `json:"module,omitempty"` // the driver's part in the kernel, as the system calls it
	Devices []Card  `json:"devices"`
	NCCL    Library `json:"nccl"`
	Lacks   []Lack  `json:"lacks"` // what keeps work from the GPUs first
}

// A Library is one that was found and opened: both are empty for one that was not.
type Library struct {
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"` // as in "12.4"
}

// A Card is a device, and where arithmetic on its memory is done.
type Card struct {
	Ordinal    int    `json:"ordinal"`
	Name       string `json:"name"`
	Memory     int64  `json:"memory"`     // bytes
	Capability string `json:"capability"` // as in "8.6"
	PCI        string `json:"pci"`
	UUID       string `json:"uuid"`
	Arithmetic string `json:"arithmetic"` // "device", or "host" where its driver compiles no kernels; or "" if it does not open
}

// A Lack is something that is missing or fails.
type Lack struct {
	What string `json:"what"` // "driver", "devices", "device 0", "nccl"
	Why  string `json:"why"`
	Mend string `json:"mend"` // what to do about it
}

// Usable reports whether there is a device that work can be done on.
func (s Survey) Usable() bool {
	for _, c := range s.Devices {
		if c.Arithmetic != "" {
			return true
		}
	}
	return false
}

// What to do about what is missing.
const (
	mendBuild  = "GPUs are used by builds for Linux on amd64 and arm64"
	mendDriver = "install NVIDIA's driver; in a container, have the runtime pass it in (docker run --gpus all); or set " + EnvCUDA + " to a libcuda.so.1"
	mendInit   = "nvidia-smi has to list a device; see that CUDA_VISIBLE_DEVICES does not hide it, that its files /dev/nvidia* may be opened, and that library and kernel module are of one version"
	mendDevice = "see what nvidia-smi says of it, and whether another process has all its memory"
	mendKernel = "sums are done by the host, which is slower and no less right; libnvidia-ptxjitcompiler.so.1 belongs beside libcuda.so.1, in containers too"
	mendNCCL   = "needed between GPUs of one host only: install libnccl2, or nvidia-nccl-cu12 in the Python environment that is active, or set " + EnvNCCL + " to a libnccl.so.2"
)

// moduleFile is where the kernel module says which it is.
const moduleFile = "/proc/driver/nvidia/version"

// Look finds out what there is. It opens each device for a moment.
func Look() (s Survey) {
	s.Devices, s.Lacks = []Card{}, []Lack{}
	lack := func(what string, err error, mend string) { s.Lacks = append(s.Lacks, Lack{what, err.Error(), mend}) }
	s.Module = module(os.ReadFile)
	l, err := driver()
	if err != nil {
		lack("driver", err, mendFor(err))
		return s
	}
	s.Driver.Path = l.path
	if major, minor, err := version(l); err != nil {
		lack("driver", err, mendInit)
	} else {
		s.Driver.Version = fmt.Sprintf("%d.%d", major, minor)
	}
	all, err := Devices()
	if err != nil {
		lack("devices", err, mendInit)
	}
	for _, i := range all {
		card, why := look(i)
		s.Devices = append(s.Devices, card)
		switch {
		case card.Arithmetic == "":
			lack(fmt.Sprintf("device %d", i.Ordinal), why, mendDevice)
		case why != nil:
			lack(fmt.Sprintf("device %d", i.Ordinal), why, mendKernel)
		}
	}
	if n, err := nccl(); err != nil {
		lack("nccl", err, mendNCCL)
	} else {
		s.NCCL = Library{n.path, ncclVersion(n.version).String()}
	}
	return s
}

// mendFor tells a driver that is not there from one that fails.
func mendFor(err error) string {
	var failed *Error
	switch {
	case !linkable:
		return mendBuild
	case errors.As(err, &failed):
		return mendInit
	}
	return mendDriver
}

// module is the first line of what the kernel module says, which has its version.
func module(read func(string) ([]byte, error)) string {
	b, err := read(moduleFile)
	if err != nil {
		return "" // there is none, or this is WSL, whose kernel has no such file
	}
	line, _, _ := strings.Cut(string(b[:min(len(b), longest)]), "\n")
	return strings.Join(strings.Fields(strings.TrimPrefix(line, "NVRM version:")), " ")
}

// look opens a device to see whether its driver compiles the kernels. The error says why
// not, or why the device does not open.
func look(i Info) (Card, error) {
	c := Card{Ordinal: i.Ordinal, Name: i.Name, Memory: i.Memory, Capability: fmt.Sprintf("%d.%d", i.Major, i.Minor), PCI: i.PCI, UUID: hex.EncodeToString(i.UUID[:])}
	d, err := Open(Config{Ordinal: i.Ordinal, Chunk: granule, Depth: 1})
	if err != nil {
		return c, err
	}
	where, why := "device", d.kernels.failure
	if why != nil {
		where = "host"
	}
	if err := d.Close(); err != nil {
		return c, err
	}
	c.Arithmetic = where
	return c, why
}

// String is a report for a person: what was found, and of what is missing where it was
// looked for and what to do.
func (s Survey) String() string {
	var b strings.Builder
	library := func(what string, l Library, version string) {
		if l.Path != "" {
			fmt.Fprintf(&b, "%-9s %s, %s %s\n", what, l.Path, version, l.Version)
		}
	}
	library("driver", s.Driver, "for CUDA")
	if s.Module != "" {
		fmt.Fprintf(&b, "%-9s %s\n", "module", s.Module)
	}
	for _, c := range s.Devices {
		where := map[string]string{"": "does not open", "device": "arithmetic on the device", "host": "arithmetic on the host"}[c.Arithmetic]
		fmt.Fprintf(&b, "device %-2d %s, %.1f GiB, compute capability %s, bus %s, uuid %s, %s\n",
			c.Ordinal, c.Name, float64(c.Memory)/(1<<30), c.Capability, c.PCI, c.UUID, where)
	}
	library("nccl", s.NCCL, "version")
	for _, l := range s.Lacks {
		fmt.Fprintf(&b, "missing   %s: %s\n          %s\n", l.What, l.Why, l.Mend)
	}
	return b.String()
}
