// Package suitecache keeps suites loaded by their content hash: for those who
// expand requests and compare results.
//
// A suite never changes under its hash, so nothing here is ever stale. It must
// not know projects or requests.
package suitecache

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/benchloom/benchloom/internal/suite"
)

// Archives reads stored suites; *store.Store implements it.
type Archives interface {
	SuiteArchive(ctx context.Context, hash string) (name string, archive []byte, err error)
}

// Cache holds loaded suites.
type Cache struct {
	archives Archives

	mu     sync.Mutex
	suites map[string]*suite.Suite
	order  []string // oldest first
}

// kept bounds how many suites are held: projects have few, and few versions of
// them matter at once.
const kept = 32

// New makes an empty cache.
func New(archives Archives) *Cache {
	return &Cache{archives: archives, suites: make(map[string]*suite.Suite)}
}

// Suite gives the suite with a content hash.
func (c *Cache) Suite(ctx context.Context, hash string) (*suite.Suite, error) {
	c.mu.Lock()
	known := c.suites[hash]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	_, archive, err := c.archives.SuiteArchive(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("reading suite %s: %w", hash, err)
	}
	loaded, err := Load(archive, hash)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suites[hash] == nil {
		c.suites[hash] = loaded
		c.order = append(c.order, hash)
	}
	if len(c.order) > kept {
		delete(c.suites, c.order[0])
		c.order = c.order[1:]
	}
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
