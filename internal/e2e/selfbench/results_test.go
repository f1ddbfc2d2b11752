package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/e2e/selfbench/year"
)

// No answer can come from a cache of answers, and all comparisons read rows besides.
func TestEachAddressOfResultsIsAskedForOnce(t *testing.T) {
	t.Parallel()
	y := year.New(year.Full(), time.Now())
	place := make(map[string]int)
	for n, tag := range y.Tags() {
		place[tag] = n
	}
	seen, ends := make(map[string]bool), make(map[string]int)
	for _, state := range statesOfResults {
		var visits []resultVisit
		for _, turn := range turnsOf(state) {
			some, err := visitsOf(y, state, turn, 1200)
			require.NoError(t, err)
			visits = append(visits, some...)
		}
		for _, v := range visits {
			require.False(t, seen[v.path], v.path)
			seen[v.path] = true
			ends[v.of]++
			parsed, err := url.Parse(v.path)
			require.NoError(t, err)
			q := parsed.Query()
			a, b := place[q.Get("a")], place[q.Get("b")]
			switch v.of {
			case ofNeighbours:
				require.Less(t, a, b)
				require.LessOrEqual(t, b-a, map[bool]int{false: 1, true: 15}[state == stateStale])
				require.GreaterOrEqual(t, a, y.Artifacts-y.Rows)
			case ofDistant:
				require.GreaterOrEqual(t, b-a, y.Artifacts/10)
				require.GreaterOrEqual(t, b, y.Artifacts-y.Rows)
			case ofWhole:
				require.Equal(t, y.Artifacts-1, place[q.Get("to")]-place[q.Get("from")])
			case ofZoom:
				b = place[q.Get("to")]
				require.Greater(t, b, place[q.Get("from")])
			case ofNewest:
				require.False(t, q.Has("from"))
				b = y.Artifacts - 1
			}
			if state == stateStale && v.of != ofWhole {
				require.GreaterOrEqual(t, b, y.Artifacts-staleArtifacts)
			}
		}
	}
	for n := range 20 {
		require.False(t, seen[pathOf(y, ofWhole, stateWarm, paintTurn, n)])
	}
	each := len(statesOfResults) * turnsEach * 240
	require.Equal(t, map[string]int{ofNeighbours: each, ofDistant: each, ofNewest: each, ofWhole: each, ofZoom: each}, ends)

	_, err := visitsOf(year.New(year.Size{Artifacts: 50, Benchmarks: 4, Values: 1, Rows: 16}, time.Now()), stateWarm, 0, 1200)
	require.ErrorContains(t, err, "ask for a shorter time")
}

// An answer that comes late makes the next ones late, too, and one that has failed is the latest.
func TestAnswersAreTimedFromWhenTheyWereDue(t *testing.T) {
	t.Parallel()
	inTurns := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/nowhere" {
			http.NotFound(w, r)
			return
		}
		inTurns <- struct{}{}
		defer func() { <-inTurns }()
		time.Sleep(2 * pagesEvery)
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte(strings.Repeat("x", 100)))
	}))
	t.Cleanup(server.Close)
	r := &resultPages{pages: pages{address: server.URL, client: server.Client(), progress: t.Logf}}
	var visits []resultVisit
	for range 5 {
		visits = append(visits, resultVisit{ofWhole, "/slow"})
	}
	took, err := r.load(t.Context(), append(visits, resultVisit{ofNewest, "/busy"}))
	require.NoError(t, err)
	require.Len(t, took[ofWhole].took, 5)
	size, err := took[ofWhole].largest.size()
	require.NoError(t, err)
	require.Equal(t, int64(100), size, "it was sent compressed")
	plain, err := body{sent: []byte(strings.Repeat("x", 10_000))}.size()
	require.NoError(t, err)
	require.Less(t, plain, int64(100))
	require.GreaterOrEqual(t, percentile(took[ofWhole].took, 100), 6*pagesEvery, "five times two intervals, less the four after which the last is due")
	require.Equal(t, answered{took: []time.Duration{forEver}, failed: 1}, *took[ofNewest])

	_, err = r.load(t.Context(), []resultVisit{{ofNewest, "/nowhere"}})
	require.ErrorContains(t, err, "404")
}

func TestFilesAreForgottenOneByOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "base", "1"), 0o700))
	for _, name := range []string{"version", "base/1/2"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600))
	}
	var found []string
	require.NoError(t, eachFile(dir, func(file *os.File) error {
		found = append(found, filepath.Base(file.Name()))
		return forget(file)
	}))
	slices.Sort(found)
	require.Equal(t, []string{"2", "version"}, found)
	require.NoError(t, eachFile(filepath.Join(dir, "none"), (*os.File).Sync))
}
