//go:build linux && (amd64 || arm64)

package shm

// pause tells the processor that this is a wait, for some tens of cycles.
func pause()
