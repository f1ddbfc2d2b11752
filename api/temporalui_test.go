package api_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
)

// The Web UI behind its socket gets a visitor's role, and no token; others do not get there.
func TestTemporalsWebUIHasTheSignInOfTheAPI(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "ui")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	behind := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %q %q", r.Method, r.URL.Path, r.Header["Benchloom-Role"], append(r.Header["Authorization"], r.Header["Cookie"]...))
	})}
	go func() { _ = behind.Serve(listener) }()
	t.Cleanup(func() { _ = behind.Close() })

	const oneProject = "admin of one project"
	serve := func(open bool) func(role string, headers ...string) reply {
		b := setup(t, func(c *api.Config) { c.OpenRead, c.TemporalUISocket = open, socket })
		b.project(t)
		ofOne, _ := b.createToken(t, apiclient.NewToken{Owner: "head", Role: api.RoleAdmin, Project: "go"})
		b.tokens[oneProject] = ofOne.Secret
		handler, ok := b.server.Config.Handler.(*api.Handler)
		require.True(t, ok)
		page := handler.TemporalUI("127.0.0.1:7480")
		return func(role string, headers ...string) reply {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/namespaces", nil)
			r.Host = "127.0.0.1:8233"
			switch {
			case role == "":
			case len(headers) > 0 && headers[0] == "Cookie":
				r.AddCookie(&http.Cookie{Name: headers[1], Value: b.tokens[role]})
			default:
				r.SetBasicAuth("anybody", b.tokens[role])
			}
			for i := 0; i+1 < len(headers); i += 2 {
				switch headers[i] {
				case "Host":
					r.Host = headers[i+1]
				case "Path":
					r.URL.Path = headers[i+1]
				case "Cookie":
				default:
					r.Header.Set(headers[i], headers[i+1])
				}
			}
			answer := httptest.NewRecorder()
			page.ServeHTTP(answer, r)
			return reply{status: answer.Code, header: answer.Header(), body: answer.Body.String()}
		}
	}
	open, closed := serve(true), serve(false)
	seen := func(role string) string { return fmt.Sprintf(`POST /api/v1/namespaces [%q] []`, role) }

	require.Equal(t, seen(""), open("").body)
	require.Equal(t, seen(""), open("", "Benchloom-Role", "admin").body) // nobody gives himself a role
	for _, role := range []string{api.RoleReader, api.RoleWriter, api.RoleAdmin} {
		require.Equal(t, seen(role), closed(role).body)
		require.Equal(t, seen(role), open(role, "Cookie", "benchloom_7480").body)
		require.Equal(t, seen(role), closed(role, "Cookie", "__Host-benchloom_7480").body)
		require.Equal(t, http.StatusUnauthorized, closed(role, "Cookie", "benchloom_1").status) // of another API on this host
	}
	require.Equal(t, seen(api.RoleReader), closed(api.RoleReader, "Benchloom-Role", "admin").body)
	require.Equal(t, seen(api.RoleReader), closed(oneProject).body, "workflows are of all projects")
	for _, refused := range []reply{closed(""), closed(api.RoleCollector), open(api.RoleCollector), closed(sharedToken), open("", "Path", "/benchloom/sign-in")} {
		require.Equal(t, http.StatusUnauthorized, refused.status)
		require.Contains(t, refused.header.Get("WWW-Authenticate"), "Basic")
	}
	require.Equal(t, http.StatusMisdirectedRequest, open(api.RoleAdmin, "Host", "evil.example:8233").status)
	require.Equal(t, http.StatusForbidden, open(api.RoleAdmin, "Origin", "http://evil.example").status)
	require.Equal(t, http.StatusForbidden, open("", "Sec-Fetch-Site", "same-site").status)

	// Frames are its own only.
	require.Equal(t, "SAMEORIGIN", open("").header.Get("X-Frame-Options"))
	// Without Temporal, the page says so.
	require.NoError(t, behind.Close())
	require.Equal(t, http.StatusBadGateway, open("").status)
}
