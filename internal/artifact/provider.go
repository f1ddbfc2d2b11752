package artifact

import (
	"context"
	"sync"
	"time"
)

// Provider is one kind of source of artifacts. Every provider is also a [Fetcher] or a [Locator], not both.
// Providers are safe for concurrent use: a [Cache] calls them from any number of goroutines, Resolve under no lock.
type Provider interface {
	// Name returns the name of the provider in suites. It never changes and consists of letters, digits and "-".
	Name() string
	// Resolve checks a request without touching network or disk and returns it in canonical form: requests that mean the
	// same artifact resolve to equal requests, and a resolved request resolves to itself. Fields that do not distinguish
	// artifacts, such as a target that the provider ignores, are left out. Its errors are of kind [Invalid].
	Resolve(Request) (Request, error)
}

// Fetcher is a provider whose artifacts are downloaded into the cache. The cache calls Fetch holding the exclusive lock of
// the artifact's entry, which other processes on the machine respect as well.
type Fetcher interface {
	Provider
	// Fetch puts the artifact of a resolved request into dir, an empty directory on the cache's file system, and returns the
	// identity of its content: a string that is the same wherever and whenever the same content is fetched. On return dir
	// contains the artifact and nothing else; after an error its content does not matter. No process and no goroutine
	// outlives the call, and progress, which is never nil, is not called after it.
	Fetch(ctx context.Context, req Request, dir string, progress ProgressFunc) (identity string, err error)
}

// Locator is a provider whose artifacts are already installed, or are installed by another program, and are used in place.
type Locator interface {
	Provider
	// Locate finds the artifact of a resolved request, and installs it if the request says so. The cache calls it for every
	// acquisition, one at a time per artifact and machine. It checks that the directory contains the requested artifact.
	Locate(ctx context.Context, req Request, progress ProgressFunc) (Location, error)
}

// Location is an artifact that is used in place.
type Location struct {
	Dir      string // absolute
	Identity string // changes whenever the content may have changed
}

// Progress describes how far an acquisition has got.
type Progress struct {
	Step  string // such as "downloading go 1.25.3"
	Done  int64  // bytes
	Total int64  // bytes; 0 if unknown
}

// ProgressFunc receives the progress of an acquisition. Calls do not overlap.
type ProgressFunc func(Progress)

// beatInterval is the longest interval between reports of an acquisition, even if its provider is silent: progress feeds
// heartbeats.
const beatInterval = 2 * time.Second

// beat wraps progress so that calls never overlap and the last report is repeated every beatInterval until stop is called.
func beat(progress ProgressFunc, first Progress) (report ProgressFunc, stop func()) {
	if progress == nil {
		return func(Progress) {}, func() {}
	}
	var mu sync.Mutex
	last := first
	progress(last)
	report = func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		last = p
		progress(p)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(beatInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				mu.Lock()
				progress(last)
				mu.Unlock()
			}
		}
	})
	return report, func() { close(done); wg.Wait() }
}

// DefaultProviders returns all providers of this package with default settings, except [Built], which needs a source.
func DefaultProviders() []Provider {
	return []Provider{&GoToolchain{}, GOROOT{}, &Rustup{}, Directory{}, &URL{}}
}
