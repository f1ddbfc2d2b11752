package api_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
)

// standing returns a clock that only moves when it is told to.
func standing(c *api.Config) (pass func(time.Duration)) {
	var passed atomic.Int64
	begun := time.Now()
	c.Now = func() time.Time { return begun.Add(time.Duration(passed.Load())) }
	return func(d time.Duration) { passed.Add(int64(d)) }
}

// limited starts the API with rates.
func limited(t *testing.T, rates api.Rates, change ...func(*api.Config)) (b *bundle, pass func(time.Duration)) {
	t.Helper()
	b = setup(t, append(change, func(c *api.Config) { c.Rates, pass = rates, standing(c) })...)
	return b, pass
}

func requireLimited(t *testing.T, r reply) {
	t.Helper()
	require.Equal(t, http.StatusTooManyRequests, r.status, r.body)
	p := r.problem(t)
	require.Equal(t, apiclient.ProblemRateLimited, p.Type)
	require.Contains(t, p.Detail, "too many calls")
	require.Equal(t, "1", r.header.Get("Retry-After"))
}

func TestStrangersShareTheRateOfTheirAddress(t *testing.T) {
	t.Parallel()
	b, pass := limited(t, api.Rates{Address: 1})
	paths := []string{"/api/v1/projects", "/api/v1/collectors", "/nowhere", "/openapi.json"}
	for _, path := range paths {
		require.NotEqual(t, http.StatusTooManyRequests, b.send(t, "", http.MethodGet, path, "").status, path)
	}
	for _, path := range paths {
		requireLimited(t, b.send(t, "", http.MethodGet, path, ""))
	}
	require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, "/healthz", "").status)
	require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, "/readyz", "").status, "probes are never limited")
	for range 20 {
		require.Equal(t, http.StatusOK, b.send(t, api.RoleReader, http.MethodGet, "/api/v1/projects", "").status, "nor are tokens by their address")
	}
	pass(time.Second)
	require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, "/api/v1/projects", "").status)
	requireLimited(t, b.send(t, "", http.MethodGet, "/api/v1/projects", ""))
}

func TestEachTokenHasItsRate(t *testing.T) {
	t.Parallel()
	b, pass := limited(t, api.Rates{Token: 1})
	for range 4 {
		require.Equal(t, http.StatusOK, b.send(t, api.RoleReader, http.MethodGet, "/api/v1/projects", "").status)
	}
	requireLimited(t, b.send(t, api.RoleReader, http.MethodGet, "/api/v1/projects", ""))
	require.Equal(t, http.StatusOK, b.send(t, api.RoleWriter, http.MethodGet, "/api/v1/projects", "").status)
	pass(4 * time.Second)
	for range 4 {
		require.Equal(t, http.StatusOK, b.send(t, api.RoleReader, http.MethodGet, "/api/v1/projects", "").status)
	}

	_, err := b.reader.Projects(t.Context())
	require.True(t, apiclient.IsTransient(err), "clients try again: %v", err)
	require.Equal(t, time.Second, problemOf(t, err).RetryAfter)
}

func TestGuessedTokensAreSlow(t *testing.T) {
	t.Parallel()
	b, pass := limited(t, api.Rates{Refused: 1})
	require.Equal(t, http.StatusOK, b.send(t, api.RoleReader, http.MethodGet, "/api/v1/info", "").status)
	guess := func(n int) reply {
		return b.send(t, "", http.MethodGet, "/api/v1/info", "", "Authorization", fmt.Sprintf("Bearer %s%040d", api.TokenPrefix, n))
	}
	for n := range 3 {
		require.Equal(t, http.StatusUnauthorized, guess(n).status)
	}
	require.Equal(t, http.StatusUnauthorized, b.send(t, "", http.MethodGet, "/api/v1/info", "", "Authorization", "Basic YTpi").status)
	requireLimited(t, guess(4))
	requireLimited(t, b.send(t, "", http.MethodGet, "/api/v1/info", "", "Authorization", "Basic YTpi"))
	requireLimited(t, b.send(t, api.RoleWriter, http.MethodGet, "/api/v1/info", ""))
	require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, "/api/v1/info", "").status, "without a token, nothing is guessed")
	for range 3 {
		require.Equal(t, http.StatusOK, b.send(t, api.RoleReader, http.MethodGet, "/api/v1/info", "").status, "a token that was known lately")
	}
	pass(time.Second)
	require.Equal(t, http.StatusOK, b.send(t, api.RoleWriter, http.MethodGet, "/api/v1/info", "").status)
}

func TestClientsBehindATrustedProxyHaveTheirOwnRates(t *testing.T) {
	t.Parallel()
	from := func(b *bundle, address string) int {
		return b.send(t, "", http.MethodGet, "/api/v1/projects", "", "X-Forwarded-For", address).status
	}
	b, _ := limited(t, api.Rates{Address: 1}, func(c *api.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	for range 4 {
		require.Equal(t, http.StatusOK, from(b, "192.0.2.1"))
	}
	require.Equal(t, http.StatusTooManyRequests, from(b, "192.0.2.1"))
	require.Equal(t, http.StatusTooManyRequests, from(b, "198.51.100.7, 192.0.2.1"), "what the client claims of itself does not count")
	require.Equal(t, http.StatusOK, from(b, "192.0.2.2"))

	b, _ = limited(t, api.Rates{Address: 1})
	for n := range 4 {
		require.Equal(t, http.StatusOK, from(b, fmt.Sprintf("192.0.2.%d", n)))
	}
	require.Equal(t, http.StatusTooManyRequests, from(b, "192.0.2.9"), "nobody is trusted unless configured")
}

func TestParseProxies(t *testing.T) {
	t.Parallel()
	proxies, err := api.ParseProxies([]string{"10.1.2.3/8", "192.0.2.1", "2001:db8::1"})
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.0/8 192.0.2.1/32 2001:db8::1/128]", fmt.Sprint(proxies))
	_, err = api.ParseProxies([]string{"proxy.example.com"})
	require.ErrorContains(t, err, `"proxy.example.com" is invalid: write an IP address`)
}

func TestRatesMustBeNumbers(t *testing.T) {
	t.Parallel()
	require.NoError(t, api.DefaultRates().Validate())
	require.NoError(t, api.Rates{}.Validate(), "no limits")
	require.Error(t, api.Rates{Token: -1}.Validate())
}

// A page is one call, however many it makes of the API; it is limited like others.
func TestAPageCountsAsOneCall(t *testing.T) {
	t.Parallel()
	b, _ := limited(t, api.Rates{Address: 1})
	for range 4 {
		require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, "/", "").status)
	}
	late := b.send(t, "", http.MethodGet, "/", "")
	require.Equal(t, http.StatusTooManyRequests, late.status)
	require.Equal(t, "1", late.header.Get("Retry-After"))
	require.Contains(t, late.body, "too many calls")
}
