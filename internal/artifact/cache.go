package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options configure a [Cache].
type Options struct {
	// Dir is the cache's directory; it is created if missing. The collectors of a machine should use the same one, as the
	// same user. It must be on a local file system (locks) and readable for the users that benchmarks run as.
	Dir string
	// Providers are the providers of artifacts, by name.
	Providers []Provider
	// MaxBytes limits the total size of stored artifacts; 0 means no limit. Artifacts in use are never evicted, so they may
	// exceed the limit. 20 to 50 GB suit a machine that tracks a compiler.
	MaxBytes int64
	// MaxEntries limits the number of stored artifacts in the same way; 0 means no limit.
	MaxEntries int
	// Now is the clock that orders artifacts by their last use; nil means time.Now.
	Now func() time.Time
}

// Cache provides artifacts. It is safe for concurrent use, also by several caches and processes on one directory.
//
// The directory holds, for each artifact, entries/<name>/artifact (its files), entries/<name>/entry.json (the marker that
// makes the entry valid; its modification time is the last use) and locks/<name>.lock. The lock is held shared while the
// artifact is in use, and exclusively while it is fetched or removed. Fetching and removing happens in tmp/<name>, so that
// entries/<name> is always complete; leftovers of a crash in tmp may be removed under the exclusive lock.
type Cache struct {
	dir        string
	providers  map[string]Provider
	maxBytes   int64
	maxEntries int
	now        func() time.Time
}

// Open opens or creates the cache in opts.Dir and removes leftovers of crashed fetches.
func Open(opts Options) (*Cache, error) {
	if opts.Dir == "" {
		return nil, errors.New("opening artifact cache: no directory given")
	}
	if opts.MaxBytes < 0 || opts.MaxEntries < 0 {
		return nil, fmt.Errorf("opening artifact cache %s: bounds must not be negative: %d bytes, %d entries", opts.Dir, opts.MaxBytes, opts.MaxEntries)
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening artifact cache: %w", err)
	}
	c := &Cache{dir: dir, providers: map[string]Provider{}, maxBytes: opts.MaxBytes, maxEntries: opts.MaxEntries, now: opts.Now}
	if c.now == nil {
		c.now = time.Now
	}
	for _, p := range opts.Providers {
		_, fetches := p.(Fetcher)
		_, locates := p.(Locator)
		if fetches == locates {
			return nil, fmt.Errorf("opening artifact cache: provider %q must be either a Fetcher or a Locator", p.Name())
		}
		if c.providers[p.Name()] != nil {
			return nil, fmt.Errorf("opening artifact cache: two providers are named %q", p.Name())
		}
		c.providers[p.Name()] = p
	}
	// The users that benchmarks run as read artifacts; only the cache's own user may take its locks.
	for sub, perm := range map[string]fs.FileMode{"entries": 0o755, "tmp": 0o755, "locks": 0o700} {
		if err := os.MkdirAll(filepath.Join(dir, sub), perm); err != nil {
			return nil, fmt.Errorf("opening artifact cache: %w", err)
		}
	}
	if err := c.sweep(); err != nil {
		return nil, fmt.Errorf("opening artifact cache: %w", err)
	}
	return c, nil
}

// Dir returns the cache's directory, an absolute path.
func (c *Cache) Dir() string { return c.dir }

// Resolve checks a request and returns its canonical form, as [Provider] says. Errors are of kind [Invalid].
func (c *Cache) Resolve(req Request) (Request, error) {
	_, resolved, err := c.resolve(req)
	return resolved, err
}

func (c *Cache) resolve(req Request) (Provider, Request, error) {
	p := c.providers[req.Provider]
	if p == nil {
		return nil, Request{}, req.invalid(fmt.Sprintf("unknown provider %q", req.Provider),
			"use one of "+strings.Join(slices.Sorted(maps.Keys(c.providers)), ", "))
	}
	if req.Tag == "" {
		return nil, Request{}, req.invalid("no tag given", "name a version or SHA")
	}
	req, err := p.Resolve(req)
	return p, req, err
}

// Handle is an acquired artifact.
type Handle struct {
	req      Request
	dir      string
	identity string
	release  func() error
}

// Dir returns the artifact's directory, an absolute path. Its content does not change until Release.
func (h *Handle) Dir() string { return h.dir }

// Identity identifies the content: results with equal identities were measured with the same artifact. Its form depends on
// the provider.
func (h *Handle) Identity() string { return h.identity }

// Request returns the resolved request: normalised tag, explicit target.
func (h *Handle) Request() Request { return h.req }

// Release releases the artifact, which may then be evicted. Calling it again does nothing and returns the same error, which
// reports that the cache could not be shrunk to its limits.
func (h *Handle) Release() error { return h.release() }

// Acquire makes the artifact available: from the cache, by fetching it, or in place. If several callers, in this or other
// processes, acquire the same missing artifact, one fetches it and the others wait. Progress may be nil; otherwise it is
// called at least every two seconds, and never after Acquire has returned. The handle stays valid when ctx ends.
func (c *Cache) Acquire(ctx context.Context, req Request, progress ProgressFunc) (*Handle, error) {
	p, req, err := c.resolve(req)
	if err != nil {
		return nil, err
	}
	report, stop := beat(progress, Progress{Step: "looking for " + req.String()})
	defer stop()
	var h *Handle
	switch p := p.(type) {
	case Locator:
		h, err = c.locate(ctx, p, req, report)
	case Fetcher:
		h, err = c.acquireStored(ctx, p, req, report)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && KindOf(err) != Cancelled {
		// The error of a cancelled download or a killed process is not the reason.
		if !errors.Is(cause, ctx.Err()) {
			cause = fmt.Errorf("%w: %w", ctx.Err(), cause)
		}
		return nil, fmt.Errorf("acquiring %s: %w", req, cause)
	}
	if _, explained := errors.AsType[*Error](err); explained {
		return nil, err // names the artifact already
	}
	if err != nil {
		return nil, fmt.Errorf("acquiring %s: %w", req, err)
	}
	return h, nil
}

func (c *Cache) locate(ctx context.Context, p Locator, req Request, report ProgressFunc) (*Handle, error) {
	l, err := c.lockEntry(ctx, req, true, report)
	if err != nil {
		return nil, err
	}
	found, err := p.Locate(ctx, req, report)
	if err := errors.Join(err, l.unlockAndRemove()); err != nil {
		return nil, err
	}
	return &Handle{req: req, dir: found.Dir, identity: found.Identity, release: func() error { return nil }}, nil
}

func (c *Cache) acquireStored(ctx context.Context, p Fetcher, req Request, report ProgressFunc) (*Handle, error) {
	for {
		shared, err := c.lockEntry(ctx, req, false, report)
		if err != nil {
			return nil, err
		}
		if e, err := c.readEntry(req.entryName()); err == nil && e.Request.Key() == req.Key() {
			return c.handOut(ctx, e, shared)
		}
		if err := shared.unlock(); err != nil {
			return nil, err
		}
		if err := c.fetchMissing(ctx, p, req, report); err != nil {
			return nil, err
		}
	}
}

// handOut returns a handle for a valid entry, locked shared.
func (c *Cache) handOut(ctx context.Context, e Entry, shared *fileLock) (*Handle, error) {
	err := c.touch(e.name)
	if err == nil {
		err = c.shrink(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, shared.unlock())
	}
	return &Handle{
		req:      e.Request,
		dir:      filepath.Join(c.entryDir(e.name), "artifact"),
		identity: e.Identity,
		release: sync.OnceValue(func() error {
			// The last use is the end of the use. An error here would reappear at the entry's next use.
			_ = c.touch(e.name)
			if err := shared.unlock(); err != nil {
				return fmt.Errorf("releasing %s: %w", e.Request, err)
			}
			if err := c.shrink(context.WithoutCancel(ctx)); err != nil {
				return fmt.Errorf("after releasing %s: %w", e.Request, err)
			}
			return nil
		}),
	}, nil
}

// fetchMissing fetches the artifact unless it has been fetched in the meantime.
func (c *Cache) fetchMissing(ctx context.Context, p Fetcher, req Request, report ProgressFunc) error {
	exclusive, err := c.lockEntry(ctx, req, true, report)
	if err != nil {
		return err
	}
	if e, err := c.readEntry(req.entryName()); err == nil && e.Request.Key() == req.Key() {
		return exclusive.unlock()
	}
	err = c.fetch(ctx, p, req, report)
	if err != nil && KindOf(err) == DiskFull {
		// Unused artifacts are worth less than the requested one.
		if freed, evictErr := c.evictIdle(ctx); evictErr == nil && freed > 0 {
			err = c.fetch(ctx, p, req, report)
		}
	}
	if err != nil {
		return errors.Join(c.explainDiskFull(req, err), exclusive.unlockAndRemove())
	}
	return exclusive.unlock()
}

func (c *Cache) explainDiskFull(req Request, err error) error {
	if KindOf(err) != DiskFull {
		return err
	}
	return &Error{
		Kind: DiskFull, Artifact: req.String(), Err: err,
		Reason: "no space left in the artifact cache " + c.dir,
		Remedy: "free space there, purge artifacts that are not needed, or lower the cache's size limit",
	}
}

// fetch fetches into tmp and publishes the entry. The caller holds the exclusive lock.
func (c *Cache) fetch(ctx context.Context, p Fetcher, req Request, report ProgressFunc) (err error) {
	name := req.entryName()
	work := c.tmpDir(name)
	if err := removeTree(work); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeTree(work)) }()
	content := filepath.Join(work, "artifact")
	for _, dir := range []string{work, content} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	report(Progress{Step: "fetching " + req.String()})
	identity, err := p.Fetch(ctx, req, content, report)
	if err != nil {
		return err
	}
	report(Progress{Step: "storing " + req.String()})
	size, err := treeSize(content)
	if err != nil {
		return fmt.Errorf("determining the size of the fetched files: %w", err)
	}
	if err := syncTree(content); err != nil {
		return err
	}
	if err := writeMarker(work, Entry{Request: req, Identity: identity, Bytes: size, FetchedAt: c.now().UTC()}); err != nil {
		return err
	}
	if err := removeTree(c.entryDir(name)); err != nil { // a damaged one
		return err
	}
	return os.Rename(work, c.entryDir(name))
}

func (c *Cache) lockEntry(ctx context.Context, req Request, exclusive bool, report ProgressFunc) (*fileLock, error) {
	told := false
	l, err := lock(ctx, c.lockPath(req.entryName()), exclusive, func() {
		if !told {
			report(Progress{Step: "waiting for another fetch of " + req.String()})
			told = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("locking the cache entry: %w", err)
	}
	return l, nil
}

func (c *Cache) entryDir(name string) string { return filepath.Join(c.dir, "entries", name) }
func (c *Cache) tmpDir(name string) string   { return filepath.Join(c.dir, "tmp", name) }
func (c *Cache) lockPath(name string) string { return filepath.Join(c.dir, "locks", name+lockFileType) }
func (c *Cache) marker(name string) string   { return filepath.Join(c.entryDir(name), markerName) }

// touch sets the entry's last use to now.
func (c *Cache) touch(name string) error {
	now := c.now()
	return os.Chtimes(c.marker(name), now, now)
}

func (c *Cache) readEntry(name string) (Entry, error) {
	data, err := os.ReadFile(c.marker(name))
	if err != nil {
		return Entry{}, err
	}
	e := Entry{name: name}
	if err := json.Unmarshal(data, &e); err != nil {
		return Entry{}, fmt.Errorf("reading %s: %w", c.marker(name), err)
	}
	info, err := os.Stat(c.marker(name))
	if err != nil {
		return Entry{}, err
	}
	e.LastUsed = info.ModTime()
	_, err = os.Stat(filepath.Join(c.entryDir(name), "artifact"))
	return e, err
}
