package gpu

import (
	"os"
	"path/filepath"
	"slices"
)

// The environment variables that name the two libraries. What is set is the only
// place that is looked at.
const (
	EnvCUDA = "PEERMESH_CUDA" // the path of a libcuda.so.1
	EnvNCCL = "PEERMESH_NCCL" // the path of a libnccl.so.2
)

// A finder says where libraries may be: the environment and the file system, or a
// test's.
type finder struct {
	env  func(name string) string
	glob func(pattern string) ([]string, error)
}

var host = finder{os.Getenv, filepath.Glob}

// driverFolders are where the driver's libraries lie when the loader does not know:
// in containers, on distributions, under WSL and NixOS.
var driverFolders = []string{
	"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
	"/usr/lib/wsl/lib", "/run/opengl-driver/lib",
}

// cuda is where the driver's library may be, in the order to try.
func (f finder) cuda() []string {
	if path := f.env(EnvCUDA); path != "" {
		return []string{path}
	}
	return append([]string{"libcuda.so.1"}, in(driverFolders, "libcuda.so.1")...)
}

// nvml is where the driver's management library may be. NCCL opens it by its name
// alone; once opened by a path, it is found.
func (f finder) nvml() []string {
	return append([]string{"libnvidia-ml.so.1"}, in(driverFolders, "libnvidia-ml.so.1")...)
}

// nccl is where NCCL may be: where the loader looks, in a Python environment, of
// which the active one comes first and later versions before earlier, and with a
// CUDA toolkit.
func (f finder) nccl() []string {
	if path := f.env(EnvNCCL); path != "" {
		return []string{path}
	}
	all := []string{"libnccl.so.2"}
	for _, root := range []string{f.env("VIRTUAL_ENV"), f.env("CONDA_PREFIX"), "/usr/local", "/usr", "/opt/conda"} {
		if root == "" {
			continue
		}
		for _, packages := range []string{"site-packages", "dist-packages"} {
			// The pattern is well formed, the one error that Glob has, if the root is.
			found, err := f.glob(filepath.Join(root, "lib/python3*", packages, "nvidia/nccl/lib/libnccl.so.2"))
			if err != nil {
				continue
			}
			slices.Sort(found)
			slices.Reverse(found)
			all = append(all, found...)
		}
		all = append(all, filepath.Join(root, "lib/libnccl.so.2"))
	}
	return append(all, "/usr/local/cuda/lib64/libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2",
		"/usr/lib/aarch64-linux-gnu/libnccl.so.2", "/usr/lib64/libnccl.so.2")
}

// in is a name in each of the folders.
func in(folders []string, name string) []string {
	paths := make([]string, len(folders))
	for i, folder := range folders {
		paths[i] = filepath.Join(folder, name)
	}
	return paths
}
