package api_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
)

// Whatever happens to results, a service that keeps drawings shows what one does that has
// just been started, also if two ask at once.
func TestKeptHistoriesAreNeverOutOfDate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.releases(t, 5)
	// Each is asked for before and after each change.
	queries := []string{"", "?metric=max-rss", "?from=1.0.0&to=1.2.0&y=change", "?line=all", "?band=minmax&x=date&q=full"}
	look := func(what string) {
		shown := make([][2]string, len(queries))
		for i, query := range queries { // two at once wait for no place, however slow they are
			var asked sync.WaitGroup
			for k := range shown[i] {
				asked.Go(func() { shown[i][k] = drawnIn(t, b.server.URL+goHistory+query) })
			}
			asked.Wait()
		}
		fresh := b.started(t)
		for i, query := range queries {
			want := drawnIn(t, fresh.URL+goHistory+query)
			require.Contains(t, want, "<svg", query)
			for _, got := range append(shown[i][:], drawnIn(t, b.server.URL+goHistory+query)) {
				if got != want { // too long to be printed
					t.Errorf("%s: the history %q is not that of a fresh service", what, query)
				}
			}
		}
	}
	pack := func() {
		for {
			n, err := b.store.PackResults(t.Context(), "go")
			require.NoError(t, err)
			if n == 0 {
				return
			}
		}
	}
	collector := b.register(t, "c1")
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"measured", func() {}},
		{"packed", pack},
		{"a sixth is measured", func() {
			j := b.measure(t, "1.5.0", 7, collector)
			require.NoError(t, b.store.FinishJobsOf(t.Context(), j.request.ID))
		}},
		{"packed again", pack},
		{"a value is another one", func() {
			b.past(t, `update pstat_runtime set value = 5 * value where artifact_id = (select id from artifact where tag = '1.1.0'); update pstat set value = 5 * value where artifact_id = (select id from artifact where tag = '1.1.0')`)
		}},
		{"the same once more, before it was packed", func() {
			b.past(t, `update pstat_runtime set value = 2 * value where artifact_id = (select id from artifact where tag = '1.1.0'); update pstat set value = 2 * value where artifact_id = (select id from artifact where tag = '1.1.0')`)
		}},
		{"that is packed", pack},
		{"invalidated", func() {
			_, err := b.admin.InvalidateResults(t.Context(), apiclient.Invalidation{Act: because, Project: "go", Tag: "1.2.0"})
			require.NoError(t, err)
		}},
		{"the rest is packed", pack},
		{"measured on another machine", func() {
			b.past(t, `update test_result set size_class = 3 where artifact_id = (select id from artifact where tag = '1.4.0')`)
		}},
		{"the machine is packed", pack},
		{"released at another date", func() {
			b.past(t, `update benchmark_request set commit_date = '2020-02-02' where tag = '1.0.0'`)
		}},
		{"purged", func() {
			_, err := b.admin.PurgeArtifact(t.Context(), apiclient.Purge{Act: because, Project: "go", Tag: "1.3.0"})
			require.NoError(t, err)
		}},
		{"all is packed anew", func() {
			_, err := b.admin.RebuildResults(t.Context(), "go", because)
			require.NoError(t, err)
			look("all is stale")
			pack()
		}},
	} {
		step.do()
		look(step.what)
	}
}

// started starts another API over the same record, which keeps nothing yet.
func (b *bundle) started(t *testing.T) *httptest.Server {
	t.Helper()
	handler, err := api.New(t.Context(), api.Config{
		Store: b.store, Starter: b.workflows, Dispatcher: b.dispatcher(), Inspector: b.inspector(),
		Settings: api.Settings{Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler), Version: "v0.1.0", Namespace: "benchloom", OpenRead: true},
	})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		handler.Wait()
	})
	return server
}

// drawnIn returns the charts and the table of a page. It is called from several goroutines.
func drawnIn(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Error(response.Status, err)
	}
	_, drawn, _ := strings.Cut(string(body), `<section id="charts"`)
	drawn, _, there := strings.Cut(drawn, "<script")
	if !there {
		return fmt.Sprintf("no charts: %.300s", body)
	}
	return drawn
}
