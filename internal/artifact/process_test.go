package artifact_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/artifact"
)

const childVariable = "BENCHLOOM_ARTIFACT_TEST_CACHE"

// childMain is a collector in a separate process: it acquires tag 1 and releases it. It reports each step on standard output
// and continues when it reads a line.
func childMain() int {
	input := bufio.NewReader(os.Stdin)
	proceed := func() { _, _ = input.ReadString('\n') }
	files := &fetcher{fetch: func(_ context.Context, _ artifact.Request, dir string, _ artifact.ProgressFunc) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			return err
		}
		fmt.Println("fetching")
		proceed()
		return nil
	}}
	err := func() error {
		cache, err := artifact.Open(artifact.Options{Dir: os.Getenv(childVariable), Providers: []artifact.Provider{files}})
		if err != nil {
			return err
		}
		waits := false
		handle, err := cache.Acquire(context.Background(), tag("1"), func(p artifact.Progress) {
			if strings.HasPrefix(p.Step, "waiting") && !waits {
				waits = true
				fmt.Println("waiting")
			}
		})
		if err != nil {
			return err
		}
		fmt.Println("acquired " + handle.Dir())
		proceed()
		return handle.Release()
	}()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("released")
	return 0
}

// collector is a running child process.
type collector struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.Writer
	stdout *bufio.Reader
}

func startCollector(t *testing.T, dir string) *collector {
	t.Helper()
	c := &collector{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	c.cmd.Env = append(os.Environ(), childVariable+"="+dir)
	stdin, err := c.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.cmd.Stderr = os.Stderr
	c.stdin, c.stdout = stdin, bufio.NewReader(stdout)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Wait() })
	return c
}

func (c *collector) says(want string) {
	c.t.Helper()
	line, err := c.stdout.ReadString('\n')
	require.NoError(c.t, err, line)
	require.Equal(c.t, want+"\n", line)
}

func (c *collector) proceed() {
	c.t.Helper()
	_, err := io.WriteString(c.stdin, "\n")
	require.NoError(c.t, err)
}

func TestTwoProcessesShareOneFetch(t *testing.T) {
	t.Parallel()
	cache := openCache(t, artifact.Options{MaxEntries: 1}, &fetcher{})
	first := startCollector(t, cache.Dir())
	first.says("fetching")
	second := startCollector(t, cache.Dir())
	second.says("waiting")
	require.Empty(t, storedTags(t, cache), "what is not complete is not there")

	first.proceed()
	dir, err := filepath.Glob(filepath.Join(cache.Dir(), "entries"))
	require.NoError(t, err)
	require.Len(t, dir, 1)
	line, err := second.stdout.ReadString('\n')
	require.NoError(t, err)
	first.says(strings.TrimSpace(line))
	require.Contains(t, line, "acquired "+dir[0])

	// While in use by others, it is neither evicted nor purged.
	other := acquire(t, cache, tag("2"))
	require.ElementsMatch(t, []string{"1", "2"}, storedTags(t, cache))
	_, kept, err := cache.Purge("1")
	require.NoError(t, err)
	require.Len(t, kept, 1)

	first.proceed()
	first.says("released")
	require.NoError(t, other.Release())
	second.proceed()
	second.says("released")
	_, kept, err = cache.Purge("1")
	require.NoError(t, err)
	require.Empty(t, kept)
}

func TestACrashedFetchIsCleanedUp(t *testing.T) {
	t.Parallel()
	files := &fetcher{}
	cache := openCache(t, artifact.Options{}, files)
	crashing := startCollector(t, cache.Dir())
	crashing.says("fetching")
	leftovers := func() []string {
		found, err := filepath.Glob(filepath.Join(cache.Dir(), "tmp", "*", "artifact", "half"))
		require.NoError(t, err)
		return found
	}

	// Opening the cache does not disturb a running fetch.
	openCache(t, artifact.Options{Dir: cache.Dir()}, files)
	require.Len(t, leftovers(), 1)

	require.NoError(t, crashing.cmd.Process.Kill())
	require.Error(t, crashing.cmd.Wait())
	openCache(t, artifact.Options{Dir: cache.Dir()}, files)
	require.Empty(t, leftovers())

	// A cache that has been open all the time fetches again, too.
	crashing = startCollector(t, cache.Dir())
	crashing.says("fetching")
	require.NoError(t, crashing.cmd.Process.Kill())
	require.Error(t, crashing.cmd.Wait())
	handle := acquire(t, cache, tag("1"))
	defer handle.Release()
	require.NoFileExists(t, filepath.Join(handle.Dir(), "half"))
	require.Equal(t, []string{"1"}, files.fetches())
	requireClean(t, cache)
}
