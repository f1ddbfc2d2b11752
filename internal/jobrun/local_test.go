//go:build linux

package jobrun_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/suite"
)

// counting counts how often each artifact is acquired.
type counting struct {
	jobrun.Artifacts
	acquired map[string]int
}

func (c counting) Acquire(ctx context.Context, r artifact.Request, progress artifact.ProgressFunc) (*artifact.Handle, error) {
	c.acquired[r.Tag]++
	return c.Artifacts.Acquire(ctx, r, progress)
}

// localOptions returns the options of a run of the local suite on the artifacts v1 and v2, which sandboxes of the tests run
// without limits.
func localOptions(t *testing.T, program string) (jobrun.LocalOptions, counting) {
	t.Helper()
	b := newBundle(t)
	root := filepath.Dir(b.suite)
	for _, tag := range []string{"v1", "v2"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "artifacts", tag), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, "artifacts", tag, "program"), []byte(program), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(b.suite, suite.FileName),
		[]byte(fmt.Sprintf(localSuite, filepath.Join(root, "artifacts"))), 0o644))
	cache, err := artifact.Open(artifact.Options{Dir: filepath.Join(root, "artifact-cache"), Providers: []artifact.Provider{artifact.Directory{}}})
	require.NoError(t, err)
	artifacts := counting{cache, map[string]int{}}
	return jobrun.LocalOptions{SuiteDir: b.suite, Tags: []string{"v1", "v2"}, Artifacts: artifacts, Machine: b.machine}, artifacts
}

// A run in looks measures what each look asks for, on artifacts that are acquired once.
func TestALocalRunInLooks(t *testing.T) {
	t.Parallel()
	options, artifacts := localOptions(t, "echo 1 >out")
	var asked [][]bench.TestCase
	var totals []int
	options.Progress = func(p jobrun.Progress) { totals = append(totals, p.Total) }
	options.Next = func(r *jobrun.LocalResults) (jobrun.Look, error) {
		asked = append(asked, r.TestCases)
		switch len(asked) {
		case 1:
			require.Empty(t, r.Results)
			return jobrun.Look{TestCases: r.TestCases, Iterations: 2}, nil
		case 2:
			require.Len(t, r.Results, 4)
			return jobrun.Look{TestCases: r.TestCases[1:]}, nil
		}
		return jobrun.Look{}, nil
	}
	results, err := jobrun.Local(t.Context(), options)
	require.NoError(t, err)
	require.Len(t, asked, 3)
	require.Len(t, asked[0], 2)
	require.Equal(t, map[string]int{"v1": 1, "v2": 1}, artifacts.acquired)
	require.Equal(t, 1, totals[len(totals)-1], "the last look has one test case")

	got := map[string]int{}
	for _, r := range results.Results {
		got[fmt.Sprintf("look %d: %s of %s", r.Look, r.TestCase.Benchmark, r.Subject)] = len(r.Collections)
	}
	require.Equal(t, map[string]int{
		"look 1: one of v1": 2, "look 1: two of v1": 2, "look 1: one of v2": 2, "look 1: two of v2": 2,
		"look 2: two of v1": 3, "look 2: two of v2": 3,
	}, got, "the second look has the suite's iterations")

	refused := errors.New("refused")
	options.Next = func(*jobrun.LocalResults) (jobrun.Look, error) { return jobrun.Look{}, refused }
	_, err = jobrun.Local(t.Context(), options)
	require.ErrorIs(t, err, refused)
}

// A run that is cancelled keeps the pairs of the block that it could not finish, and no half pair.
func TestACancelledLocalRunKeepsItsPairs(t *testing.T) {
	t.Parallel()
	options, _ := localOptions(t, "echo 1 >out")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	options.Selection.Iterations = 9
	options.Progress = func(p jobrun.Progress) {
		// The third pair has its first side: v1.
		if p.TestCase.Benchmark == "two" && p.Iteration == 3 && p.Subject == "v2" {
			cancel()
		}
	}
	results, err := jobrun.Local(ctx, options)
	require.ErrorIs(t, err, context.Canceled)
	for _, r := range results.Results {
		want := 9
		if r.TestCase.Benchmark == "two" {
			want = 2
		}
		require.Len(t, r.Collections, want, "%s of %s", r.TestCase.Benchmark, r.Subject)
	}
	require.Len(t, results.Results, 4)
}

// A run that is cancelled before its first pair has nothing.
func TestALocalRunCancelledAtOnce(t *testing.T) {
	t.Parallel()
	options, _ := localOptions(t, "sleep 100")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	options.Progress = func(p jobrun.Progress) {
		if p.Iteration == 1 {
			cancel()
		}
	}
	results, err := jobrun.Local(ctx, options)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, results.Results)
}
