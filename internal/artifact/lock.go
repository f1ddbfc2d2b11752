package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// fileLock is an advisory lock on a file, between processes as well as within one. It ends with the process.
type fileLock struct{ *flock.Flock }

// tryLock takes the lock at path, creating the file if necessary. It returns nil if another lock conflicts.
func tryLock(path string, exclusive bool) (*fileLock, error) {
	for {
		l := fileLock{flock.New(path, flock.SetFlag(os.O_RDWR|os.O_CREATE))}
		take := l.TryRLock
		if exclusive {
			take = l.TryLock
		}
		ok, err := take()
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return nil, fmt.Errorf("locking %s: %w", path, err)
		case !ok:
			return nil, nil
		}
		// Lock files are removed together with their entries. A lock on a file that is no longer at its path guards nothing.
		held, err := l.Stat()
		if err == nil {
			var current fs.FileInfo
			if current, err = os.Stat(path); err == nil && os.SameFile(held, current) {
				return &l, nil
			}
		}
		_ = l.unlock()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("checking lock: %w", err)
		}
	}
}

// lock waits for the lock at path until the context ends, calling waiting each time it has to wait.
//
// It polls because a thread blocked in the operating system's wait cannot be cancelled.
func lock(ctx context.Context, path string, exclusive bool, waiting func()) (*fileLock, error) {
	const firstWait, longestWait = 5 * time.Millisecond, 250 * time.Millisecond
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if l, err := tryLock(path, exclusive); l != nil || err != nil {
			return l, err
		}
		waiting()
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

func (l *fileLock) unlock() error { return l.Unlock() }

// unlockAndRemove releases the lock, which must be exclusive, and removes its file.
func (l *fileLock) unlockAndRemove() error {
	// Systems that cannot remove open files keep an empty file, which is harmless.
	_ = os.Remove(l.Path())
	return l.Unlock()
}
