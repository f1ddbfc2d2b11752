// Package suitecache caches loaded suites by content hash, for expanding requests and comparing results.
//
// A suite never changes under its hash, so no entry is ever stale. The package must not know projects or requests.
package suitecache

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/suite"
)

// Archives reads stored suites; *store.Store implements it. A cache calls it from any number of
// goroutines, under no lock, so that several may ask for the same suite at once. It
// must not be nil.
type Archives interface {
	// SuiteArchive returns the archive of the suite with a content hash, or the store's error if there is none.
	SuiteArchive(ctx context.Context, hash string) (name string, archive []byte, err error)
}

// Cache is a cache of loaded suites.
type Cache struct {
	archives Archives
	suites   *ttlcache.Cache[string, *suite.Suite]
}

// kept is the number of most recently used suites in the cache: projects have few, and few versions of them matter at once.
const kept = 32

// New returns an empty cache. It needs no closing: nothing runs in the background.
func New(archives Archives) *Cache {
	return &Cache{archives: archives, suites: ttlcache.New(ttlcache.WithCapacity[string, *suite.Suite](kept))}
}

// Suite returns the suite with a content hash.
func (c *Cache) Suite(ctx context.Context, hash string) (*suite.Suite, error) {
	if known := c.suites.Get(hash); known != nil {
		return known.Value(), nil
	}
	_, archive, err := c.archives.SuiteArchive(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("reading suite %s: %w", hash, err)
	}
	loaded, err := Load(archive, hash)
	if err != nil {
		return nil, err
	}
	c.suites.Set(hash, loaded, ttlcache.NoTTL)
	return loaded, nil
}

// Load reads a suite from its archive, which must have the given content hash.
func Load(archive []byte, hash string) (*suite.Suite, error) {
	dir, err := os.MkdirTemp("", "benchloom-suite-*")
	if err != nil {
		return nil, fmt.Errorf("unpacking suite %s: %w", hash, err)
	}
	defer os.RemoveAll(dir)
	files := filepath.Join(dir, "suite")
	if err := suite.Unpack(bytes.NewReader(archive), hash, files); err != nil {
		return nil, fmt.Errorf("unpacking suite %s: %w", hash, err)
	}
	loaded, err := suite.LoadDir(files)
	if err != nil {
		return nil, fmt.Errorf("loading suite %s: %w", hash, err)
	}
	return loaded, nil
}
