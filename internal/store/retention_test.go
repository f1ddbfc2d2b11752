package store_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

const month = 30 * 24 * time.Hour

// measurement is an ad-hoc request for an artifact.
func measurement(t *testing.T, tag string) bench.Request {
	t.Helper()
	r := release(t, tag)
	r.Type = bench.AdHoc
	return r
}

// expire removes what has expired of a kind after a month, until nothing is left to remove.
func (r record) expire(kind bench.RetentionKind) store.Removed {
	r.t.Helper()
	keep := store.Keep{Kind: kind, For: month}
	due, err := r.ExpiredNow(r.t.Context(), keep)
	require.NoError(r.t, err)
	var all store.Removed
	for more := true; more; {
		var removed store.Removed
		removed, more, err = r.RemoveExpired(r.t.Context(), keep)
		require.NoError(r.t, err)
		all.Rows, all.Bytes = all.Rows+removed.Rows, all.Bytes+removed.Bytes
	}
	require.Equal(r.t, due.Rows, all.Rows, "what was announced is removed")
	require.Equal(r.t, due.Rows > 0, due.Bytes > 0)
	again, more, err := r.RemoveExpired(r.t.Context(), keep)
	require.NoError(r.t, err)
	require.False(r.t, more)
	require.Zero(r.t, again, "once")
	return all
}

// age makes all that has ended have ended earlier.
func (r record) age(by time.Duration) {
	r.t.Helper()
	for _, sql := range []string{
		`update benchmark_request set created_at = created_at - make_interval(secs => $1), completed_at = completed_at - make_interval(secs => $1)`,
		`update job_run set started_at = started_at - make_interval(secs => $1), finished_at = finished_at - make_interval(secs => $1)`,
		`update suite_bundle set created_at = created_at - make_interval(secs => $1)`,
		`update audit set at = at - make_interval(secs => $1)`,
		`update artifact_notice set first_at = first_at - make_interval(secs => $1), last_at = last_at - make_interval(secs => $1)`,
		`update size_statistics set updated_at = updated_at - make_interval(secs => $1)`,
		`update canary set created_at = created_at - make_interval(secs => $1), ended_at = ended_at - make_interval(secs => $1)`,
		`update collector_invitation set expires_at = expires_at - make_interval(secs => $1)`,
	} {
		r.execute(sql, by.Seconds())
	}
}

// A run's log and the tails of its output go after a while, its results stay. A run that
// goes on, and one that has just ended, keep theirs.
func TestOutputOfOldRunsIsRemoved(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	ended := func(tag string) bench.RunID {
		t.Helper()
		_, job := r.oneJob(tag, "sort")
		plan := r.start(job, 1, c)
		_, err := r.AppendLog(t.Context(), plan.Run.ID, 0, []byte("the log of "+tag), 1<<20)
		require.NoError(t, err)
		r.block(plan.Run.ID, measured("sort", 1, 2))
		require.NoError(t, r.FinishRun(t.Context(), plan.Run.ID, bench.RunEnd{Outcome: bench.RunSuccess, OutputTail: "the tail of " + tag}))
		r.finish(job, "")
		return plan.Run.ID
	}
	old := ended("1.0.0")
	r.age(2 * month)
	fresh := ended("1.1.0")
	_, open := r.oneJob("1.2.0", "sort")
	running := r.start(open, 1, c).Run.ID
	_, err := r.AppendLog(t.Context(), running, 0, []byte("so far"), 1<<20)
	require.NoError(t, err)

	removed := r.expire(bench.KeepOutput)
	require.Equal(t, int64(1), removed.Rows)
	require.GreaterOrEqual(t, removed.Bytes, int64(len("the log of 1.0.0")+len("the tail of 1.0.0")))
	for run, want := range map[bench.RunID]string{old: "", fresh: "the log of 1.1.0", running: "so far"} {
		data, _, err := r.ReadLog(t.Context(), run, 0, 100)
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}
	require.Empty(t, r.run(old).OutputTail)
	require.Equal(t, "the tail of 1.1.0", r.run(fresh).OutputTail)
	require.Len(t, r.values("1.0.0")["sort"], 2, "results stay")
	_, next, err := r.ReadLog(t.Context(), old, 0, 100)
	require.NoError(t, err)
	require.Equal(t, int64(len("the log of 1.0.0")), next, "a reader learns that there was a log")
}

// Commands that were submitted go with their jobs and results after a while; those of an
// open request stay, also the ones that have ended.
func TestOldCommandsAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	old := r.commands(3)
	r.age(2 * month)
	fresh := r.commands(2)
	asked := batch(t, 4)
	open, _, err := r.CreateCommands(t.Context(), asked, lines(asked, 4))
	require.NoError(t, err)
	r.execute(`update job_queue set status = 'success', completed_at = now() - interval '1 year' where submitted_with = $1 and place = 1`, open.ID)

	require.Equal(t, int64(1), r.expire(bench.KeepCommands).Rows)
	_, err = r.Request(t.Context(), old.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	for _, kept := range []bench.Request{fresh, open} {
		require.Len(t, r.jobIDs(kept.ID), kept.Batch)
	}
	require.Equal(t, 6, r.count(`select count(*) from job_queue`))
	require.Equal(t, 6, r.count(`select count(*) from artifact where tag in (select key from job_queue)`), "a command's artifact is its own")
	require.Equal(t, 6, r.count(`select count(*) from artifact`))
}

// A batch is removed in pieces, so that no transaction is long; a request that somebody
// opens again meanwhile stays.
func TestABatchIsRemovedInPieces(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.commands(1203)
	r.age(2 * month)
	require.Equal(t, int64(1), r.expire(bench.KeepCommands).Rows)
	require.Zero(t, r.count(`select count(*) from job_queue`))
	require.Zero(t, r.count(`select count(*) from artifact`))
}

// What an ad-hoc request has measured of an artifact that nothing else refers to goes with
// it. What represents a tracked artifact stays, as the artifact's history.
func TestOldMeasurementsAreRemovedUnlessSomethingNeedsThem(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	measure := func(request bench.Request) bench.Request {
		t.Helper()
		stored := r.inProgress(request)
		job := newJob(stored, "sort")
		r.expand(stored, job)
		r.measure(job, 1, c, measured("sort", 1, 2))
		r.complete(stored, bench.Success)
		return stored
	}
	adhoc := func(tag string) bench.Request {
		t.Helper()
		return measure(measurement(t, tag))
	}
	alone, tracked, parent := adhoc("mine"), adhoc("1.0.0"), adhoc("base")
	r.create(release(t, "1.0.0"))
	child := release(t, "child")
	child.Type, child.Parent, child.PR = bench.Try, "base", 1
	r.create(child)
	r.age(2 * month)
	fresh := adhoc("later")
	release := measure(release(t, "1.1.0"))
	r.age(2 * month) // the release, too
	r.execute(`update benchmark_request set completed_at = now() where id = $1`, fresh.ID)

	require.Equal(t, int64(1), r.expire(bench.KeepAdHoc).Rows)
	_, err := r.Request(t.Context(), alone.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Empty(t, r.values("mine"))
	for _, kept := range []bench.Request{tracked, parent, fresh, release} {
		require.Len(t, r.values(kept.Tag)["sort"], 2, kept.Tag)
		require.Len(t, r.jobIDs(kept.ID), 1, kept.Tag)
	}
	require.Zero(t, r.expire(bench.KeepTry).Rows, "it is open")
	again := r.inProgress(measurement(t, "mine"))
	r.expand(again, newJob(again, "sort"))
	require.Equal(t, 1, r.count(`select generation from job_queue where tag = 'mine'`), "workflow IDs are not used twice")
}

// A comparison in turns that found nothing goes with its results; what it compared stays.
// One that found a change is part of the history of its artifact.
func TestOldComparisonsInTurnsAreRemovedUnlessTheyAreHistory(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.plain("1.0.0", []float64{1, 2}, "sort")
	r.plain("1.1.0", []float64{1, 2}, "sort")
	c := r.register("c1")
	compare := func(verdict string) bench.Request {
		t.Helper()
		request, job := r.inTurns("1.1.0", "1.0.0", "sort")
		r.measure(job, 1, c, of("1.1.0", measured("sort", 1, 2)), of("1.0.0", measured("sort", 1, 2)))
		r.complete(request, bench.Success)
		r.execute(`
			with c as (
				insert into comparison (request_id, artifact_id, baseline_id, mode, rule_version, family_size, budget_seconds)
				select $1, a.id, b.id, 'all', 1, 1, 0 from artifact a, artifact b where a.tag = '1.1.0' and b.tag = '1.0.0' returning id
			)
			insert into comparison_verdict (comparison_id, test_case_id, metric, size_class, hardware_id, co_located, suspected, measured, delta, verdict)
			select c.id, tc.id, 'wall-time', 2, 'zen4', false, false, true, 0.01, $2 from c, test_case tc where tc.benchmark = 'sort'`, request.ID, verdict)
		return request
	}
	found, nothing := compare("changed"), compare("no difference")
	r.age(2 * month)
	require.Equal(t, int64(1), r.expire(bench.KeepAdHoc).Rows)
	_, err := r.Request(t.Context(), nothing.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Len(t, r.jobIDs(found.ID), 1)
	for _, tag := range []string{"1.0.0", "1.1.0"} {
		require.Equal(t, []float64{1, 2}, r.values(tag)["sort"])
	}
	require.Equal(t, 2, r.count(`select count(*) from test_result where in_turns`), "both sides of the one that stays")
}

// The newest canaries of a collector stay however old, for its noise is known from them;
// those of one that was removed go.
func TestOldCanariesAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("one")
	r.execute(`
		insert into canary (collector, slot, outcome, created_at, ended_at)
		select name, now() - interval '1 day' * i, 'passed', now() - interval '1 day' * i, now() - interval '1 day' * i
		from unnest(array['one', 'gone']) name, generate_series(100, 1, -1) i`)
	_, _, err := r.RemoveExpired(t.Context(), store.Keep{Kind: bench.KeepCanaries, For: month})
	require.NoError(t, err)
	require.Equal(t, 60, r.count(`select count(*) from canary where collector = 'one'`))
	require.Equal(t, 29, r.count(`select count(*) from canary where collector = 'gone'`))
}

// Try builds are kept for ever unless configured; by project.
func TestAProjectKeepsItsOwnTimes(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	try := release(t, "change")
	try.Type, try.Parent, try.PR = bench.Try, "1.0.0", 7
	stored := r.inProgress(try)
	job := newJob(stored, "sort")
	r.expand(stored, job)
	r.measure(job, 1, c, measured("sort", 1, 2))
	r.complete(stored, bench.Success)
	r.age(2 * month)
	remove := func(keep store.Keep) int64 {
		t.Helper()
		keep.Kind = bench.KeepTry
		removed, _, err := r.RemoveExpired(t.Context(), keep)
		require.NoError(t, err)
		return removed.Rows
	}
	require.Zero(t, remove(store.Keep{For: bench.Forever}))
	require.Zero(t, remove(store.Keep{For: bench.Forever, Projects: map[string]time.Duration{"rustc": time.Hour}}))
	require.Zero(t, remove(store.Keep{For: time.Hour, Projects: map[string]time.Duration{project: bench.Forever}}))
	require.Zero(t, remove(store.Keep{For: time.Hour, Projects: map[string]time.Duration{project: 3 * month}}))
	require.Equal(t, int64(1), remove(store.Keep{For: bench.Forever, Projects: map[string]time.Duration{project: month}}))
	require.Zero(t, r.count(`select count(*) from pstat`)+r.count(`select count(*) from pstat_runtime`))
}

// Suites that something refers to stay, however old; one that is submitted again is new.
func TestUnusedSuitesAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for _, hash := range []string{"unused", "of a job", "again"} {
		require.NoError(t, r.PutSuite(t.Context(), hash, "go", []byte("files")))
	}
	_, job := r.oneJob("1.0.0", "sort")
	r.execute(`update job_queue set suite_hash = 'of a job' where key = $1`, job.Key)
	r.age(2 * month)
	require.NoError(t, r.PutSuite(t.Context(), "again", "go", []byte("files")))
	require.Equal(t, int64(1), r.expire(bench.KeepSuites).Rows)
	_, _, err := r.SuiteArchive(t.Context(), "unused")
	require.ErrorIs(t, err, store.ErrNotFound)
	for _, hash := range []string{suiteHash, "of a job", "again"} {
		_, _, err := r.SuiteArchive(t.Context(), hash)
		require.NoError(t, err, hash)
	}
}

// Entries of the audit go after their time, but for the reason why a result is invalid.
func TestOldEntriesOfTheAuditAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	_, job := r.oneJob("1.0.0", "sort")
	r.measure(job, 1, c, measured("sort", 1, 2))
	_, err := r.InvalidateResults(t.Context(), store.ResultFilter{Project: project}, store.Act{Who: "ada", Reason: "the fan"})
	require.NoError(t, err)
	_, err = r.PauseQueue(t.Context(), project, store.Act{Who: "ada", Reason: "holidays"})
	require.NoError(t, err)
	r.age(2 * month)
	_, err = r.ResumeQueue(t.Context(), project, store.Act{Who: "ada"})
	require.NoError(t, err)
	require.Equal(t, int64(1), r.expire(bench.KeepAudit).Rows)
	entries, err := r.Audit(t.Context(), store.AuditFilter{Limit: 10})
	require.NoError(t, err)
	var left []string
	for _, e := range entries {
		left = append(left, e.Action)
	}
	require.Equal(t, []string{"queue resume", "results invalidate"}, left)
}

// What was removed adds up, by kind.
func TestTheRetentionIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	none, err := r.Retention(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)
	for range 2 {
		require.NoError(t, r.RecordRetention(t.Context(), store.Keep{Kind: bench.KeepTry, Projects: map[string]time.Duration{project: month}}, store.Removed{Rows: 2, Bytes: 300}))
		require.NoError(t, r.RecordRetention(t.Context(), store.Keep{Kind: bench.KeepOutput, For: month}, store.Removed{}))
	}
	known, err := r.Retention(t.Context())
	require.NoError(t, err)
	require.Len(t, known, 2)
	known[0].LastPassAt, known[1].LastPassAt = time.Time{}, time.Time{}
	require.Equal(t, []store.RetentionState{
		{Kind: bench.KeepOutput, Keep: month, Projects: map[string]time.Duration{}},
		{Kind: bench.KeepTry, Projects: map[string]time.Duration{project: month}, Removed: 4, Bytes: 600},
	}, known)
}

// Every kind is removed, announced and looked at by statements that the schema knows.
func TestEveryKindIsRemoved(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for _, kind := range bench.RetentionKinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			keep := store.Keep{Kind: kind, For: month}
			_, more, err := r.RemoveExpired(t.Context(), keep)
			require.NoError(t, err)
			require.False(t, more)
			_, err = r.ExpiredNow(t.Context(), keep)
			require.NoError(t, err)
			_, _, err = r.OldestKept(t.Context(), kind)
			require.NoError(t, err)
		})
	}
}

// Every table has a line in docs/retention.md: it says what bounds it, or for how long its
// rows are kept.
func TestEveryTableHasItsRetention(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	text, err := os.ReadFile("../../docs/retention.md")
	require.NoError(t, err)
	conn := r.connect()
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	var names []string
	require.NoError(t, conn.QueryRow(t.Context(), `
		select array_agg(c.relname::text order by c.relname) from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`).Scan(&names))
	require.Contains(t, names, "job_run")
	var listed []string
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			listed = append(listed, name)
		}
	}
	for _, name := range names {
		require.Contains(t, listed, name, "the table %s can grow for ever: say in docs/retention.md what bounds it, or remove its old rows in retention.go", name)
	}
}
