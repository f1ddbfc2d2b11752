package collection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/suite"
)

// SuiteCache holds unpacked suites by content hash: a changed benchmark needs
// no new collector.
type SuiteCache struct{ dir string }

// OpenSuiteCache opens the cache in a directory, creating it if necessary.
// Collectors of one machine may share it.
func OpenSuiteCache(dir string) (*SuiteCache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the suite cache: %w", err)
	}
	return &SuiteCache{dir: dir}, nil
}

// FetchedSuite is a suite with the directory of its files.
type FetchedSuite struct {
	Suite *suite.Suite
	Dir   string
}

// Get returns the suite with a content hash, fetching it if it is missing or its files
// were changed: any process on the machine might have done that.
func (c *SuiteCache) Get(ctx context.Context, api API, hash string, policy apiclient.RetryPolicy) (FetchedSuite, error) {
	dir := filepath.Join(c.dir, hash)
	if suite.Verify(dir, hash) != nil {
		if err := c.fetch(ctx, api, hash, policy); err != nil {
			return FetchedSuite{}, err
		}
	}
	s, err := suite.LoadDir(dir)
	if err != nil {
		return FetchedSuite{}, permanent(fmt.Errorf("loading suite %s: %w", hash, err))
	}
	return FetchedSuite{Suite: s, Dir: dir}, nil
}

func (c *SuiteCache) fetch(ctx context.Context, api API, hash string, policy apiclient.RetryPolicy) error {
	var archive []byte
	err := apiclient.Retry(ctx, policy, func(ctx context.Context) (err error) {
		archive, err = api.SuiteArchive(ctx, hash)
		return err
	})
	if errors.Is(err, apiclient.ErrNotFound) {
		return permanent(fmt.Errorf("fetching suite %s: %w", hash, err))
	}
	if err != nil {
		return infrastructure(fmt.Errorf("fetching suite %s: %w", hash, err))
	}
	dir := filepath.Join(c.dir, hash)
	if err := remove(dir); err != nil {
		return infrastructure(fmt.Errorf("removing the changed suite %s: %w", hash, err))
	}
	if err := suite.Unpack(bytes.NewReader(archive), hash, dir); err != nil {
		return infrastructure(fmt.Errorf("unpacking suite %s: %w", hash, err))
	}
	return nil
}

// remove removes a suite. Its directory never exists with only some of its files.
func remove(dir string) error {
	away, err := os.MkdirTemp(filepath.Dir(dir), ".changed-")
	if err != nil {
		return err
	}
	if err := ignore(os.Rename(dir, filepath.Join(away, "suite")), fs.ErrNotExist); err != nil {
		return errors.Join(err, os.RemoveAll(away))
	}
	return os.RemoveAll(away)
}
