// Package atomicfile writes files that are there as a whole or not at all.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// buffer is how many bytes go to the file in one call.
const buffer = 1 << 18

// Write leaves at path what write writes, with permissions 0644. A reader of path
// sees the file of before or the whole new one, at any time and after any crash;
// on an error there is the file of before, and no other is left behind.
//
// The new file is written under another name beside it, so the folder must allow
// that, and renamed when the disk has it.
func Write(path string, write func(w io.Writer) error) error {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return err
	}
	err = fill(f, write)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		if gone := os.Remove(f.Name()); gone != nil {
			err = errors.Join(err, gone)
		}
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return SyncDir(dir)
}

// fill writes, and closes the file whatever happens.
func fill(f *os.File, write func(w io.Writer) error) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewWriterSize(f, buffer)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil && runtime.GOOS != "windows" {
		return err
	}
	return f.Sync()
}

// SyncDir makes names last that are new in a directory, or gone from it. Windows has no
// such call, and does so by itself.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
