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

// serve starts a server and a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *apiclient.Client {
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
	}{
		{status: 409, kind: apiclient.ProblemJobClosed, want: apiclient.ErrJobClosed},
		{status: 409, kind: apiclient.ProblemNobodyWaits, want: apiclient.ErrNobodyWaits},
		{status: 409, kind: apiclient.ProblemFenced, want: apiclient.ErrFenced},
		{status: 409, kind: apiclient.ProblemNameTaken, want: apiclient.ErrNameTaken},
		{status: 409, kind: "urn:benchloom:conflict"},
		{status: 401, want: apiclient.ErrUnauthorized},
		{status: 403, want: apiclient.ErrForbidden},
		{status: 404, want: apiclient.ErrNotFound},
		{status: 422},
		{status: 408, transient: true},
		{status: 429, transient: true},
		{status: 500, transient: true},
		{status: 501},
		{status: 503, transient: true},
	} {
		client := serve(t, problem(c.status, c.kind, nil))
		_, err := client.StartRun(t.Context(), someRun, apiclient.RunStart{})
		require.EqualError(t, err, "the thing, the reason, what to do\n  body.tag: expected string")
		for _, sentinel := range all {
			require.Equal(t, errors.Is(sentinel, c.want), errors.Is(err, sentinel), "%d %s: %v", c.status, c.kind, sentinel)
		}
		require.Equal(t, c.transient, apiclient.IsTransient(err), "%d", c.status)
	}
}

func TestServerErrorNamesItsRequestID(t *testing.T) {
	t.Parallel()
	client := serve(t, problem(500, "", map[string]string{apiclient.HeaderRequestID: "0123abcd"}))
	_, err := client.Projects(t.Context())
	require.ErrorContains(t, err, "(request ID 0123abcd)")
}

func TestAnswersOfOtherServersAreReported(t *testing.T) {
	t.Parallel()
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>\nnginx</html>")
	})
	_, err := client.Projects(t.Context())
	require.ErrorContains(t, err, "502 Bad Gateway, which is not an answer of the Benchloom API")
	require.True(t, apiclient.IsTransient(err))

	client = serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello</html>") })
	_, err = client.Projects(t.Context())
	require.ErrorContains(t, err, "is this the Benchloom API")
	require.False(t, apiclient.IsTransient(err))
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

	_, err = client.DrainCollector(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, sent{line: "POST /api/v1/collectors/c1/drain", token: "Bearer blm_secret"}, <-requests)

	var out bytes.Buffer
	require.NoError(t, client.Export(t.Context(), &out, "go", "csv", "1.25.0", "1.26.0"))
	require.Equal(t, "GET /api/v1/results/export?format=csv&project=go&tag=1.25.0&tag=1.26.0", (<-requests).line)
	require.Equal(t, `{"next_offset":12,"accepted":1}`, out.String())

	text, err := client.CompareText(t.Context(), apiclient.CompareQuery{Project: "go", A: "1", B: "2", Metrics: []bench.Metric{"wall-time", "max-rss"}, Reasons: true, Width: 80}, apiclient.FormatText)
	require.NoError(t, err)
	require.NotEmpty(t, text)
	require.Equal(t, "GET /api/v1/compare?a=1&b=2&format=text&metric=wall-time&metric=max-rss&project=go&reasons=true&width=80", (<-requests).line)
}
