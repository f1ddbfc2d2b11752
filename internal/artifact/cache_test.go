package artifact_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/artifact"
)

func TestAnArtifactIsFetchedOnceAndThenReused(t *testing.T) {
	t.Parallel()
	files := &fetcher{}
	dir := t.TempDir()
	first := acquire(t, openCache(t, artifact.Options{Dir: dir}, files), tag("v1"))
	require.Equal(t, "identity of 1", first.Identity())
	require.Equal(t, "1", first.Request().Tag)
	require.True(t, filepath.IsAbs(first.Dir()))
	require.NoError(t, first.Release())
	require.NoError(t, first.Release())

	// A cache opened later on the same directory provides the same artifact.
	again := acquire(t, openCache(t, artifact.Options{Dir: dir}, files), tag("1"))
	defer again.Release()
	require.Equal(t, first.Dir(), again.Dir())
	require.Equal(t, first.Identity(), again.Identity())
	content, err := os.ReadFile(filepath.Join(again.Dir(), "content"))
	require.NoError(t, err)
	require.Equal(t, "1", string(content))
	require.Equal(t, []string{"1"}, files.fetches())

	// Different requests have different artifacts.
	other := acquire(t, openCache(t, artifact.Options{Dir: dir}, files), artifact.Request{Provider: "files", Tag: "1", Target: "x86_64-unknown-linux-gnu"})
	defer other.Release()
	require.NotEqual(t, first.Dir(), other.Dir())
}

func TestOfManyWhoWantAnArtifactAtOnceOneFetches(t *testing.T) {
	t.Parallel()
	const waiters = 7
	everybodyWaits := make(chan struct{})
	files := &fetcher{fetch: func(ctx context.Context, _ artifact.Request, _ string, _ artifact.ProgressFunc) error {
		select {
		case <-everybodyWaits:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	cache := openCache(t, artifact.Options{}, files)
	var waiting atomic.Int32
	var wg sync.WaitGroup
	for range waiters + 1 {
		wg.Go(func() {
			handle, err := cache.Acquire(t.Context(), tag("1"), func() artifact.ProgressFunc {
				var once sync.Once
				return func(p artifact.Progress) {
					if strings.HasPrefix(p.Step, "waiting") {
						once.Do(func() {
							if waiting.Add(1) == waiters {
								close(everybodyWaits)
							}
						})
					}
				}
			}())
			if err == nil {
				err = handle.Release()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []string{"1"}, files.fetches())
}

func TestTheLeastRecentlyUsedIsEvicted(t *testing.T) {
	t.Parallel()
	for name, bounds := range map[string]artifact.Options{
		"by number": {MaxEntries: 2},
		"by size":   {MaxBytes: 2}, // each has one byte
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bounds.Now = steppingClock()
			cache := openCache(t, bounds, &fetcher{})
			for _, name := range []string{"1", "2", "1", "3"} {
				require.NoError(t, acquire(t, cache, tag(name)).Release())
			}
			require.Equal(t, []string{"3", "1"}, storedTags(t, cache))
			requireClean(t, cache)
		})
	}
}

func TestWhatIsInUseIsNeverEvicted(t *testing.T) {
	t.Parallel()
	cache := openCache(t, artifact.Options{MaxEntries: 1, Now: steppingClock()}, &fetcher{})
	one, two := acquire(t, cache, tag("1")), acquire(t, cache, tag("2"))
	require.Equal(t, []string{"2", "1"}, storedTags(t, cache), "both are in use, whatever the bound says")
	alsoOne := acquire(t, cache, tag("1"))
	require.Equal(t, []string{"1", "2"}, storedTags(t, cache), "its last use is now")
	require.NoError(t, one.Release())
	require.FileExists(t, filepath.Join(alsoOne.Dir(), "content"), "the other user still has it")
	require.NoError(t, two.Release())
	require.Equal(t, []string{"1"}, storedTags(t, cache))
	require.NoError(t, alsoOne.Release())
	require.Equal(t, []string{"1"}, storedTags(t, cache), "the bound leaves room for one")
}

func TestTheLastUseIsTheEndOfTheUse(t *testing.T) {
	t.Parallel()
	cache := openCache(t, artifact.Options{MaxEntries: 2, Now: steppingClock()}, &fetcher{})
	one, two := acquire(t, cache, tag("1")), acquire(t, cache, tag("2"))
	require.NoError(t, two.Release())
	require.NoError(t, one.Release())
	require.NoError(t, acquire(t, cache, tag("3")).Release())
	require.Equal(t, []string{"3", "1"}, storedTags(t, cache))
}

func TestListAndPurge(t *testing.T) {
	t.Parallel()
	clock := steppingClock()
	cache := openCache(t, artifact.Options{Now: clock}, &fetcher{})
	used := acquire(t, cache, tag("1"))
	arm := tag("1")
	arm.Target = "aarch64-unknown-linux-gnu"
	require.NoError(t, acquire(t, cache, arm).Release())
	require.NoError(t, acquire(t, cache, tag("2")).Release())

	entries, err := cache.List()
	require.NoError(t, err)
	require.Len(t, entries, 3)
	require.Equal(t, tag("2"), entries[0].Request)
	require.Equal(t, "identity of 2", entries[0].Identity)
	require.EqualValues(t, 1, entries[0].Bytes)
	require.False(t, entries[0].InUse)
	require.True(t, entries[0].LastUsed.After(entries[0].FetchedAt))
	require.True(t, entries[2].InUse)

	// The tag may be written as a person writes it; artifacts in use stay.
	removed, kept, err := cache.Purge("v1")
	require.NoError(t, err)
	require.Len(t, removed, 1)
	require.Equal(t, arm, removed[0].Request)
	require.Len(t, kept, 1)
	require.Equal(t, tag("1"), kept[0].Request)
	require.FileExists(t, filepath.Join(used.Dir(), "content"))
	require.NoError(t, used.Release())
	removed, kept, err = cache.Purge("1")
	require.NoError(t, err)
	require.Len(t, removed, 1)
	require.Empty(t, kept)
	require.Equal(t, []string{"2"}, storedTags(t, cache))
	requireClean(t, cache)
}

func TestAFailedFetchLeavesNothing(t *testing.T) {
	t.Parallel()
	notFound := &artifact.Error{Kind: artifact.NotFound, Artifact: "files 1", Reason: "not there", Remedy: "ask for 2"}
	fail := true
	files := &fetcher{fetch: func(_ context.Context, _ artifact.Request, dir string, _ artifact.ProgressFunc) error {
		if !fail {
			return nil
		}
		// Half of it has arrived, in a directory that refuses to be removed.
		sealed := filepath.Join(dir, "sealed")
		return errors.Join(os.Mkdir(sealed, 0o755), os.WriteFile(filepath.Join(sealed, "half"), nil, 0o644), os.Chmod(sealed, 0o555), notFound)
	}}
	cache := openCache(t, artifact.Options{}, files)
	_, err := cache.Acquire(t.Context(), tag("1"), nil)
	require.ErrorIs(t, err, notFound)
	require.Equal(t, artifact.NotFound, artifact.KindOf(err))
	require.ErrorContains(t, err, "files 1: not there; ask for 2")
	require.Empty(t, storedTags(t, cache))
	requireClean(t, cache)
	fail = false
	require.NoError(t, acquire(t, cache, tag("1")).Release())
}

func TestADamagedEntryIsFetchedAgain(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, artifactDir string){
		"marker cut off": func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "..", "entry.json"), 10))
		},
		"marker gone": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "..", "entry.json")))
		},
		"content gone": func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := &fetcher{}
			cache := openCache(t, artifact.Options{}, files)
			handle := acquire(t, cache, tag("1"))
			require.NoError(t, handle.Release())
			damage(t, handle.Dir())
			again := acquire(t, cache, tag("1"))
			require.FileExists(t, filepath.Join(again.Dir(), "content"))
			require.Equal(t, []string{"1", "1"}, files.fetches())
			require.NoError(t, again.Release())

			// Opening the cache removes damaged entries as well.
			damage(t, handle.Dir())
			reopened := openCache(t, artifact.Options{Dir: cache.Dir()}, files)
			require.NoDirExists(t, filepath.Dir(handle.Dir()))
			requireClean(t, reopened)
		})
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	cache := openCache(t, artifact.Options{}, &fetcher{fetch: func(ctx context.Context, _ artifact.Request, _ string, _ artifact.ProgressFunc) error {
		<-ctx.Done()
		return errors.New("the server has hung up") // a consequence of the cancellation, not the reason
	}})
	ctx, cancel := context.WithCancel(t.Context())
	stop := errors.New("the request was cancelled")
	impatient, leave := context.WithCancelCause(t.Context())
	fetching := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var once sync.Once
		_, err := cache.Acquire(ctx, tag("1"), func(p artifact.Progress) {
			if strings.HasPrefix(p.Step, "fetching") {
				once.Do(func() { close(fetching) })
			}
		})
		if artifact.KindOf(err) != artifact.Cancelled || strings.Contains(err.Error(), "hung up") {
			t.Errorf("not a cancellation: %v", err)
		}
	})
	<-fetching
	_, err := cache.Acquire(impatient, tag("1"), func(p artifact.Progress) {
		if strings.HasPrefix(p.Step, "waiting") {
			leave(stop)
		}
	})
	require.ErrorIs(t, err, stop)
	require.Equal(t, artifact.Cancelled, artifact.KindOf(err))
	cancel()
	wg.Wait()
	requireClean(t, cache)
}

func TestAFullDisk(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs the device /dev/full")
	}
	var cache *artifact.Cache
	room := 0 // entries that fit
	files := &fetcher{fetch: func(context.Context, artifact.Request, string, artifact.ProgressFunc) error {
		if stored, err := cache.List(); err != nil || len(stored) < room {
			return err
		}
		return os.WriteFile("/dev/full", []byte("x"), 0o644)
	}}
	cache = openCache(t, artifact.Options{}, files)

	// With nothing left to evict, the error says where space is missing and what to do.
	_, err := cache.Acquire(t.Context(), tag("1"), nil)
	require.Equal(t, artifact.DiskFull, artifact.KindOf(err))
	require.False(t, artifact.KindOf(err).Permanent())
	require.ErrorContains(t, err, cache.Dir())
	require.ErrorContains(t, err, "purge artifacts that are not needed")
	requireClean(t, cache)

	// Unused artifacts are evicted; one in use is not.
	room = 2
	used := acquire(t, cache, tag("1"))
	defer used.Release()
	require.NoError(t, acquire(t, cache, tag("2")).Release())
	require.NoError(t, acquire(t, cache, tag("3")).Release())
	require.ElementsMatch(t, []string{"1", "3"}, storedTags(t, cache))
}

func TestProgressBeatsWhileAFetchIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		files := &fetcher{fetch: func(_ context.Context, _ artifact.Request, _ string, progress artifact.ProgressFunc) error {
			progress(artifact.Progress{Step: "downloading", Done: 1, Total: 2})
			time.Sleep(9 * time.Second) // of the bubble's clock
			return nil
		}}
		var mu sync.Mutex
		beats := 0
		handle, err := openCache(t, artifact.Options{}, files).Acquire(t.Context(), tag("1"), func(p artifact.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if p == (artifact.Progress{Step: "downloading", Done: 1, Total: 2}) {
				beats++
			}
		})
		require.NoError(t, err)
		defer handle.Release()
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 5, beats, "the provider's own and one every two seconds")
	})
}

func TestRequestsThatCanNeverWork(t *testing.T) {
	t.Parallel()
	cache := openCache(t, artifact.Options{}, &fetcher{})
	for _, c := range []struct {
		req  artifact.Request
		says string
	}{
		{artifact.Request{Provider: "fils", Tag: "1"}, `fils 1: unknown provider "fils"; use one of files`},
		{artifact.Request{Provider: "files"}, "no tag given"},
	} {
		_, err := cache.Acquire(t.Context(), c.req, nil)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, artifact.Invalid, artifact.KindOf(err))
		require.True(t, artifact.KindOf(err).Permanent())
	}
}

type nothing struct{}

func (nothing) Name() string                                           { return "nothing" }
func (nothing) Resolve(req artifact.Request) (artifact.Request, error) { return req, nil }

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for says, opts := range map[string]artifact.Options{
		"no directory":                    {},
		"must not be negative":            {Dir: t.TempDir(), MaxBytes: -1},
		`two providers are named "files"`: {Dir: t.TempDir(), Providers: []artifact.Provider{&fetcher{}, &fetcher{}}},
		"either a Fetcher or a Locator":   {Dir: t.TempDir(), Providers: []artifact.Provider{nothing{}}},
	} {
		_, err := artifact.Open(opts)
		require.ErrorContains(t, err, says)
	}
}

// Many users with too little space and continuous purging: held artifacts are always complete, and the limit is met in the
// end.
func TestEvictionAndUseAtTheSameTime(t *testing.T) {
	t.Parallel()
	const users, rounds, artifacts = 6, 25, 5
	dir := t.TempDir()
	files := &fetcher{}
	var wg sync.WaitGroup
	for user := range users {
		cache := openCache(t, artifact.Options{Dir: dir, MaxEntries: 2}, files)
		random := rand.New(rand.NewPCG(1, uint64(user)))
		wg.Go(func() {
			for range rounds {
				name := strconv.Itoa(1 + random.IntN(artifacts))
				handle, err := cache.Acquire(t.Context(), tag(name), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if _, _, err := cache.Purge(strconv.Itoa(1 + random.IntN(artifacts))); err != nil {
					t.Error(err)
				}
				content, err := os.ReadFile(filepath.Join(handle.Dir(), "content"))
				if err != nil || string(content) != name {
					t.Errorf("%q, %v instead of %s", content, err, name)
				}
				if err := handle.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	cache := openCache(t, artifact.Options{Dir: dir, MaxEntries: 2}, files)
	require.LessOrEqual(t, len(storedTags(t, cache)), 2)
	requireClean(t, cache)
}
