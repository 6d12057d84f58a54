package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A shared is memory of this process that another maps too. The zero shared is none.
type shared struct {
	file *os.File
	data []byte
}

// share makes n bytes of memory, zeros, in a file without a name. They are there from
// the first, and cannot be taken away: to touch pages that a file has lost, or that the
// machine does not have, would end this process.
func share(n int) (shared, error) {
	fd, err := unix.MemfdCreate("peermesh", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return shared{}, fmt.Errorf("memory to share: %w", err)
	}
	s := shared{file: os.NewFile(uintptr(fd), "peermesh")}
	if err := unix.Fallocate(fd, 0, 0, int64(n)); err != nil {
		return shared{}, s.undo(fmt.Errorf("%d bytes to share: %w", n, err))
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return shared{}, s.undo(fmt.Errorf("sealing shared memory: %w", err))
	}
	if s.data, err = unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return shared{}, s.undo(fmt.Errorf("mapping %d shared bytes: %w", n, err))
	}
	return s, nil
}

func (s shared) undo(err error) error {
	s.file.Close()
	return err
}

// rights is the message that gives the memory to whoever receives it.
func (s shared) rights() []byte { return unix.UnixRights(int(s.file.Fd())) }

// close gives up this process's part. Nothing may be using it.
func (s shared) close() error {
	if s.file == nil {
		return nil
	}
	s.file.Close()
	return unix.Munmap(s.data)
}
