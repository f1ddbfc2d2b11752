package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

// measuredArtifacts is a record with an artifact for each tag, measured and not packed yet.
func measuredArtifacts(t *testing.T, tags ...string) (r record, measure func(tag string)) {
	t.Helper()
	r = newRecord(t)
	collector := r.register("one")
	measure = func(tag string) {
		t.Helper()
		_, job := r.oneJob(tag, "gin", "kit")
		plan := r.start(job, 1, collector)
		r.block(plan.Run.ID, measured("gin", r.float(), r.float(), r.float()), measured("kit", r.float(), r.float()))
		_, err := r.FinishJob(t.Context(), job.Key, 0, "")
		require.NoError(t, err)
	}
	for _, tag := range tags {
		measure(tag)
	}
	return r, measure
}

// requirePacked packs what is due in one transaction.
func (r record) requirePacked(artifacts int) {
	r.t.Helper()
	n, err := r.PackResults(r.t.Context(), project)
	require.NoError(r.t, err)
	require.Equal(r.t, artifacts, n)
}

// packError packs what is due in one transaction, and returns what it tells.
func (r record) packError(artifacts int) *store.PackError {
	r.t.Helper()
	n, err := r.PackResults(r.t.Context(), project)
	require.Equal(r.t, artifacts, n)
	var met *store.PackError
	require.ErrorAs(r.t, err, &met)
	return met
}

// stale lists the artifacts that are read from their rows.
func (r record) stale() int {
	r.t.Helper()
	return r.count(`select count(distinct artifact_id) from stale_result`)
}

// An artifact that cannot be packed waits, ever longer, and is read from its rows; others go
// on, and it is packed as soon as its results change.
func TestAnArtifactThatCannotBePackedStopsNoOther(t *testing.T) {
	t.Parallel()
	r, measure := measuredArtifacts(t, "v1", "v2", "v3")
	const damage = `update collection set iteration = -1 where iteration = 0 and result_id in (
		select r.id from test_result r join artifact a on a.id = r.artifact_id where a.tag = 'v2')`
	r.execute(damage)
	met := r.packError(3)
	require.Len(t, met.Artifacts, 1)
	require.Equal(t, "v2", met.Artifacts[0].Tag)
	require.ErrorContains(t, met, "artifact v2 is read from its rows, as it could not be packed")
	require.ErrorContains(t, met, "not ascending")
	require.Equal(t, 1, r.stale())
	r.checkReading()

	// It is not tried again at once, and a check names it.
	r.requirePacked(0)
	measure("v4")
	projects, err := r.ProjectsToPack(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{project}, projects)
	r.requirePacked(1)
	found, err := r.CheckPacked(t.Context(), project, 0, 10)
	require.NoError(t, err)
	require.Len(t, found.Differences, 1)
	require.Contains(t, found.Differences[0], "artifact v2 is read from its rows, as it could not be packed, 1 time by now")

	// The next try comes later, the one after that after twice the time.
	pause := `select extract(epoch from retry_at - failed_at)::int from pack_failure`
	require.Equal(t, 600, r.count(pause))
	r.execute(`update pack_failure set retry_at = now()`)
	require.Len(t, r.packError(1).Artifacts, 1)
	require.Equal(t, 1200, r.count(pause))
	r.execute(`update pack_failure set tries = 1000, retry_at = now()`)
	require.Len(t, r.packError(1).Artifacts, 1)
	require.Equal(t, 86_400, r.count(pause))

	r.execute(`update collection set iteration = 0 where iteration = -1`)
	r.requirePacked(1)
	require.Zero(t, r.stale())
	require.Zero(t, r.count(`select count(*) from pack_failure`))
	r.checkReading()

	// A check says so of one that was packed before, too; packing all anew tries at once.
	r.execute(`alter table collection disable trigger stale_update; ` + damage + `; alter table collection enable trigger stale_update`)
	found, err = r.CheckPacked(t.Context(), project, 0, 10)
	require.NoError(t, err)
	require.Contains(t, found.Differences[0], "artifact v2 has results of max-rss on size class 2, hardware zen4 that cannot be packed")
	_, err = r.RebuildPacked(t.Context(), project, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	require.Len(t, r.packError(4).Artifacts, 1)
	r.execute(`alter table collection disable trigger stale_update; update collection set iteration = 0 where iteration = -1; alter table collection enable trigger stale_update`)
	r.requirePacked(0)
	_, err = r.RebuildPacked(t.Context(), project, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	r.requirePacked(4)
}

// Histories are written for several artifacts at once: the one for which that fails is found.
func TestHistoriesThatCannotBeWrittenStopNoOtherArtifact(t *testing.T) {
	t.Parallel()
	r, _ := measuredArtifacts(t, "v1", "v2")
	r.execute(`do $$ begin
		execute format('alter table strip add constraint refused check (last_artifact <> %s)', (select id from artifact where tag = 'v2'));
	end $$`)
	met := r.packError(1)
	require.Equal(t, "v2", met.Artifacts[0].Tag)
	require.ErrorContains(t, met, "refused")
	r.checkReading()
	r.requirePacked(1)
	r.requirePacked(0)
	r.checkReading()
	r.execute(`alter table strip drop constraint refused; update pack_failure set retry_at = now()`)
	r.requirePacked(1)
	r.checkReading()
}

// What the database cannot do at all is nobody's fault, and is tried again at once.
func TestPackingBlamesNoArtifactForTheDatabase(t *testing.T) {
	t.Parallel()
	r, _ := measuredArtifacts(t, "v1")
	r.execute(`alter table sheet rename to moved`)
	_, err := r.PackResults(t.Context(), project)
	require.ErrorContains(t, err, `relation "sheet" does not exist`)
	var met *store.PackError
	require.NotErrorAs(t, err, &met)
	r.execute(`alter table moved rename to sheet`)
	r.requirePacked(1)
}

// Parts of histories and sheets that cannot be read are replaced by what the rows say.
func TestWhatCannotBeReadIsPackedAnew(t *testing.T) {
	t.Parallel()
	r, measure := measuredArtifacts(t, "v1", "v2", "v3")
	r.requirePacked(3)
	r.execute(`update strip set packed = substr(packed, 1, 20) where series_id = (select min(series_id) from strip)`)
	measure("v4")
	met := r.packError(1)
	require.Len(t, met.Lost, 1)
	require.Empty(t, met.Artifacts)
	require.ErrorContains(t, met, "on size class 2, hardware zen4 from artifact")
	require.Equal(t, 3, r.stale(), "their points are lost")
	r.checkReading()
	r.requirePacked(3)
	require.Zero(t, r.stale())
	r.checkPacked()
	r.checkReading()

	// A sheet tells which histories have points of its artifact; without it, all are asked.
	r.execute(`update sheet set packed = substr(packed, 1, 20) where artifact_id = (select id from artifact where tag = 'v2')`)
	_, err := r.InvalidateResults(t.Context(), store.ResultFilter{Project: project, Tag: "v2"}, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	r.requirePacked(1)
	r.checkPacked()
	r.checkReading()
}

// The results of a request that has ended are packed before others that are due, once those
// who pack let it.
func TestAnArtifactIsPackedByItself(t *testing.T) {
	t.Parallel()
	r, _ := measuredArtifacts(t, "v1", "v2", "v3")
	n, err := r.PackArtifact(t.Context(), project, "v2")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, 1, r.count(`select count(distinct artifact_id) from sheet where artifact_id = (select id from artifact where tag = 'v2')`))
	require.Equal(t, 2, r.stale())
	n, err = r.PackArtifact(t.Context(), project, "v2")
	require.NoError(t, err)
	require.Zero(t, n)

	other := r.connect()
	_, err = other.Exec(t.Context(), `select pg_advisory_lock(hashtextextended('benchloom packed results of ' || $1, 0))`, project)
	require.NoError(t, err)
	r.requirePacked(0)
	ended := r.whileWaiting(func() error { _, err := r.PackArtifact(t.Context(), project, "v1"); return err })
	require.NoError(t, other.Close(t.Context()))
	ended()
	require.Equal(t, 1, r.stale())
	r.checkReading()
}

// One transaction packs artifacts that lie near to each other, as many as fit in memory.
func TestOneTransactionPacksNeighbours(t *testing.T) {
	t.Parallel()
	r, measure := measuredArtifacts(t, "v1", "v2")
	r.execute(`insert into artifact (project, tag) select $1, 'gap' || n from generate_series(1, 100) as n`, project)
	measure("v3")
	r.requirePacked(1)
	r.requirePacked(2)
	r.requirePacked(0)

	_, err := r.RebuildPacked(t.Context(), project, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	measure("v4")
	n, err := r.PackPoints(t.Context(), project, 5)
	require.NoError(t, err)
	require.Equal(t, 2, n, "an artifact has four points")
	r.checkReading()
	n, err = r.PackPoints(t.Context(), project, 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	r.requirePacked(1)
	r.checkReading()
}

// Whoever changes or removes results, or what belongs to them, marks their artifact.
func TestChangesByHandMarkTheirArtifact(t *testing.T) {
	t.Parallel()
	r, _ := measuredArtifacts(t, "v1", "v2")
	r.requirePacked(2)
	for _, sql := range []string{
		`delete from pstat where value = (select max(value) from pstat)`,
		`delete from collection where id = (select max(id) from collection)`,
		`update pstat set value = 2 * value where value = (select max(value) from pstat)`,
		`update collection set iteration = 7 where id = (select max(id) from collection)`,
		`update collection set disturbed = 'load:others' where id = (select max(id) from collection)`,
		`update test_result set probe = true where id = (select min(id) from test_result)`,
		`delete from test_result where id = (select max(id) from test_result)`,
	} {
		r.execute(sql)
		require.Equal(t, 1, r.stale(), sql)
		r.checkReading()
		r.requirePacked(1)
		r.checkReading()
	}
	// One that loses a value to the other has changed as well.
	r.execute(`update collection set iteration = iteration + 10, result_id = (select max(id) from test_result) where result_id = (select min(id) from test_result);
		update pstat set artifact_id = (select max(artifact_id) from test_result) where collection_id in (select id from collection where iteration >= 10)`)
	require.Equal(t, 2, r.stale())
	r.requirePacked(2)
	r.checkReading()
}
