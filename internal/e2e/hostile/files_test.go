package hostile_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/up"
)

// An archive of 2 MB with 300,000 files is refused before it is unpacked.
func TestAnArchiveOfCountlessFilesIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	suite := []byte("name: countless\nbenchmarks:\n  - {name: one, measure: {run: [\"true\"]}}\n")
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "suite.yaml", Mode: 0o644, Size: int64(len(suite))}))
	_, err := w.Write(suite)
	require.NoError(t, err)
	for i := range 300_000 {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("f%06d", i), Mode: 0o644}))
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	begun := time.Now()
	r := s.call(t, s.token(t, up.TokenUser), http.MethodPut, "/api/v1/suites/"+hash("countless"), archive.Bytes(), "Content-Type", "application/gzip")
	require.Equal(t, http.StatusUnprocessableEntity, r.status, r.String())
	require.Regexp(t, `files|entries`, r.body, "it says what there is too much of")
	t.Logf("refused within %s", time.Since(begun))
}
