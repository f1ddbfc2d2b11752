package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// countedRecord counts what is read of it.
type countedRecord struct {
	NamedRecord
	reads int
	err   error
}

func (r *countedRecord) Project(_ context.Context, name string) (store.Project, error) {
	r.reads++
	return store.Project{Name: name}, r.err
}

func (r *countedRecord) RequestByTag(_ context.Context, project, tag string) (bench.Request, error) {
	r.reads++
	return bench.Request{Project: project, Tag: tag}, r.err
}

func (r *countedRecord) CommitsLike(_ context.Context, _, prefix string) ([]string, error) {
	r.reads++
	return []string{prefix}, r.err
}

// named asks for two of each kind by their names.
func (r *countedRecord) named(ctx context.Context) (errs error) {
	once := onceAPage{r}
	for _, name := range []string{"a", "b"} {
		project, err := once.Project(ctx, name)
		request, other := once.RequestByTag(ctx, "p", name)
		tags, third := once.CommitsLike(ctx, "p", name)
		errs = errors.Join(errs, err, other, third)
		if project.Name != name || request.Tag != name || !slices.Equal(tags, []string{name}) {
			errs = errors.Join(errs, fmt.Errorf("%s is %s, %s and %s", name, project.Name, request.Tag, tags))
		}
	}
	return errs
}

// All calls of a page share what is named, until the page is written. A form, a call of a client
// and what failed read it each time.
func TestAPageReadsWhatIsNamedOnce(t *testing.T) {
	t.Parallel()
	const each = 6
	for method, before := range map[string]int{http.MethodGet: each, http.MethodPost: 3 * each} {
		record := &countedRecord{}
		var counts []int
		var errs error
		shown := asOneCall(func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				errs = errors.Join(errs, record.named(r.Context()))
			}
			counts = append(counts, record.reads)
			w.WriteHeader(http.StatusOK)
			errs = errors.Join(errs, record.named(r.Context())) // as a stream of events goes on
			counts = append(counts, record.reads)
		})
		shown(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "/", nil))
		require.NoError(t, errs)
		require.Equal(t, []int{before, before + each}, counts, method)
	}

	record := &countedRecord{}
	for range 3 {
		require.NoError(t, record.named(t.Context()))
	}
	require.Equal(t, 3*each, record.reads, "no page")

	record = &countedRecord{err: errors.New("no connection")}
	var errs []error
	shown := asOneCall(func(_ http.ResponseWriter, r *http.Request) {
		for _, err := range []error{record.err, nil} {
			record.err = err
			_, err = onceAPage{record}.Project(r.Context(), "p")
			errs = append(errs, err)
		}
	})
	shown(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	require.Len(t, errs, 2)
	require.Error(t, errs[0])
	require.NoError(t, errs[1])
}
