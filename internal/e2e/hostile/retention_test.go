package hostile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// age makes requests with their runs, and suites, look as if they were from a hundred days
// ago: older than commands, output and suites are kept.
func (s service) age(t *testing.T, requests []bench.RequestID, suites ...string) {
	t.Helper()
	var runs []bench.RunID
	for _, id := range requests {
		d, err := s.API.Request(t.Context(), string(id))
		require.NoError(t, err)
		for _, r := range d.Runs {
			runs = append(runs, r.ID)
		}
	}
	require.NotEmpty(t, runs)
	db := s.database(t)
	const ago = `- interval '100 days'`
	for sql, ids := range map[string]any{
		`update benchmark_request set created_at = created_at ` + ago + `, completed_at = completed_at ` + ago + ` where id = any($1)`: requests,
		`update job_run set started_at = started_at ` + ago + `, finished_at = finished_at ` + ago + ` where id = any($1)`:             runs,
		`update suite_bundle set created_at = created_at ` + ago + ` where hash = any($1)`:                                             suites,
	} {
		_, err := db.Exec(t.Context(), sql, ids)
		require.NoError(t, err)
	}
}

// log returns a run's output as the API shows it.
func (s service) log(t *testing.T, run bench.RunID) string {
	t.Helper()
	piece, err := s.API.RunLog(t.Context(), run, apiclient.LogQuery{})
	if errors.Is(err, apiclient.ErrNotFound) {
		return ""
	}
	require.NoError(t, err)
	return string(piece.Data)
}

// Commands, output and suites go when they are old enough; what is open, is referred to or
// is a result stays.
func TestLongNothingIsKeptForEver(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	builds := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(builds, "1.0"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(builds, "1.0", "version"), []byte("1.0"), 0o644))
	text := func(remark string) string {
		return fmt.Sprintf("# %s\nname: aged\nartifact: {provider: directory, parameters: {path: %q}}\niterations: 1\nbenchmarks:\n  - {name: one, measure: {run: [echo, aged-output]}}\n", remark, builds+"/{tag}")
	}
	unused := s.apply(t, "aged", text("before"))
	used := s.apply(t, "aged", text("after"))

	file, release := held(t)
	class := apiclient.PlacementWish{SizeClass: 1}
	command := func(script string) bench.RequestID {
		return s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", script}}, PlacementWish: class})
	}
	measured := s.submit(t, apiclient.NewRequest{Project: "aged", Type: bench.AdHoc, Tag: "1.0", PlacementWish: class})
	old, young := command("echo aged-output"), command("echo aged-output")
	runs := make(map[bench.RequestID]bench.RunID)
	for _, id := range []bench.RequestID{measured, old, young} {
		d := s.await(t, id)
		require.Equal(t, bench.Success, d.Outcome, d.Message)
		runs[id] = d.Runs[0].ID
	}
	open := command("echo aged-output; while [ -e " + file + " ]; do sleep 0.05; done")
	runs[open] = s.runOf(t, open).ID
	for id := range runs {
		require.Eventually(t, func() bool { return s.log(t, runs[id]) != "" }, patience, 50*time.Millisecond, "no output arrives")
	}
	results := s.results(t, measured)
	require.Equal(t, 1, results)

	s.age(t, []bench.RequestID{measured, old, open}, unused, used)
	require.NoError(t, s.API.RunRetention(t.Context()))
	for what, gone := range map[string]func() bool{
		"command": func() bool {
			_, err := s.API.Request(t.Context(), string(old))
			return errors.Is(err, apiclient.ErrNotFound)
		},
		"suite": func() bool {
			_, err := s.API.SuiteArchive(t.Context(), unused)
			return errors.Is(err, apiclient.ErrNotFound)
		},
		"output": func() bool { return !strings.Contains(s.log(t, runs[measured]), "aged-output") },
	} {
		require.Eventually(t, gone, patience, 100*time.Millisecond, "an old %s stays", what)
	}

	require.Equal(t, results, s.results(t, measured), "results are kept")
	require.Contains(t, s.log(t, runs[young]), "aged-output")
	require.Contains(t, s.log(t, runs[open]), "aged-output", "what is open is kept, however old")
	_, err := s.API.SuiteArchive(t.Context(), used)
	require.NoError(t, err, "the project's suite is kept")
	release()
	d := s.await(t, open)
	require.Equal(t, bench.Success, d.Outcome, d.Message)
}

// A collector that is idle removes the directories that no job has used for long.
func TestCollectorsRemoveUnusedFolders(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	dir := s.enrolMachine(t, "tidy", 23, s.url)
	long := time.Now().Add(-100 * 24 * time.Hour)
	var old, young []string
	for _, parent := range []string{"suites", "caches/project"} {
		for _, name := range []string{"old", "young"} {
			path := filepath.Join(dir, parent, name)
			require.NoError(t, os.MkdirAll(path, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(path, "file"), []byte("contents"), 0o644))
			if name == "young" {
				young = append(young, path)
				continue
			}
			require.NoError(t, os.Chtimes(path, long, long))
			old = append(old, path)
		}
	}
	runMachine(t, dir)
	for _, path := range old {
		require.Eventually(t, func() bool {
			_, err := os.Stat(path)
			return errors.Is(err, os.ErrNotExist)
		}, patience, 50*time.Millisecond, "%s stays", path)
	}
	for _, path := range young {
		require.FileExists(t, filepath.Join(path, "file"))
	}
}
