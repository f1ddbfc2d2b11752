package webguard_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/webguard"
)

func guard(t *testing.T, allowed ...string) *webguard.Guard {
	t.Helper()
	g, err := webguard.New(allowed...)
	require.NoError(t, err)
	return g
}

// asked is a request that has come in at the address 192.0.2.7.
func asked(t *testing.T, method, host string, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
	r.Host = host
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7480}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestOnlyOwnHostsAreAnswered(t *testing.T) {
	t.Parallel()
	g := guard(t, "Bench.Example.com", "2001:DB8::1", "203.0.113.9")
	for _, host := range []string{
		"localhost", "LOCALHOST:7480", "localhost.", "127.0.0.1", "127.0.0.1:7480", "127.5.5.5:1", "[::1]", "[::1]:7480", "[::ffff:127.0.0.1]:7480",
		"192.0.2.7", "192.0.2.7:7480", "[::ffff:192.0.2.7]:7480", // where it came in
		"bench.example.com", "BENCH.example.COM.:443", "[2001:db8:0::1]:7480", "203.0.113.9:80",
	} {
		require.Nil(t, g.Check(asked(t, http.MethodGet, host)), host)
	}
	for _, host := range []string{
		"", "evil.example", "evil.example:7480", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example:7480", "192.0.2.8", "0.0.0.0:7480", "[::]:7480",
		"bench.example.com.evil.example", "2130706433", "0x7f.1", "localhost:7480:7480", "localhost..", "user@localhost",
	} {
		refused := g.Check(asked(t, http.MethodGet, host))
		require.NotNil(t, refused, host)
		require.Equal(t, http.StatusMisdirectedRequest, refused.Status)
		require.Equal(t, apiclient.ProblemForeignHost, refused.Type)
		require.Contains(t, refused.Detail, "--allowed-host")
	}
}

func TestForeignPagesAreRefused(t *testing.T) {
	t.Parallel()
	g := guard(t)
	methods := []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, "QUERY"}
	for name, headers := range map[string][]string{
		"another site":               {"Sec-Fetch-Site", "cross-site"},
		"another port of this host":  {"Sec-Fetch-Site", "same-site"},
		"an invented relation":       {"Sec-Fetch-Site", "friendly"},
		"an old browser":             {"Origin", "https://evil.example"},
		"a page without an origin":   {"Origin", "null"},
		"an old one on another port": {"Origin", "http://localhost:8080"},
		"a page in a frame":          {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		"a picture":                  {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
	} {
		for _, method := range methods {
			refused := g.Check(asked(t, method, "localhost:7480", headers...))
			require.NotNil(t, refused, "%s: %s", name, method)
			require.Equal(t, http.StatusForbidden, refused.Status)
			require.Equal(t, apiclient.ProblemForeignOrigin, refused.Type)
		}
	}
	for name, headers := range map[string][]string{
		"a program":       nil,
		"an own page":     {"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost:7480"},
		"an old own page": {"Origin", "http://localhost:7480"},
		"a typed address": {"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
	} {
		for _, method := range methods {
			require.Nil(t, g.Check(asked(t, method, "localhost:7480", headers...)), "%s: %s", name, method)
		}
	}
	// A link elsewhere may be followed; a form elsewhere may not be sent.
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	require.Nil(t, g.Check(asked(t, http.MethodGet, "localhost:7480", link...)))
	require.NotNil(t, g.Check(asked(t, http.MethodPost, "localhost:7480", link...)))
}

func TestAllowedHostsAreHosts(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"", "http://bench.example.com", "bench.example.com:7480", "*", "*.example.com", "a b", ".example.com", "[bench]"} {
		_, err := webguard.New(host)
		require.ErrorContains(t, err, "without scheme and port", host)
	}
	require.Equal(t, []string{"::1", "bench.example.com", "localhost"}, guard(t, "bench.example.com.", "[::1]").Hosts())
	for host, loopback := range map[string]bool{"localhost": true, "127.0.0.9": true, "::1": true, "[::1]": true, "bench.example.com": false, "192.0.2.1": false} {
		require.Equal(t, loopback, webguard.Loopback(host), host)
	}
}

func TestTheHandlerAnswersWithAProblem(t *testing.T) {
	t.Parallel()
	handler := guard(t).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, asked(t, http.MethodGet, "evil.example"))
	require.Equal(t, http.StatusMisdirectedRequest, answer.Code)
	var p apiclient.Problem
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &p))
	require.Equal(t, "urn:benchloom:foreign-host", p.Type)
	answer = httptest.NewRecorder()
	handler.ServeHTTP(answer, asked(t, http.MethodGet, "localhost"))
	require.Equal(t, http.StatusNoContent, answer.Code)
	require.Equal(t, "same-origin", answer.Header().Get("Cross-Origin-Resource-Policy"))
}

// FuzzHost tries hosts that are read as others than they are.
func FuzzHost(f *testing.F) {
	for _, host := range []string{"localhost", "127.0.0.1:80", "[::1]:80", "evil.example", "localhost:evil", "[localhost", "127.1"} {
		f.Add(host)
	}
	g, err := webguard.New("bench.example.com")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, host string) {
		r := asked(t, http.MethodGet, host)
		if g.Check(r) != nil {
			return
		}
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = host
		}
		ip := net.ParseIP(trim(name))
		require.True(t, ip != nil && (ip.IsLoopback() || ip.Equal(net.IPv4(192, 0, 2, 7))) || own(name), host)
	})
}

func trim(name string) string {
	if len(name) > 1 && name[0] == '[' && name[len(name)-1] == ']' {
		return name[1 : len(name)-1]
	}
	return name
}

func own(name string) bool {
	for _, known := range []string{"localhost", "localhost.", "bench.example.com", "bench.example.com."} {
		if len(known) == len(name) && http.CanonicalHeaderKey(known) == http.CanonicalHeaderKey(name) {
			return true
		}
	}
	return false
}
