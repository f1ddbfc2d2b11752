package apiclient_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// serve starts a server that marks its answers as the API's own, and a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *apiclient.Client {
	t.Helper()
	return behind(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(apiclient.HeaderAPI, "1")
		handler(w, r)
	})
}

// behind starts a server in the place of the API, and a client of it.
func behind(t *testing.T, handler http.HandlerFunc) *apiclient.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := apiclient.New(server.URL, "blm_secret", server.Client())
	require.NoError(t, err)
	return c
}

// problem answers with a problem.
func problem(status int, kind string, headers map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"type": kind, "title": http.StatusText(status), "status": status, "detail": "the thing, the reason, what to do",
			"errors": []map[string]any{{"location": "body.tag", "message": "expected string"}},
		})
	}
}

const someRun = bench.RunID("abcdefgh23456777-0123abcd")

func TestNewRejectsInvalidAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "127.0.0.1:7480", "ftp://127.0.0.1", "http://", "http://me:pass@127.0.0.1", "http://127.0.0.1?x=1", "http://127.0.0.1\n"} {
		_, err := apiclient.New(address, "", nil)
		require.ErrorContains(t, err, "http://127.0.0.1:7480", address)
	}
	_, err := apiclient.New("http://127.0.0.1:7480", "blm_x\n", nil)
	require.ErrorContains(t, err, "white space")
	c, err := apiclient.New("http://127.0.0.1:7480/", "", nil)
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:7480", c.BaseURL())
}

func TestProblemsBecomeTypedErrors(t *testing.T) {
	t.Parallel()
	all := []error{
		apiclient.ErrJobClosed, apiclient.ErrNobodyWaits, apiclient.ErrFenced, apiclient.ErrNameTaken,
		apiclient.ErrUnauthorized, apiclient.ErrForbidden, apiclient.ErrNotFound,
	}
	for _, c := range []struct {
		status    int
		kind      string
		want      error
		transient bool
		// aboutCaller: it says nothing about what was sent.
		aboutCaller bool
	}{
		{status: 409, kind: apiclient.ProblemJobClosed, want: apiclient.ErrJobClosed},
		{status: 409, kind: apiclient.ProblemNobodyWaits, want: apiclient.ErrNobodyWaits},
		{status: 409, kind: apiclient.ProblemFenced, want: apiclient.ErrFenced, aboutCaller: true},
		{status: 409, kind: apiclient.ProblemNameTaken, want: apiclient.ErrNameTaken},
		{status: 409, kind: "urn:benchloom:conflict"},
		{status: 401, kind: "urn:benchloom:unauthorized", want: apiclient.ErrUnauthorized, aboutCaller: true},
		{status: 403, kind: "urn:benchloom:forbidden", want: apiclient.ErrForbidden, aboutCaller: true},
		{status: 403, kind: apiclient.ProblemNotYours, want: apiclient.ErrForbidden},
		{status: 404, kind: "urn:benchloom:not-found", want: apiclient.ErrNotFound},
		{status: 413, kind: "urn:benchloom:too-large"},
		{status: 422, kind: "urn:benchloom:invalid"},
		{status: 408, kind: "urn:benchloom:timeout", transient: true},
		{status: 429, kind: "urn:benchloom:too-many-waiting", transient: true},
		{status: 500, kind: "urn:benchloom:internal", transient: true},
		{status: 501, kind: "urn:benchloom:http"},
		{status: 503, kind: "urn:benchloom:unavailable", transient: true},
	} {
		client := serve(t, problem(c.status, c.kind, nil))
		_, err := client.StartRun(t.Context(), someRun, apiclient.RunStart{})
		require.EqualError(t, err, "the thing, the reason, what to do\n  body.tag: expected string")
		for _, sentinel := range all {
			require.Equal(t, errors.Is(sentinel, c.want), errors.Is(err, sentinel), "%d %s: %v", c.status, c.kind, sentinel)
		}
		require.Equal(t, c.transient, apiclient.IsTransient(err), "%d", c.status)
		require.Equal(t, !c.transient && !c.aboutCaller, apiclient.IsRefusal(err), "%d", c.status)
	}
}

func TestServerErrorNamesItsRequestID(t *testing.T) {
	t.Parallel()
	client := serve(t, problem(500, "urn:benchloom:internal", map[string]string{apiclient.HeaderRequestID: "0123abcd"}))
	_, err := client.Projects(t.Context())
	require.ErrorContains(t, err, "(request ID 0123abcd)")
}

// Whatever stands between a client and the API may answer in its place: that says
// nothing about the call, which is worth a retry, and never ends anything.
func TestAnswersOfOtherServersAreTransient(t *testing.T) {
	t.Parallel()
	text := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a proxy without a route": {text(404, "text/html", "<html>\nnginx</html>"), `404 Not Found, which is not an answer of the Benchloom API: "<html> nginx</html>"; is the address right? if there is a proxy, let it pass /api on`},
		"a proxy's limit":         {text(413, "text/html", "<html>"), "413 Request Entity Too Large, which is not an answer of the Benchloom API: \"<html>\"; something between this machine and the API limits the size of bodies: raise its limit to 20 MB"},
		"a proxy without the API": {text(502, "text/html", "<html>"), "does the proxy there reach the API"},
		"a gateway's login":       {text(401, "text/plain", ""), "asks for a login of its own: let it pass /api on without one"},
		"a firewall":              {text(403, "text/html", "<html>blocked"), "asks for a login of its own"},
		"nothing":                 {text(404, "", ""), "404 Not Found, which is not an answer"},
		"an error of another API": {problem(422, "https://example.com/problems/invalid", nil), "422 Unprocessable Entity, which is not an answer"},
		"an error without a type": {problem(409, "", nil), "409 Conflict, which is not an answer"},
		"an error that is a list": {text(500, "application/json", "[]"), "500 Internal Server Error, which is not an answer"},
		"a login page":            {text(200, "text/html", "<html>hello</html>"), "200 OK, which is not an answer of the Benchloom API"},
		"another API":             {text(200, "application/json", "{}"), "is the address right, and the API no older than this program?"},
		"an empty success":        {text(204, "", ""), "204 No Content, which is not an answer"},
		"a redirection":           {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, `302 Found, which is not an answer of the Benchloom API: "see /login"; name the address of the API itself`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := behind(t, c.answer)
			calls := map[string]func() error{
				"start":     func() error { _, err := client.StartRun(t.Context(), someRun, apiclient.RunStart{}); return err },
				"block":     func() error { _, err := client.UploadBlock(t.Context(), someRun, 1, apiclient.Block{}); return err },
				"log":       func() error { _, err := client.AppendLog(t.Context(), someRun, 0, []byte("x")); return err },
				"finish":    func() error { return client.FinishRun(t.Context(), someRun, apiclient.RunFinish{}) },
				"heartbeat": func() error { _, err := client.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{}); return err },
				"suite":     func() error { _, err := client.SuiteArchive(t.Context(), "hash"); return err },
				"build":     func() error { _, err := client.Build(t.Context(), "key"); return err },
				"piece":     func() error { _, err := client.BuildChunk(t.Context(), "key", 0); return err },
				"send":      func() error { return client.UploadBuildChunk(t.Context(), someRun, 0, []byte("x")) },
				"built":     func() error { _, err := client.FinishBuild(t.Context(), someRun, apiclient.BuildFinish{}); return err },
				"export":    func() error { return client.Export(t.Context(), io.Discard, "go", "csv") },
			}
			for of, call := range calls {
				err := call()
				require.ErrorContains(t, err, c.want, of)
				require.True(t, apiclient.IsTransient(err), of)
				require.False(t, apiclient.IsRefusal(err), of)
				for _, sentinel := range []error{apiclient.ErrUnauthorized, apiclient.ErrForbidden, apiclient.ErrNotFound, apiclient.ErrFenced} {
					require.NotErrorIs(t, err, sentinel, of)
				}
			}
		})
	}
}

func TestRefusedConnectionNamesTheRemedy(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	client, err := apiclient.New(address, "", nil)
	require.NoError(t, err)
	_, err = client.Info(t.Context())
	require.EqualError(t, err, "cannot reach the Benchloom API at "+address+": connection refused; is it running? start it with 'benchloom up'")
	require.True(t, apiclient.IsTransient(err))
}

func TestBrokenConnectionIsTransient(t *testing.T) {
	t.Parallel()
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
		panic(http.ErrAbortHandler)
	})
	_, err := client.Projects(t.Context())
	require.True(t, apiclient.IsTransient(err), "%v", err)
	require.True(t, apiclient.IsTransient(client.Export(t.Context(), io.Discard, "go", "csv")))
}

func TestCancelledCallIsNotTransient(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	client := serve(t, func(_ http.ResponseWriter, r *http.Request) { stop(); <-r.Context().Done() })
	_, err := client.Projects(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, apiclient.IsTransient(err))
}

func TestCallsSend(t *testing.T) {
	t.Parallel()
	type sent struct {
		line, token, contentType, encoding, body string
	}
	requests := make(chan sent, 1)
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			zipped, err := gzip.NewReader(r.Body)
			if err != nil {
				panic(err)
			}
			body = zipped
		}
		text, err := io.ReadAll(body)
		if err != nil {
			panic(err)
		}
		requests <- sent{r.Method + " " + r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), string(text)}
		w.Header().Set(apiclient.HeaderNextOffset, "7")
		w.Header().Set(apiclient.HeaderComplete, "true")
		w.Header().Set(apiclient.HeaderRun, string(someRun))
		_, _ = io.WriteString(w, `{"next_offset":12,"accepted":1}`)
	})

	_, err := client.Request(t.Context(), "go:1.26.0/x")
	require.NoError(t, err)
	require.Equal(t, sent{line: "GET /api/v1/requests/go:1.26.0%2Fx", token: "Bearer blm_secret"}, <-requests)

	receipt, err := client.UploadBlock(t.Context(), someRun, 3, apiclient.Block{Results: []apiclient.TestCaseResult{}})
	require.NoError(t, err)
	require.Equal(t, 1, receipt.Accepted)
	require.Equal(t, sent{"POST /api/v1/runs/" + string(someRun) + "/blocks/3", "Bearer blm_secret", "application/json", "gzip", `{"results":[]}` + "\n"}, <-requests)

	next, err := client.AppendLog(t.Context(), someRun, 5, []byte("output\x00"))
	require.NoError(t, err)
	require.EqualValues(t, 12, next)
	require.Equal(t, sent{"POST /api/v1/runs/" + string(someRun) + "/log?offset=5", "Bearer blm_secret", "application/octet-stream", "", "output\x00"}, <-requests)

	piece, err := client.JobLog(t.Context(), someRun.Job(), apiclient.LogQuery{Run: 2, From: 4, Wait: 10 * time.Second})
	require.NoError(t, err)
	require.Equal(t, "GET /api/v1/jobs/abcdefgh23456777/log?from=4&run=2&wait=10", (<-requests).line)
	require.EqualValues(t, 7, piece.Next)
	require.True(t, piece.Complete)
	require.Equal(t, someRun, piece.Run)

	_, err = client.DrainCollector(t.Context(), "c1", "")
	require.NoError(t, err)
	require.Equal(t, sent{"POST /api/v1/collectors/c1/drain", "Bearer blm_secret", "application/json", "", "{}"}, <-requests)

	var out bytes.Buffer
	require.NoError(t, client.Export(t.Context(), &out, "go", "csv", "1.25.0", "1.26.0"))
	require.Equal(t, "GET /api/v1/results/export?format=csv&project=go&tag=1.25.0&tag=1.26.0", (<-requests).line)
	require.Equal(t, `{"next_offset":12,"accepted":1}`, out.String())

	text, err := client.CompareText(t.Context(), apiclient.CompareQuery{Project: "go", A: "1", B: "2", Metrics: []bench.Metric{"wall-time", "max-rss"}, Reasons: true, Width: 80}, apiclient.FormatText)
	require.NoError(t, err)
	require.NotEmpty(t, text)
	require.Equal(t, "GET /api/v1/compare?a=1&b=2&format=text&metric=wall-time&metric=max-rss&project=go&reasons=true&width=80", (<-requests).line)
}
