package api_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"github.com/uber-go/tally/v4"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/store"
)

var discard = slog.New(slog.DiscardHandler)

// failing is a record that reads no projects.
type failing struct {
	api.Store
	err error
	on  *atomic.Bool // nil: always
}

func (f failing) broken() bool { return f.on == nil || f.on.Load() }

func (f failing) Project(ctx context.Context, name string) (store.Project, error) {
	if f.broken() {
		return store.Project{}, f.err
	}
	return f.Store.Project(ctx, name)
}

func (f failing) Projects(ctx context.Context) ([]store.Project, error) {
	if f.broken() && f.err == nil {
		panic("a bug")
	}
	if f.broken() {
		return nil, f.err
	}
	return f.Store.Projects(ctx)
}

func (f failing) Ping(ctx context.Context) error {
	if f.broken() {
		return f.err
	}
	return f.Store.Ping(ctx)
}

// break lets the record fail from now on.
func breaking(err error) (change func(*api.Config), now func()) {
	on := &atomic.Bool{}
	return func(c *api.Config) { c.Store = failing{Store: c.Store, err: err, on: on} }, func() { on.Store(true) }
}

func TestADatabaseThatIsAwayIsTransient(t *testing.T) {
	t.Parallel()
	change, now := breaking(&pgconn.PgError{Code: "57P01", Message: "terminating connection"})
	b := setup(t, change)
	now()
	for _, path := range []string{"/api/v1/projects", "/"} {
		r := b.send(t, "", http.MethodGet, path, "")
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.Equal(t, "1", r.header.Get("Retry-After"))
		require.NotContains(t, r.body, "terminating")
	}
	require.Equal(t, "urn:benchloom:unavailable", b.send(t, "", http.MethodGet, "/api/v1/projects", "").problem(t).Type)
	require.Contains(t, b.send(t, "", http.MethodGet, "/", "").body, "Not available now")
	_, err := b.nobody.Projects(t.Context())
	require.True(t, apiclient.IsTransient(err))
	r := b.send(t, "", http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Contains(t, r.problem(t).Detail, "the database does not answer")
	require.NoError(t, b.nobody.Healthy(t.Context()))
}

func TestInternalErrorsAreNotDisclosed(t *testing.T) {
	t.Parallel()
	change, now := breaking(errors.New("secret words"))
	b := setup(t, change)
	now()
	r := b.send(t, "", http.MethodGet, "/api/v1/projects", "", apiclient.HeaderRequestID, "my-request")
	require.Equal(t, http.StatusInternalServerError, r.status)
	require.Contains(t, r.problem(t).Detail, "my-request")
	require.NotContains(t, r.body, "secret")
	require.Contains(t, b.log.String(), "secret words")
	require.Contains(t, b.log.String(), "request_id=my-request")
}

func TestAPanicIsAProblem(t *testing.T) {
	t.Parallel()
	change, now := breaking(nil)
	b := setup(t, change)
	now()
	r := b.send(t, "", http.MethodGet, "/api/v1/projects", "")
	require.Equal(t, http.StatusInternalServerError, r.status)
	require.Contains(t, r.problem(t).Detail, r.header.Get(apiclient.HeaderRequestID))
	require.NotContains(t, r.body, "a bug")
	require.Contains(t, b.log.String(), "a bug")
}

func TestTemporalThatIsAwayIsNotReady(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	b := setup(t, func(c *api.Config) {
		c.TemporalReady = func(context.Context) error {
			if away.Load() {
				return errors.New("no route")
			}
			return nil
		}
	})
	require.NoError(t, b.nobody.Ready(t.Context()))
	away.Store(true)
	require.ErrorContains(t, b.nobody.Ready(t.Context()), "Temporal does not answer")
}

func TestAShortDiskIsNotReady(t *testing.T) {
	t.Parallel()
	var short atomic.Bool
	b := setup(t, func(c *api.Config) {
		c.DiskShort = func() error {
			if short.Load() {
				return &diskspace.ShortError{Dir: "/secret/place", Bytes: 1 << 30}
			}
			return nil
		}
	})
	require.NoError(t, b.nobody.Ready(t.Context()))
	short.Store(true)
	r := b.send(t, "", http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "short", r.header.Get(diskspace.ShortHeader), "its supervisor tells it from a process that does not start")
	require.Contains(t, r.problem(t).Detail, "less than its reserve is free")
	require.NotContains(t, r.problem(t).Detail, "/secret", "anybody may ask")
	require.Contains(t, b.log.String(), "/secret/place")
	short.Store(false)
	require.NoError(t, b.nobody.Ready(t.Context()))
}

func TestUnknownPathsAndNames(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.send(t, "", http.MethodGet, "/api/v2/projects", "")
	require.Equal(t, http.StatusNotFound, r.status)
	require.Contains(t, r.problem(t).Detail, "/openapi.json")
	r = b.send(t, "", http.MethodPatch, "/api/v1/projects/go", "")
	require.Equal(t, http.StatusMethodNotAllowed, r.status)
	require.Equal(t, "GET, PUT", r.header.Get("Allow"))
	require.Contains(t, r.problem(t).Detail, "use GET or PUT")
	r = b.send(t, "", http.MethodGet, "/metrics", "")
	require.Equal(t, http.StatusNotFound, r.status)
}

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.MaxBody = 1000 })
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     string
	}{
		{"no JSON", "POST", "/api/v1/requests", "{", nil, 400, "not valid JSON"},
		{"no body", "POST", "/api/v1/requests", "", nil, 400, "body is required"},
		{"unknown field", "POST", "/api/v1/requests", `{"project":"go","tagg":"1"}`, nil, 422, "body.tagg: unexpected property"},
		{"wrong type", "POST", "/api/v1/requests", `{"project":7}`, nil, 422, "body.project: expected string"},
		{"unknown request type", "POST", "/api/v1/requests", `{"project":"go","type":"nightly"}`, nil, 422, `body.type: expected value to be one of "release, master, try, adhoc"`},
		{"oversize", "POST", "/api/v1/requests", `{"project":"` + strings.Repeat("x", 1000) + `"}`, nil, 413, "too large"},
		{"not JSON by name", "POST", "/api/v1/requests", `project: go`, []string{"Content-Type", "text/yaml"}, 415, "send application/json"},
		{"unknown parameter", "GET", "/api/v1/requests?projekt=go", "", nil, 422, "query.projekt: unknown query parameter"},
		{"wrong number", "GET", "/api/v1/requests?limit=many", "", nil, 422, "query.limit: invalid integer"},
		{"number out of range", "GET", "/api/v1/requests?limit=501", "", nil, 422, "query.limit: expected number <= 500"},
		{"missing parameter", "GET", "/api/v1/compare?project=go&a=1", "", nil, 422, "query.b: required query parameter is missing"},
		{"no text", "GET", "/api/v1/requests?tag=%ff", "", nil, 400, "bytes that are no text"},
		{"a key twice", "POST", "/api/v1/requests", `{"command":{"argv":["true"],"argv":["false"]}}`, nil, 400, `the key "argv" is there twice`},
		{"a key of a batch twice", "POST", "/api/v1/requests", `{"project":"go","jobs":[{"argv":["true"]}],"project":"adhoc"}`, nil, 422, "the field project is there twice"},
		{"a key of a job twice", "POST", "/api/v1/requests", `{"jobs":[{"argv":["true"],"argv":["false"]}]}`, nil, 422, `the key "argv" is there twice`},
		{"no text in a body", "POST", "/api/v1/requests", "{\"command\":{\"argv\":[\"\xff\xfe\"]}}", nil, 400, "the byte 0xff at offset 21 is no UTF-8"},
		{"no text in a job", "POST", "/api/v1/requests", "{\"jobs\":[{\"argv\":[\"\xff\xfe\"]}]}", nil, 422, "the byte 0xff at offset 10 is no UTF-8"},
		{"half a character", "POST", "/api/v1/requests", `{"command":{"argv":["\udcff"]}}`, nil, 400, "is half a character"},
		{"zero byte", "GET", "/api/v1/projects/a%00b", "", nil, 400, "bytes that are no text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := b.send(t, api.RoleWriter, c.method, c.path, c.body, c.headers...)
			require.Equal(t, c.status, r.status, r.body)
			p := r.problem(t)
			require.Contains(t, p.Error(), c.want)
			require.NotContains(t, r.body, "xxxx")
		})
	}
}

func TestEveryExchangeHasAnID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Len(t, b.send(t, "", http.MethodGet, "/healthz", "").header.Get(apiclient.HeaderRequestID), 16)
	require.Equal(t, "build-7_x", b.send(t, "", http.MethodGet, "/nope", "", apiclient.HeaderRequestID, "build-7_x").header.Get(apiclient.HeaderRequestID))
	require.Len(t, b.send(t, "", http.MethodGet, "/healthz", "", apiclient.HeaderRequestID, "no spaces").header.Get(apiclient.HeaderRequestID), 16)
}

func TestExchangesAreCountedByRoute(t *testing.T) {
	t.Parallel()
	scope := tally.NewTestScope("", nil)
	b := setup(t, func(c *api.Config) {
		c.Scope = scope
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("counts 1\n")) })
	})
	b.send(t, "", http.MethodGet, "/api/v1/projects/adhoc", "")
	b.send(t, "", http.MethodGet, "/api/v1/projects/none", "")
	b.send(t, "", http.MethodGet, "/api/v1/projects/other", "")
	b.send(t, "", http.MethodGet, "/some/random/path", "")
	require.Equal(t, "counts 1\n", b.send(t, "", http.MethodGet, "/metrics", "").body)
	counts := make(map[string]int64)
	for _, c := range scope.Snapshot().Counters() {
		counts[c.Name()+" "+c.Tags()["method"]+" "+c.Tags()["route"]+" "+c.Tags()["status"]] = c.Value()
	}
	require.Equal(t, map[string]int64{
		"api_requests GET /api/v1/projects/{project} 2xx": 1, "api_requests GET /api/v1/projects/{project} 4xx": 2,
		"api_requests GET unmatched 4xx": 1, "api_requests GET /metrics 2xx": 1,
	}, counts)
	require.NotEmpty(t, scope.Snapshot().Timers())
}
