//go:build unix

package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is how often a lock is asked for. To wait in fcntl could not be stopped.
const lockPause = 5 * time.Millisecond

// lock takes the one lock of a file, made if absent, and keeps it until unlock. It is
// fcntl's, which NFS knows, too.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	release := within(path)
	for ; release == nil; release = within(path) {
		if err := lockAgain(ctx, path); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		release()
		return nil, err
	}
	unlock = func() { _ = f.Close(); release() } // closed, it is unlocked
	for {
		whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
		err := unix.FcntlFlock(f.Fd(), setLock, &whole)
		switch {
		case err == nil:
			return unlock, nil
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINTR):
			err = lockAgain(ctx, path)
		default:
			err = fmt.Errorf("locking %s: %w", path, err)
		}
		if err != nil {
			unlock()
			return nil, err
		}
	}
}

// lockAgain waits for the next attempt.
func lockAgain(ctx context.Context, path string) error {
	select {
	case <-time.After(lockPause):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is locked by another process: %w", path, context.Cause(ctx))
	}
}
