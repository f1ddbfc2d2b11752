package api_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
	"github.com/benchloom/benchloom/internal/store"
)

// endpoints are all that need something, with who may use them.
var endpoints = []struct{ method, path, roles string }{
	{"GET", "/api/v1/projects", "reader writer admin"},
	{"GET", "/api/v1/retention", "reader writer admin"},
	{"POST", "/api/v1/retention/run", "admin"},
	{"GET", "/api/v1/projects/go", "reader writer admin"},
	{"GET", "/api/v1/requests", "reader writer admin"},
	{"GET", "/api/v1/requests/raaaaaaaaaa", "reader writer admin"},
	{"GET", "/api/v1/jobs/aaaaaaaaaaaaaaaa", "reader writer admin"},
	{"GET", "/api/v1/jobs/aaaaaaaaaaaaaaaa/log", "reader writer admin"},
	{"GET", "/api/v1/runs/aaaaaaaaaaaaaaaa-00000000/log", "reader writer admin"},
	{"GET", "/api/v1/compare?project=go&a=1&b=2", "reader writer admin"},
	{"GET", "/api/v1/results/export?project=go", "reader writer admin"},
	{"GET", "/api/v1/collectors", "reader writer admin"},
	{"GET", "/api/v1/collectors/c1", "reader writer admin"},
	{"GET", "/api/v1/suites/x", "reader writer admin collector"},
	{"PUT", "/api/v1/projects/go", "admin"},
	{"PUT", "/api/v1/suites/x", "writer admin"},
	{"POST", "/api/v1/requests", "writer admin"},
	{"POST", "/api/v1/requests/raaaaaaaaaa/cancel", "writer admin"},
	{"POST", "/api/v1/collectors/c1/drain", "admin"},
	{"POST", "/api/v1/collectors/c1/activate", "admin"},
	{"DELETE", "/api/v1/collectors/c9", "admin"},
	{"POST", "/api/v1/collectors/register", "collector"},
	{"POST", "/api/v1/collectors/c1/heartbeat", "collector"},
	{"PUT", "/api/v1/collectors/own-token", "shared"},
	{"POST", "/api/v1/runs/aaaaaaaaaaaaaaaa-00000000/start", "collector"},
	{"POST", "/api/v1/runs/aaaaaaaaaaaaaaaa-00000000/blocks/1", "collector"},
	{"POST", "/api/v1/runs/aaaaaaaaaaaaaaaa-00000000/log", "collector"},
	{"POST", "/api/v1/runs/aaaaaaaaaaaaaaaa-00000000/finish", "collector"},
}

func TestRoles(t *testing.T) {
	t.Parallel()
	open := setup(t)
	closed := setup(t, func(c *api.Config) { c.OpenRead = false })
	for _, e := range endpoints {
		for _, role := range []string{"reader", "writer", "admin", "collector", sharedToken, ""} {
			may := role != "" && slices.Contains(strings.Fields(e.roles), strings.Fields(role)[0])
			want := http.StatusForbidden
			if role == "" {
				want = http.StatusUnauthorized
			}
			got := closed.send(t, role, e.method, e.path, "")
			require.Equal(t, !may, got.status == want, "closed: %q %s %s: %s", role, e.method, e.path, got.body)
			got = open.send(t, role, e.method, e.path, "")
			require.Equal(t, !may && e.method != http.MethodGet, got.status == want, "open: %q %s %s: %s", role, e.method, e.path, got.body)
		}
		// A wrong token opens nothing, not even what is open.
		for _, wrong := range []string{"Bearer blm_wrong", "Bearer other", "Basic abc", "blm_wrong"} {
			got := open.send(t, "", e.method, e.path, "", "Authorization", wrong)
			require.Equal(t, http.StatusUnauthorized, got.status, "%s %s", e.method, e.path)
			got.problem(t)
			require.Contains(t, got.header.Get("WWW-Authenticate"), "Bearer")
		}
	}
}

func TestErrorsOfTokensSayWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.nobody.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1"})
	require.ErrorIs(t, err, apiclient.ErrUnauthorized)
	require.ErrorContains(t, err, "BENCHLOOM_TOKEN")
	_, err = b.reader.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1"})
	require.ErrorIs(t, err, apiclient.ErrForbidden)
	require.ErrorContains(t, err, "the token of rita has the role reader, but this needs the role writer")
}

func TestInfoNamesTheCaller(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.OpenRead = false })
	for client, want := range map[*apiclient.Client][2]string{b.nobody: {"", ""}, b.reader: {"rita", "reader"}, b.shared: {"machines", "collector"}} {
		info, err := client.Info(t.Context())
		require.NoError(t, err)
		require.Equal(t, apiclient.Info{
			Version: "v0.1.0", TemporalUI: "http://127.0.0.1:8233", Namespace: "benchloom", Principal: want[0], Role: want[1], MaxBodySize: 8 << 20,
		}, info)
	}
}

// withClock lets the API read the time from a clock.
func withClock(c *clock) func(*api.Config) { return func(config *api.Config) { config.Now = c.Now } }

// clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestATokenThatChangesIsNoticedSoon(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	b := setup(t, withClock(now))
	role := func() string {
		info, err := b.reader.Info(t.Context())
		require.NoError(t, err)
		return info.Role
	}
	require.Equal(t, "reader", role())
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(b.tokens[api.RoleReader]), 0o600))
	require.NoError(t, api.BootstrapTokens(t.Context(), b.store, []api.TokenFile{{Path: path, Owner: "rita", Role: api.RoleWriter}}))
	require.Equal(t, "reader", role())
	now.advance(11 * time.Second)
	require.Equal(t, "writer", role())
}

func TestBootstrapRefusesInvalidTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good, err := api.NewToken(rand.Reader)
	require.NoError(t, err)
	for want, f := range map[string]api.TokenFile{
		"does not hold one token": {Path: file("blm_short"), Owner: "o", Role: api.RoleReader},
		"beginning with blm_":     {Path: file(strings.Repeat("x", 40)), Owner: "o", Role: api.RoleReader},
		"one token of":            {Path: file(good + "\n" + good), Owner: "o", Role: api.RoleReader},
		"unknown role":            {Path: file(good), Owner: "o", Role: "king"},
		"owner is not named":      {Path: file(good), Role: api.RoleReader},
		"no such file":            {Path: filepath.Join(t.TempDir(), "none"), Owner: "o", Role: api.RoleReader},
	} {
		err := api.BootstrapTokens(t.Context(), b.store, []api.TokenFile{f})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), good)
	}
	_, err = b.store.PrincipalOf(t.Context(), []byte("none of them"))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = api.NewToken(strings.NewReader("few"))
	require.Error(t, err)
}

func TestTokensNeverReachTheLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	require.Error(t, func() error {
		_, err := b.reader.CancelRequest(t.Context(), "raaaaaaaaaa", apiclient.Act{})
		return err
	}())
	b.send(t, "", http.MethodGet, "/api/v1/info", "", "Authorization", "Bearer blm_wrongwrongwrong")
	for _, token := range b.tokens {
		require.NotContains(t, b.log.String(), token)
	}
	require.NotContains(t, b.log.String(), "wrongwrong")
	require.Contains(t, b.log.String(), "path=/api/v1/requests/raaaaaaaaaa/cancel status=403")
}

func TestNewRequiresItsDependencies(t *testing.T) {
	t.Parallel()
	_, err := api.New(t.Context(), api.Config{})
	require.ErrorContains(t, err, "must be set")
	b := setup(t)
	_, err = api.New(t.Context(), api.Config{Store: b.store, Starter: b.workflows, Dispatcher: b.dispatcher(), Inspector: &inspect.Inspector{}, Settings: api.Settings{Now: time.Now, Log: discard, Random: rand.Reader, MaxBody: -1}})
	require.ErrorContains(t, err, "negative")
	_, err = api.New(t.Context(), api.Config{Store: failing{Store: b.store, err: errors.New("away")}, Starter: b.workflows, Dispatcher: b.dispatcher(), Inspector: &inspect.Inspector{}, Settings: api.Settings{Now: time.Now, Log: discard, Random: rand.Reader}})
	require.ErrorContains(t, err, "creating the project of ad-hoc commands")
}
