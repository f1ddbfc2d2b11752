package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
)

// asBrowser makes a request as a browser does for a page, with the given Host.
func (b *bundle) asBrowser(t *testing.T, method, path, host string, headers ...string) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.server.URL+path, nil)
	require.NoError(t, err)
	request.Host = host
	request.Header.Set("Authorization", "Bearer "+b.tokens[api.RoleAdmin])
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.server.Client().Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	for name := range response.Header {
		require.False(t, strings.HasPrefix(name, "Access-Control-"), "%s %s lets foreign pages read: %s", method, path, name)
	}
	return response.StatusCode
}

// everyPath lists the paths of the OpenAPI document, of the pages, and those beside them.
func everyPath(t *testing.T, b *bundle) (paths []struct{ method, path string }) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	require.NoError(t, json.Unmarshal([]byte(b.send(t, "", http.MethodGet, "/openapi.json", "").body), &document))
	for path, methods := range document.Paths {
		for method := range methods {
			paths = append(paths, struct{ method, path string }{strings.ToUpper(method), path})
		}
	}
	paths = append(paths, pagePaths(t)...)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/openapi.yaml", "/nothing/here"} {
		paths = append(paths, struct{ method, path string }{http.MethodGet, path})
	}
	return paths
}

// A name that an attacker lets resolve to the API makes his page one of the same origin. It
// must read nothing at all, nor may a page on another origin.
func TestForeignPagesReachNoPath(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	})
	own := strings.TrimPrefix(b.server.URL, "http://")
	paths := everyPath(t, b)
	require.Greater(t, len(paths), 100)
	for _, p := range paths {
		require.Equal(t, http.StatusMisdirectedRequest, b.asBrowser(t, p.method, p.path, "evil.example"), "%s %s", p.method, p.path)
		require.Equal(t, http.StatusForbidden, b.asBrowser(t, p.method, p.path, own, "Origin", "http://evil.example"), "%s %s", p.method, p.path)
		require.Equal(t, http.StatusForbidden, b.asBrowser(t, p.method, p.path, own, "Sec-Fetch-Site", "cross-site"), "%s %s", p.method, p.path)
		require.Equal(t, http.StatusForbidden, b.asBrowser(t, http.MethodOptions, p.path, own, "Origin", "http://evil.example", "Access-Control-Request-Method", p.method))
	}
	// Its own page, and a link to it, work.
	require.Equal(t, http.StatusOK, b.asBrowser(t, http.MethodGet, "/api/v1/projects", own, "Sec-Fetch-Site", "same-origin"))
	require.Equal(t, http.StatusOK, b.asBrowser(t, http.MethodGet, "/", own, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"))
}

func TestAForeignHostIsAProblem(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.AllowedHosts = []string{"bench.example.com"} })
	require.Equal(t, http.StatusOK, b.asBrowser(t, http.MethodGet, "/", "bench.example.com"))
	proxied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "other.example.com"
		b.server.Config.Handler.ServeHTTP(w, r)
	}))
	defer proxied.Close()
	client, err := apiclient.New(proxied.URL, "", proxied.Client())
	require.NoError(t, err)
	_, err = client.Info(t.Context())
	p := problemOf(t, err)
	require.Equal(t, apiclient.ProblemForeignHost, p.Type)
	require.Contains(t, p.Detail, `"other.example.com"`)
	require.Contains(t, p.Detail, "--allowed-host")
	require.False(t, apiclient.IsRefusal(err), "a proxy's mistake sets no result aside")
}

func TestAllowedHostsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := api.New(t.Context(), withAllowedHosts(t, "http://bench.example.com"))
	require.ErrorContains(t, err, "the allowed host \"http://bench.example.com\" is invalid")
}

func withAllowedHosts(t *testing.T, hosts ...string) api.Config {
	t.Helper()
	var config api.Config
	setup(t, func(c *api.Config) { config = *c })
	config.AllowedHosts = hosts
	return config
}

func TestClosedReadingShowsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) {
		c.OpenRead = false
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("series\n")) })
	})
	b.project(t)
	open := map[string]bool{"/healthz": true, "/readyz": true, "/openapi.json": true, "/openapi.yaml": true, "/api/v1/info": true, "/sign-in": true, "/assets/{hash}/{file}": true, "/help": true, "/nothing/here": true}
	// Pages of profiles ask for nothing before they know which are meant.
	fill := strings.NewReplacer("/profiles/diff", "/profiles/diff?a=paaaaaaaaaa&b=pbbbbbbbbbb", "{profile}", "paaaaaaaaaa")
	for _, p := range everyPath(t, b) {
		if p.method == http.MethodGet && !open[p.path] {
			require.Equal(t, http.StatusUnauthorized, b.send(t, "", p.method, fill.Replace(p.path), "").status, p.path)
		}
	}
	page := b.send(t, "", http.MethodGet, "/", "")
	require.Equal(t, http.StatusUnauthorized, page.status)
	require.Contains(t, page.body, "Nothing can be read here without a token.")
	require.NotContains(t, page.body, "/projects/go")
	metrics := b.send(t, "", http.MethodGet, "/metrics", "")
	require.Equal(t, http.StatusUnauthorized, metrics.status)
	require.Contains(t, metrics.problem(t).Detail, "a token of the role reader")
	require.NotEmpty(t, metrics.header.Get("WWW-Authenticate"))
	require.Equal(t, http.StatusForbidden, b.send(t, api.RoleCollector, http.MethodGet, "/metrics", "").status)
	require.Equal(t, "series\n", b.send(t, api.RoleReader, http.MethodGet, "/metrics", "").body)
}
