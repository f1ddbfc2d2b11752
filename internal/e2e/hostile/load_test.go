package hostile_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// plantedIterations is the number of iterations of an artifact of the loaded record, as if it
// had been stored before results were bounded. All pairs of two artifacts would be 800 MB.
const plantedIterations = 10_000

// loaded is the stack of the tests that need a large record.
var loaded struct {
	once sync.Once
	s    service
	ok   bool
}

// loadedStack is a stack in which two artifacts of the project large have a result of
// many iterations.
func loadedStack(t *testing.T) service {
	t.Helper()
	s := sharedStack(t)
	loaded.once.Do(func() {
		builds := t.TempDir()
		for _, tag := range []string{"1.0", "2.0"} {
			require.NoError(t, os.MkdirAll(filepath.Join(builds, tag), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(builds, tag, "version"), []byte(tag), 0o644))
		}
		s.apply(t, "large", fmt.Sprintf("name: large\nartifact: {provider: directory, parameters: {path: %q}}\niterations: 5\nbenchmarks:\n  - {name: one, measure: {run: [\"true\"]}}\n", builds+"/{tag}"))
		for _, tag := range []string{"1.0", "2.0"} {
			id := s.submit(t, apiclient.NewRequest{Project: "large", Type: bench.AdHoc, Tag: tag, PlacementWish: apiclient.PlacementWish{SizeClass: 1}})
			d := s.await(t, id)
			require.Equal(t, bench.Success, d.Outcome, d.Message)
		}
		db := s.database(t)
		for _, sql := range []string{
			`insert into collection (result_id, iteration, collected_at)
				select r.id, 1000 + g, now() from test_result r join artifact a on a.id = r.artifact_id and a.project = 'large', generate_series(1, $1::int) g`,
			`insert into pstat (series_id, artifact_id, collection_id, value)
				select se.id, r.artifact_id, c.id, 1 + random() / 100 from collection c join test_result r on r.id = c.result_id
				join artifact a on a.id = r.artifact_id and a.project = 'large'
				join pstat_series se on se.test_case_id = r.test_case_id and se.metric = 'wall-time'
				where c.iteration > 1000 and c.iteration <= 1000 + $1::int`,
		} {
			_, err := db.Exec(t.Context(), sql, plantedIterations)
			require.NoError(t, err)
		}
		loaded.s, loaded.ok = s, true
	})
	require.True(t, loaded.ok, "another test could not load the record")
	return loaded.s
}

// A comparison of results that are too large is refused, or made in bounded memory.
func TestAComparisonBoundsItsMemory(t *testing.T) {
	t.Parallel()
	s := loadedStack(t)
	before := s.memory(t, "api")
	r := s.call(t, "", http.MethodGet, "/api/v1/compare?project=large&a=1.0&b=2.0", nil)
	require.Less(t, r.status, 500, r.String())
	require.Less(t, s.memory(t, "api")-before, int64(400<<20), "bytes that the API grew by")
}

// Twelve clients that ask for an export and do not read it leave the API to others.
func TestSlowReadersTakeNoConnections(t *testing.T) {
	t.Parallel()
	s := loadedStack(t)
	address := strings.TrimPrefix(s.url, "http://")
	for range 12 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
		_, err = fmt.Fprintf(conn, "GET /api/v1/results/export?project=large&format=json HTTP/1.1\r\nHost: %s\r\n\r\n", address)
		require.NoError(t, err)
	}
	// The exports begin within moments; afterwards all connections would be taken.
	for range 100 {
		begun := time.Now()
		r := s.call(t, "", http.MethodGet, "/readyz", nil)
		require.Equal(t, http.StatusOK, r.status, "after %s: %s", time.Since(begun), r)
		_, err := s.API.Collectors(t.Context())
		require.NoError(t, err)
	}
}
