package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// keepingRun is one of a command that keeps files, which the collector own has begun.
func (w *rolesWorld) keepingRun() bench.RunID {
	w.t.Helper()
	request, err := w.writer.CreateRequest(w.t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	require.NoError(w.t, err)
	jobs, err := w.store.RequestJobs(w.t.Context(), request.ID)
	require.NoError(w.t, err)
	w.past(w.t, `update job_queue set command = command || '{"script": {"uploads": ["out/*"]}}' where key = '`+string(jobs[0].Key)+`'`)
	_, err = w.store.HandOut(w.t.Context(), jobs[0].TaskQueue, store.HandOutOptions{Depth: func(int) int { return 100 }})
	require.NoError(w.t, err)
	return w.start(w.t, job{key: jobs[0].Key}, w.registered(), 1).Run.ID
}

// Files of a run are kept as they are, listed by their paths, and downloaded as files alone.
func TestARunKeepsFiles(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t, withFiles(t))
	own, run := w.client(t, "own"), w.keepingRun()
	none, err := w.reader.RunFiles(t.Context(), run)
	require.NoError(t, err)
	require.Empty(t, none)
	for range 2 {
		for path, text := range map[string]string{"out/report ä.html": "<script>alert(1)</script>", "out/a": "one"} {
			f, err := own.StoreRunFile(t.Context(), run, path, int64(len(text)), strings.NewReader(text))
			require.NoError(t, err)
			require.Equal(t, []any{path, int64(len(text))}, []any{f.Path, f.Size})
		}
	}
	files, err := w.reader.RunFiles(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Equal(t, "out/a", files[0].Path)
	var text bytes.Buffer
	require.NoError(t, w.reader.RunFile(t.Context(), run, "out/report ä.html", &text))
	require.Equal(t, "<script>alert(1)</script>", text.String())
	r := w.send(t, api.RoleReader, http.MethodGet, "/api/v1/runs/"+string(run)+"/files/content?path=out/report%20%C3%A4.html", "")
	require.Equal(t, []string{"application/octet-stream", "nosniff"}, []string{r.header.Get("Content-Type"), r.header.Get("X-Content-Type-Options")})
	require.True(t, strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment"), "a browser runs nothing of it")
	page := w.page(t, api.RoleReader, "/runs/"+string(run))
	page.requireSound(t, "/runs/"+string(run))
	require.Contains(t, page.section("s-files"), "out/report ä.html")
	require.Contains(t, page.links(), "/api/v1/runs/"+string(run)+"/files/content?path=out%2Fa")
	inUse, err := w.store.BlobsInUse(t.Context(), []string{files[0].Digest, strings.Repeat("0", 64)})
	require.NoError(t, err)
	require.Equal(t, []string{files[0].Digest}, inUse)

	err = w.reader.RunFile(t.Context(), run, "out/b", &text)
	require.Equal(t, "urn:benchloom:unknown-file", problemOf(t, err).Type)
	require.NoError(t, w.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	_, err = own.StoreRunFile(t.Context(), run, "out/late", 1, strings.NewReader("x"))
	require.Equal(t, apiclient.ProblemRunClosed, problemOf(t, err).Type)
}

func TestFilesThatARunDoesNotKeep(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t, withFiles(t))
	own, run := w.client(t, "own"), w.keepingRun()
	for _, who := range []string{"other", api.RoleWriter, api.RoleAdmin} {
		_, err := w.client(t, who).StoreRunFile(t.Context(), run, "a", 1, strings.NewReader("x"))
		require.Equal(t, http.StatusForbidden, problemOf(t, err).Status, who)
	}
	for _, path := range []string{"", "/etc/passwd", "../x", "a//b", "a\nb"} {
		_, err := own.StoreRunFile(t.Context(), run, path, 1, strings.NewReader("x"))
		require.Equal(t, http.StatusUnprocessableEntity, problemOf(t, err).Status, "%q", path)
	}
	_, err := own.StoreRunFile(t.Context(), run, "big", bench.MaxRunFile+1, &zeros{left: bench.MaxRunFile + 1})
	require.Equal(t, http.StatusRequestEntityTooLarge, problemOf(t, err).Status)
	_, err = own.StoreRunFile(t.Context(), "aaaaaaaaaaaaaaaa-00000000", "a", 1, strings.NewReader("x"))
	require.Equal(t, http.StatusNotFound, problemOf(t, err).Status)
	measuring, _ := w.run()
	_, err = own.StoreRunFile(t.Context(), measuring, "a", 1, strings.NewReader("x"))
	require.Equal(t, "urn:benchloom:no-files", problemOf(t, err).Type)
	for i := range bench.MaxRunFiles {
		require.NoError(t, w.store.StoreRunFile(t.Context(), run, bench.RunFile{Path: fmt.Sprint("f", i), Digest: strings.Repeat("0", 64)}))
	}
	_, err = own.StoreRunFile(t.Context(), run, "one-more", 1, strings.NewReader("x"))
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status)
}
