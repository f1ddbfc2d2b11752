package api_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/uber-go/tally/v4"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/bench"
)

// slowly is a record whose results are read only when they may be.
type slowly struct {
	api.Store
	reads, may chan struct{}
}

func (s slowly) SamplesOf(ctx context.Context, project, tag string) ([]bench.Samples, error) {
	s.reads <- struct{}{}
	<-s.may
	return s.Store.SamplesOf(ctx, project, tag)
}

// More pages than can be made at once are answered at once, by one that comes back without scripts; so are calls of the API.
func TestPagesOfABusyServiceComeBack(t *testing.T) {
	t.Parallel()
	scope := tally.NewTestScope("", nil)
	s := slowly{reads: make(chan struct{}, 10), may: make(chan struct{})}
	b, _ := measured(t, func(c *api.Config) {
		s.Store = c.Store
		c.Store, c.Computing, c.Scope = s, 1, scope
	})
	const page, call = "/projects/go/compare?a=1.25.0&b=1.26.0", "/api/v1/compare?project=go&a=1.25.0&b=1.26.0"
	answers := make(chan reply, 100)
	var asking sync.WaitGroup
	ask := func(path string) {
		asking.Go(func() { answers <- b.send(t, "", http.MethodGet, path, "", "Accept", "text/html") })
	}
	ask(page)
	<-s.reads // it has the only place
	const others = 40
	for range others {
		ask(page)
	}
	for range others {
		r := <-answers
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.NotEmpty(t, r.header.Get("Retry-After"))
		require.Equal(t, r.header.Get("Retry-After"), r.header.Get("Refresh"))
		require.Contains(t, r.body, "more comparisons and histories are asked for than this service can make at once")
		require.Contains(t, r.body, "This page asks again by itself after ")
	}
	refused := make(map[string]int64)
	for _, c := range scope.Snapshot().Counters() {
		if c.Name() == "computations_refused" {
			refused[c.Tags()["reason"]] = c.Value()
		}
	}
	require.Equal(t, map[string]int64{"line": 8, "wait": 32}, refused, "half of the line is for one address")

	r := b.send(t, "", http.MethodGet, call, "")
	require.Equal(t, "urn:benchloom:busy", r.problem(t).Type)
	require.NotEmpty(t, r.header.Get("Retry-After"))
	require.Empty(t, r.header.Get("Refresh"))
	require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, "/projects/go", "", "Accept", "text/html").status, "other pages are there")

	close(s.may)
	first := <-answers
	require.Equal(t, http.StatusOK, first.status, first.body)
	require.Contains(t, first.body, "1.26.0")
	require.NotContains(t, first.body, "could not be read", "the page has its place for the earlier values, too")
	require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, call, "").status)
	asking.Wait()
}
