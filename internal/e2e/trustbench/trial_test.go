package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
)

// A trial whose code did not change and one with a planted slowdown, both under load, on a real service; the next start
// continues there and cancels what was left.
func TestLongTrialsOnARealService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755), "Postgres has an account of its own")
	bin := filepath.Join("..", "..", "..", "bin")
	programs := livestack.Programs{
		Benchloom: environment("BENCHLOOM_BIN", filepath.Join(bin, "benchloom")), Temporal: environment("BENCHLOOM_TEMPORAL_DEV", filepath.Join(bin, "temporal-dev")),
	}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)

	b, err := openBed(t.Context(), programs, dir)
	require.NoError(t, err)
	same, err := b.try(t.Context(), trial{ID: "same", Loaded: true, pattern: 1})
	require.NoError(t, err)
	_, err = b.stack.API.CreateRequest(t.Context(), apiclient.NewRequest{Project: project, Type: bench.Try, PR: 1})
	require.NoError(t, err)
	require.NoError(t, b.close(t.Context()))
	require.NotEmpty(t, same.Request)
	require.Len(t, same.Rows, 4*3, "ns/op, B/op and allocs/op of each benchmark")
	require.GreaterOrEqual(t, len(same.Sessions), 4)

	b, err = openBed(t.Context(), programs, dir)
	require.NoError(t, err)
	list, err := b.stack.API.Requests(t.Context(), apiclient.RequestQuery{Project: project, Type: bench.Try})
	require.NoError(t, err)
	require.Equal(t, bench.Completed, list.Requests[0].Status)
	slower, err := b.try(t.Context(), trial{ID: "slower", Slower: 10, Loaded: true})
	require.NoError(t, err)
	require.NoError(t, b.close(t.Context()))
	planted, found := slower.planted()
	require.True(t, found)
	require.GreaterOrEqual(t, planted.Pairs, 6)
	for _, s := range slower.Sessions {
		require.Equal(t, slowed, s.Benchmark)
		require.InDelta(t, 1, s.Load, 1e-9, "the load runs all the time")
		require.Positive(t, s.Seconds)
		require.Positive(t, s.Iterations)
	}
}
