package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Directory is a store in a directory of this machine. Several processes may use the same one.
//
// A file is received below incoming, under a lock that its process holds, and moved to its place when it is whole and on the disk.
// What a process left there that was killed is unlocked, and removed by the next one.
type Directory struct {
	dir  string
	most int64
}

const (
	incoming = "incoming"
	lockName = "lock"
	// shard is the number of digits after which files have a directory, so that none gets too many.
	shard = 2
	// lockEvery is the time between two looks whether the lock is free. It is held for milliseconds.
	lockEvery = 5 * time.Millisecond
)

// OpenDirectory opens a store in a directory, which is made if there is none. All its files together have at most the given bytes, beside
// what is being received.
func OpenDirectory(ctx context.Context, dir string, most int64) (*Directory, error) {
	if dir == "" || most <= 0 {
		return nil, errors.New("a blob store needs a directory and room")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the blob store: %w", err)
	}
	d := &Directory{dir: dir, most: most}
	if err := os.MkdirAll(filepath.Join(dir, incoming), 0o700); err != nil {
		return nil, fmt.Errorf("opening the blob store: %w; name a directory that can be written", err)
	}
	if err := d.locked(ctx, d.sweep); err != nil {
		return nil, fmt.Errorf("opening the blob store: %w", err)
	}
	return d, nil
}

func (d *Directory) path(digest Digest) string {
	return filepath.Join(d.dir, string(digest[:shard]), string(digest))
}

// locked calls a function that no other process or goroutine calls at the same time.
func (d *Directory) locked(ctx context.Context, do func() error) error {
	lock := flock.New(filepath.Join(d.dir, lockName), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return fmt.Errorf("locking %s: %w", d.dir, err)
	}
	return errors.Join(do(), lock.Unlock())
}

// sweep removes what processes left that are gone.
func (d *Directory) sweep() error {
	entries, err := os.ReadDir(filepath.Join(d.dir, incoming))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(d.dir, incoming, e.Name())
		owner := flock.New(path, flock.SetFlag(os.O_RDONLY))
		free, err := owner.TryLock()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && free {
			err = errors.Join(os.Remove(path), owner.Unlock())
		}
		if err != nil {
			return fmt.Errorf("removing what an upload left: %w", err)
		}
	}
	return nil
}

// used returns the bytes of all files but one.
func (d *Directory) used(ctx context.Context, but Digest) (int64, error) {
	var sum int64
	for b, err := range d.All(ctx) {
		if err != nil {
			return 0, err
		}
		if b.Digest != but {
			sum += b.Size
		}
	}
	return sum, nil
}

// Put implements [Store].
func (d *Directory) Put(ctx context.Context, from io.Reader, limit int64) (digest Digest, size int64, err error) {
	var file *os.File
	var owner *flock.Flock
	var used int64
	err = d.locked(ctx, func() (err error) {
		if err = d.sweep(); err != nil {
			return err
		}
		if used, err = d.used(ctx, ""); err != nil {
			return err
		}
		if file, err = os.CreateTemp(filepath.Join(d.dir, incoming), "put-"); err != nil { // with 0600
			return err
		}
		owner = flock.New(file.Name(), flock.SetFlag(os.O_RDONLY))
		_, err = owner.TryLock()
		return err
	})
	if file != nil {
		defer func() {
			// After the move to its place there is nothing to remove, and it is closed.
			file.Close()
			os.Remove(file.Name())
			err = errors.Join(err, owner.Unlock())
		}()
	}
	if err != nil {
		return "", 0, fmt.Errorf("storing a file: %w", err)
	}
	// A content that is there already needs no room, but that is known only when it has been received.
	room := max(d.most-used, min(used, d.most))
	if digest, size, err = receive(ctx, file, from, limit, room, d.most); err != nil {
		return "", 0, err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return "", 0, fmt.Errorf("storing a file: %w", err)
	}
	err = d.locked(ctx, func() error { return d.place(ctx, file.Name(), digest, size) })
	if err != nil {
		return "", 0, fmt.Errorf("storing a file: %w", err)
	}
	return digest, size, nil
}

// place moves a whole file to its place.
func (d *Directory) place(ctx context.Context, from string, digest Digest, size int64) error {
	used, err := d.used(ctx, digest)
	if err != nil {
		return err
	}
	if used+size > d.most {
		return &FullError{Most: d.most}
	}
	to := d.path(digest)
	if err := os.Mkdir(filepath.Dir(to), 0o700); err == nil {
		err = syncDirectory(d.dir)
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(to))
}

// syncDirectory writes the names in a directory to the disk.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Get implements [Store].
func (d *Directory) Get(ctx context.Context, digest Digest) (io.ReadCloser, error) {
	if err := digest.check(); err != nil {
		return nil, err
	}
	file, err := os.Open(d.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", digest, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("opening a stored file: %w", err)
	}
	return verify(struct {
		io.Reader
		io.Closer
	}{whileLive{ctx, file}, file}, digest), nil
}

// Delete implements [Store].
func (d *Directory) Delete(ctx context.Context, digest Digest) error {
	if err := digest.check(); err != nil {
		return err
	}
	err := d.locked(ctx, func() error {
		err := os.Remove(d.path(digest))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("removing a stored file: %w", err)
	}
	return nil
}

// All implements [Store].
func (d *Directory) All(ctx context.Context) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		shards, err := os.ReadDir(d.dir)
		if err != nil {
			yield(Blob{}, fmt.Errorf("listing the blob store: %w", err))
			return
		}
		for _, s := range shards {
			if !s.IsDir() || len(s.Name()) != shard {
				continue
			}
			if ctx.Err() != nil {
				yield(Blob{}, fmt.Errorf("listing the blob store: %w", context.Cause(ctx)))
				return
			}
			files, err := os.ReadDir(filepath.Join(d.dir, s.Name()))
			if err != nil {
				yield(Blob{}, fmt.Errorf("listing the blob store: %w", err))
				return
			}
			for _, f := range files {
				digest, err := ParseDigest(f.Name())
				if err != nil {
					continue // not one of ours
				}
				info, err := f.Info()
				if errors.Is(err, fs.ErrNotExist) {
					continue // removed meanwhile
				}
				if err != nil {
					err = fmt.Errorf("listing the blob store: %w", err)
				}
				b := Blob{Digest: digest}
				if err == nil {
					b.Size, b.Stored = info.Size(), info.ModTime()
				}
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}
