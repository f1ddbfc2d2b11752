package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/up"
)

// Temporal's database is deleted under the running service while several requests are in
// progress.
func TestLongLosingTemporalsDatabase(t *testing.T) {
	t.Parallel()
	losingTemporal(t, func(t *testing.T, s *stack) []bench.RequestID {
		t.Helper()
		s.deleteTemporal(t)
		s.kill(t, "temporal")
		return nil
	})
}

func TestLongLosingTemporalsDatabaseWhileItIsStopped(t *testing.T) {
	t.Parallel()
	losingTemporal(t, func(t *testing.T, s *stack) []bench.RequestID {
		t.Helper()
		s.stop(t)
		s.deleteTemporal(t)
		s.start(t)
		return nil
	})
}

// Temporal goes on with what was on its disk some time ago, as after a power failure: it has
// never heard of a request, and has running what has ended.
func TestLongTemporalForgetsItsLastCommits(t *testing.T) {
	t.Parallel()
	losingTemporal(t, func(t *testing.T, s *stack) []bench.RequestID {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(s.dir, "temporal", "temporal.db*"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		thaw := s.freeze(t, "temporal")
		onDisk := make(map[string][]byte)
		for _, file := range files {
			onDisk[file], err = os.ReadFile(file)
			require.NoError(t, err)
		}
		thaw()
		forgotten := s.submit(t, apiclient.NewRequest{Project: apiclient.AdHocProject, Type: bench.AdHoc, Command: &apiclient.Command{Argv: []string{"true"}}}).ID
		c := s.temporal(t)
		require.Eventually(t, func() bool {
			_, err := c.DescribeWorkflowExecution(t.Context(), s.requestWorkflow(t, forgotten), "")
			return err == nil
		}, patience, 50*time.Millisecond, "its workflow does not start")
		s.freeze(t, "temporal")
		for file, text := range onDisk {
			require.NoError(t, os.Remove(file)) // the process goes on with its own
			require.NoError(t, os.WriteFile(file, text, 0o600))
		}
		s.kill(t, "temporal")
		return []bench.RequestID{forgotten}
	})
}

// losingTemporal requires that requests in progress resume from the record, and that no
// stored result is measured again.
func losingTemporal(t *testing.T, lose func(t *testing.T, s *stack) (forgotten []bench.RequestID)) {
	t.Helper()
	s := startStack(t, "--collectors", "2x1", "--share-cores")
	shell := newShellSuite(t, 4)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{Queue: bench.QueuePolicy{MaxInProgress: 2}})
	var ids []bench.RequestID
	for _, tag := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		shell.artifact(t, tag, 20_000)
		ids = append(ids, s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: tag}).ID)
	}
	// Some blocks are stored, others are in progress, the last request waits.
	require.Eventually(t, func() bool { return len(s.stored(t)) > 0 }, patience, 50*time.Millisecond)
	release := s.hold(t, failpoint.Measuring)
	s.reached(t, failpoint.Measuring)
	stored := s.stored(t)
	before := shell.executions(t)
	ids = append(ids, lose(t, s)...)
	release()
	ids = append(ids, s.submit(t, apiclient.NewRequest{Project: apiclient.AdHocProject, Type: bench.AdHoc, Command: &apiclient.Command{Argv: []string{"true"}}}).ID)
	for _, id := range ids {
		d := s.await(t, id, patience)
		requireSuccess(t, d.Outcome, d)
		require.Empty(t, d.Errors)
	}
	s.requireCollections(t, "shell", smallIterations)
	after := shell.executions(t)
	for _, test := range stored {
		require.Equal(t, before[test], after[test], "%s was stored when Temporal's database was lost", test)
	}
	for test, n := range after {
		require.LessOrEqual(t, n, 2*smallIterations, test)
	}
}

// stored lists the test cases with a stored result, as "benchmark tag".
func (s *stack) stored(t *testing.T) []string {
	t.Helper()
	conn := s.database(t)
	rows, err := conn.Query(t.Context(), `
		select tc.benchmark || ' ' || a.tag from test_result r
		join test_case tc on tc.id = r.test_case_id join artifact a on a.id = r.artifact_id where tc.benchmark like 'count-%'`)
	require.NoError(t, err)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var test string
		require.NoError(t, rows.Scan(&test))
		out = append(out, test)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, conn.Close(t.Context()))
	return out
}

// deleteTemporal deletes the files of Temporal's database.
func (s *stack) deleteTemporal(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "temporal", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		require.NoError(t, os.RemoveAll(file))
	}
}

// postgresProgram finds a program of Postgres as operators do.
func postgresProgram(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	require.NoError(t, err)
	require.NotEmpty(t, found, "no %s: install Postgres' client programs", name)
	return found[len(found)-1]
}

// Postgres is restored from an older backup. Requests in the backup continue, and lost
// results are measured again. Workflows of requests missing from it end with an error
// that says so; these can be submitted again.
func TestLongRestoringAnOlderBackupOfTheRecord(t *testing.T) {
	t.Parallel()
	s := startWhole(t)
	shell := newShellSuite(t, 1)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	submit := func(tag string) bench.RequestID {
		shell.artifact(t, tag, 1000)
		return s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: tag}).ID
	}
	database := func() string { return s.up.Addresses[up.AddressDatabase] }
	dump := filepath.Join(t.TempDir(), "benchloom.sql")

	kept := submit("1.0.0")
	requireSuccess(t, s.await(t, kept, ended).Outcome, kept)
	release := s.hold(t, failpoint.Measuring)
	running, waiting := submit("1.1.0"), submit("1.2.0")
	s.reached(t, failpoint.Measuring)
	text, err := exec.Command(postgresProgram(t, "pg_dump"), "--clean", "--if-exists", "--file", dump, database()).CombinedOutput()
	require.NoError(t, err, string(text))

	// Nothing from here on is in the backup.
	release()
	for _, id := range []bench.RequestID{running, waiting, submit("1.3.0")} {
		requireSuccess(t, s.await(t, id, ended).Outcome, id)
	}
	release = s.hold(t, failpoint.Measuring)
	lost := submit("1.4.0")
	s.reached(t, failpoint.Measuring)
	workflows := []string{s.requestWorkflow(t, lost), s.jobWorkflow(t, s.firstJob(t, lost))}

	text, err = exec.Command(postgresProgram(t, "psql"), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--single-transaction", "--file", dump, database()).CombinedOutput()
	require.NoError(t, err, string(text))
	s.stop(t)
	release()
	s.start(t)

	c := s.temporal(t)
	for _, id := range []bench.RequestID{kept, running, waiting} {
		s.awaitReconciled(t, c, id)
	}
	require.Equal(t, smallIterations, shell.executions(t)["count-1 1.0.0"], "its results were in the backup")

	for _, id := range workflows {
		require.Eventually(t, func() bool { return ends(t, c, id) }, patience, 50*time.Millisecond, "%s still runs", id)
		require.ErrorContains(t, failureOf(t, c, id), "the record was restored from an older backup", id)
	}
	_, err = s.api.Request(t.Context(), string(lost))
	require.ErrorContains(t, err, "there is no request")
	// The workflows of its jobs had ended; they are started again.
	for _, tag := range []string{"1.3.0", "1.4.0"} {
		s.awaitReconciled(t, c, submit(tag))
	}
	s.requireCollections(t, "shell", smallIterations)
}

// awaitReconciled waits for a request's success without waiting for the Schedule: it
// makes hand-outs older and runs the reconciliation again and again.
func (s *stack) awaitReconciled(t *testing.T, c client.Client, id bench.RequestID) {
	t.Helper()
	require.Eventually(t, func() bool {
		d, err := s.api.Request(t.Context(), string(id))
		if err == nil && d.Status == bench.Completed {
			requireSuccess(t, d.Outcome, d)
			return true
		}
		s.ripen(t)
		triggerReconcile(t, c)
		return false
	}, patience, 2*time.Second, "request %s has not ended", id)
}

// failureOf returns the error that a workflow ended with.
func failureOf(t *testing.T, c client.Client, workflowID string) error {
	t.Helper()
	err := c.GetWorkflow(t.Context(), workflowID, "").Get(t.Context(), nil)
	require.Error(t, err)
	return err
}
