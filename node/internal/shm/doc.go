// Package shm is a libp2p transport between processes of one machine, over shared
// memory.
package shm
