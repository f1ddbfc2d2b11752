package artifact_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/artifact"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(childMain())
	}
	goleak.VerifyTestMain(m)
}

// fetcher is a source of artifacts of one file each. Its hooks run inside Fetch.
type fetcher struct {
	fetch func(ctx context.Context, req artifact.Request, dir string, progress artifact.ProgressFunc) error

	mu      sync.Mutex
	fetched []string // tags
}

func (*fetcher) Name() string { return "files" }

// Resolve treats the tags "v1" and "1" as the same.
func (*fetcher) Resolve(req artifact.Request) (artifact.Request, error) {
	if req.Tag[0] == 'v' {
		req.Tag = req.Tag[1:]
	}
	return req, nil
}

func (f *fetcher) Fetch(ctx context.Context, req artifact.Request, dir string, progress artifact.ProgressFunc) (string, error) {
	f.mu.Lock()
	f.fetched = append(f.fetched, req.Tag)
	f.mu.Unlock()
	if f.fetch != nil {
		if err := f.fetch(ctx, req, dir, progress); err != nil {
			return "", err
		}
	}
	return "identity of " + req.Tag, os.WriteFile(filepath.Join(dir, "content"), []byte(req.Tag), 0o644)
}

// fetches returns the tags fetched so far, in order.
func (f *fetcher) fetches() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.fetched...)
}

func openCache(t *testing.T, opts artifact.Options, providers ...artifact.Provider) *artifact.Cache {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	opts.Providers = providers
	cache, err := artifact.Open(opts)
	require.NoError(t, err)
	return cache
}

func tag(tag string) artifact.Request { return artifact.Request{Provider: "files", Tag: tag} }

func acquire(t *testing.T, cache *artifact.Cache, req artifact.Request) *artifact.Handle {
	t.Helper()
	handle, err := cache.Acquire(t.Context(), req, nil)
	require.NoError(t, err)
	return handle
}

// storedTags returns the tags in the cache, the most recently used first.
func storedTags(t *testing.T, cache *artifact.Cache) []string {
	t.Helper()
	entries, err := cache.List()
	require.NoError(t, err)
	tags := []string{}
	for _, e := range entries {
		tags = append(tags, e.Request.Tag)
	}
	return tags
}

// requireClean checks that there are no leftovers of unfinished work and no locks without an entry.
func requireClean(t *testing.T, cache *artifact.Cache) {
	t.Helper()
	names := func(sub, pattern string) []string {
		found, err := filepath.Glob(filepath.Join(cache.Dir(), sub, pattern))
		require.NoError(t, err)
		return found
	}
	require.Empty(t, names("tmp", "*"))
	require.LessOrEqual(t, len(names("locks", "files-*")), len(names("entries", "*")))
}

// steppingClock returns a clock that advances by a second with each call.
func steppingClock() func() time.Time {
	var mu sync.Mutex
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
}

// writeExecutable writes a program that can be run at once. A child forked while the file is open for writing would keep it
// open until its exec, and running the file would fail with "text file busy".
func writeExecutable(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o755))
}
