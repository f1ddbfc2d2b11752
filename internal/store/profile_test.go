package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/store"
)

var (
	cpuUsed  = profiler.Series{Scope: profiler.ScopeJob, Name: string(profiler.CPUUsed)}
	fetching = profiler.Series{Scope: profiler.ScopeTiming, Name: "fetch"}
)

// batchOf has n values of a series, beginning with the given sequence number.
func batchOf(series profiler.Series, attempt string, sequence, n int) profiler.Batch {
	b := profiler.Batch{Series: series, Unit: series.Unit(), Attempt: attempt, Host: "m1", Sequence: sequence}
	begin := time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC).Add(time.Duration(sequence) * profiler.FlushInterval)
	for i := range n {
		b.Values = append(b.Values, float64(i)/7)
		b.Batches = append(b.Batches, sequence+i/50)
		b.Times = append(b.Times, begin.Add(time.Duration(i)*profiler.Interval))
	}
	return b
}

func uploadOf(attempt string, batches ...profiler.Batch) profiler.Upload {
	return profiler.Upload{Attempt: attempt, Host: "m1", Batches: batches}
}

func everySeries(profiler.Series) bool { return true }

// running is a run that goes on.
func (r record) running(tag string) bench.RunID {
	r.t.Helper()
	_, job := r.oneJob(tag, "sort")
	return r.start(job, 1, r.register("one")).Run.ID
}

func (r record) sample(run bench.RunID, u profiler.Upload) store.ProfileReceipt {
	r.t.Helper()
	require.Empty(r.t, u.Check())
	receipt, err := r.StoreProfile(r.t.Context(), run, u)
	require.NoError(r.t, err)
	return receipt
}

func (r record) profile(run bench.RunID) store.Profile {
	r.t.Helper()
	p, err := r.Profile(r.t.Context(), run)
	require.NoError(r.t, err)
	return p
}

func TestP22SamplesAreStoredOnceAndReadBack(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	run := r.running("1.0.0")
	require.Empty(t, r.profile(run).Attempts)
	first := uploadOf("a1", batchOf(cpuUsed, "a1", 0, 100), batchOf(fetching, "a1", 0, 1))
	first.Absent = []profiler.Absence{{Scope: profiler.ScopeMachine, Metric: profiler.CPUTemperature, Reason: "no sensor"}}
	first.DroppedTotal = 3
	require.Equal(t, store.ProfileReceipt{Stored: 101}, r.sample(run, first))
	require.Equal(t, store.ProfileReceipt{Repeated: 2}, r.sample(run, first), "its answer was lost")
	second := uploadOf("a1", batchOf(cpuUsed, "a1", 1, 40))
	require.Equal(t, store.ProfileReceipt{Stored: 40}, r.sample(run, second))
	last := uploadOf("a1")
	last.Summary = &profiler.Summary{Phases: []profiler.PhaseSummary{{Name: "fetch", Count: 1, TotalSeconds: 2, LongestSeconds: 2}}}
	r.sample(run, last)

	p := r.profile(run)
	require.False(t, p.Over, "the run goes on")
	require.Len(t, p.Attempts, 1)
	a := p.Attempts[0]
	require.Equal(t, "a1", a.Name)
	require.Equal(t, "m1", a.Host)
	require.EqualValues(t, 3, a.Dropped)
	require.Equal(t, first.Absent, a.Absent)
	require.Equal(t, last.Summary, a.Summary)
	require.Equal(t, []store.ProfileSeries{{Series: cpuUsed, Values: 140}, {Series: fetching, Values: 1}}, a.Series)

	batches, next, more, err := r.ProfileBatches(t.Context(), p, 0, everySeries)
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, 3, next, "the summary is a part, and what was sent again is not")
	require.Equal(t, []profiler.Batch{first.Batches[0], first.Batches[1], second.Batches[0]}, batches)
	batches, _, _, err = r.ProfileBatches(t.Context(), p, 1, func(s profiler.Series) bool { return s == cpuUsed })
	require.NoError(t, err)
	require.Equal(t, second.Batches, batches)
	require.Equal(t, 3, r.count(`select count(*) from profile_batch`))
}

func TestP22TheServerKeepsNoMoreThanAnAttemptMayHave(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	run := r.running("1.0.0")
	refused := func(want string, u profiler.Upload) {
		t.Helper()
		_, err := r.StoreProfile(t.Context(), run, u)
		var tooMuch *store.ProfileError
		require.ErrorAs(t, err, &tooMuch)
		require.Contains(t, tooMuch.Error(), want)
	}
	r.sample(run, uploadOf("a1", batchOf(cpuUsed, "a1", 0, profiler.MaxValues)))
	refused("the series has 3000 values already", uploadOf("a1", batchOf(fetching, "a1", 0, 1), batchOf(cpuUsed, "a1", 1, 1)))
	require.Equal(t, 1, r.count(`select count(*) from profile_batch`), "all of an upload or nothing")

	var phases, devices []profiler.Batch
	for i := range profiler.MaxTimingSeries {
		phases = append(phases, batchOf(profiler.Series{Scope: profiler.ScopeTiming, Name: fmt.Sprint("phase ", i)}, "a1", 0, 1))
	}
	for i := range profiler.MaxSystemSeries - 1 { // beside cpu_used
		devices = append(devices, batchOf(profiler.Series{Scope: profiler.ScopeMachine, Name: string(profiler.CPUUtil), Device: fmt.Sprint("cpu", i)}, "a1", 0, 1))
	}
	r.sample(run, uploadOf("a1", phases...))
	refused("32 phases of different names already", uploadOf("a1", batchOf(fetching, "a1", 0, 1)))
	r.sample(run, uploadOf("a1", devices...))
	refused("512 series already", uploadOf("a1", batchOf(profiler.Series{Scope: profiler.ScopeJob, Name: string(profiler.PageFaults)}, "a1", 0, 1)))

	for i := 2; i <= store.MaxProfileAttempts; i++ {
		name := fmt.Sprint("a", i)
		r.sample(run, uploadOf(name, batchOf(cpuUsed, name, 0, 1)))
	}
	refused("8 attempts", uploadOf("a9", batchOf(cpuUsed, "a9", 0, 1)))
}

// Samples arrive until shortly after the end of their run; then, and with the attempt's summary, they are over.
func TestSamplesOfARunThatEndedAreRefused(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	run := r.running("1.0.0")
	_, err := r.StoreProfile(t.Context(), "aaaaaaaaaaaaaaaa-00000000", uploadOf("a1"))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.Profile(t.Context(), "aaaaaaaaaaaaaaaa-00000000")
	require.ErrorIs(t, err, store.ErrNotFound)

	require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
	r.sample(run, uploadOf("a1", batchOf(cpuUsed, "a1", 0, 1)))
	require.False(t, r.profile(run).Over, "its last part is on its way")
	r.execute(`update job_run set finished_at = finished_at - interval '31 seconds'`)
	_, err = r.StoreProfile(t.Context(), run, uploadOf("a1", batchOf(cpuUsed, "a1", 1, 1)))
	require.ErrorIs(t, err, store.ErrRunClosed)
	require.True(t, r.profile(run).Over)

	other := r.running("1.1.0")
	require.NoError(t, r.FinishRun(t.Context(), other, bench.RunEnd{Outcome: bench.RunSuccess}))
	u := uploadOf("a1", batchOf(cpuUsed, "a1", 0, 1))
	u.Summary = &profiler.Summary{}
	r.sample(other, u)
	require.True(t, r.profile(other).Over, "it has its summary")
}

// However long samples take, results do not wait: storing samples holds nothing that they need.
func TestResultsDoNotWaitForSamples(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	run := r.running("1.0.0")
	// An upload that waits at its end, with all locks that it takes.
	r.execute(`create function dawdle() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(42); return new; end $$`)
	r.execute(`create trigger dawdle before update on profile_attempt for each row execute function dawdle()`)
	conn := r.connect()
	_, err := conn.Exec(t.Context(), `select pg_advisory_lock(42)`)
	require.NoError(t, err)
	var stored error
	wait := r.whileWaiting(func() error {
		_, stored = r.StoreProfile(t.Context(), run, uploadOf("a1", batchOf(cpuUsed, "a1", 0, 1)))
		return nil
	})
	r.block(run, measured("sort", 1, 2))
	_, err = r.AppendLog(t.Context(), run, 0, []byte("output"), 100)
	require.NoError(t, err)
	require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
	require.NoError(t, conn.Close(t.Context()))
	wait()
	if stored != nil { // it gives up by itself
		require.True(t, store.IsTransient(stored), stored)
	}
}

// A great many samples are read in pieces, each of whole uploads.
func TestManySamplesAreReadInPieces(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	run := r.running("1.0.0")
	const uploads, series = 4, 300
	for i := range uploads {
		u := uploadOf("a1")
		for d := range series {
			u.Batches = append(u.Batches, batchOf(profiler.Series{Scope: profiler.ScopeMachine, Name: string(profiler.CPUUtil), Device: fmt.Sprint("cpu", d)}, "a1", i, 300))
		}
		r.sample(run, u)
	}
	p := r.profile(run)
	read, pieces := 0, 0
	for after, more := 0, true; more; pieces++ {
		var batches []profiler.Batch
		var err error
		batches, after, more, err = r.ProfileBatches(t.Context(), p, after, everySeries)
		require.NoError(t, err)
		require.Zero(t, len(batches)%series, "whole uploads")
		read += len(batches)
		require.Less(t, pieces, uploads)
	}
	require.Equal(t, uploads*series, read)
	require.Greater(t, pieces, 1)
}

// Without an orchestrator for weeks, there is no partition any more: the next upload makes one.
func TestSamplesFindAPartition(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	run := r.running("1.0.0")
	r.execute(`do $$ declare p regclass; begin for p in select inhrelid::regclass from pg_inherits where inhparent = 'profile_batch'::regclass loop execute 'drop table ' || p; end loop; end $$`)
	r.sample(run, uploadOf("a1", batchOf(cpuUsed, "a1", 0, 1)))
	require.Equal(t, 1, r.count(`select count(*) from profile_batch`))
}

// ageSamples lets what was sampled during a run have begun earlier, in a partition of its own.
func (r record) ageSamples(run bench.RunID, by time.Duration) {
	r.t.Helper()
	r.execute(`do $$ declare week timestamp; begin
		for i in 0..30 loop
			week := date_trunc('week', now() at time zone 'utc') - i * interval '7 days';
			if to_regclass('profile_batch_' || to_char(week, 'YYYYMMDD')) is null then
				execute format('create table %I partition of profile_batch for values from (%L) to (%L)',
					'profile_batch_' || to_char(week, 'YYYYMMDD'), week at time zone 'utc', (week + interval '7 days') at time zone 'utc');
			end if;
		end loop; end $$`)
	r.execute(`update profile_batch b set began_at = b.began_at - make_interval(secs => $2) from profile_attempt a where a.id = b.attempt and a.run_id = $1`, run, by.Seconds())
	r.execute(`update profile_attempt set began_at = began_at - make_interval(secs => $2) where run_id = $1`, run, by.Seconds())
}

// Samples go after a while, in whole weeks; those of a run that goes on stay, and those that a project keeps for longer.
func TestOldSamplesAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	partitions := func() int {
		return r.count(`select count(*) from pg_inherits where inhparent = 'profile_batch'::regclass`)
	}
	sampled := func(tag string, age time.Duration, ended bool) bench.RunID {
		run := r.running(tag)
		r.sample(run, uploadOf("a1", batchOf(cpuUsed, "a1", 0, 50)))
		if ended {
			require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
		}
		r.ageSamples(run, age)
		return run
	}
	old, open, fresh := sampled("1.0.0", 60*24*time.Hour, true), sampled("1.1.0", 90*24*time.Hour, false), sampled("1.2.0", time.Hour, true)
	require.EqualValues(t, 1, r.expire(bench.KeepSamples).Rows)
	require.Empty(t, r.profile(old).Attempts)
	require.Len(t, r.profile(open).Attempts, 1)
	require.Len(t, r.profile(fresh).Attempts, 1)
	require.Equal(t, 2, r.count(`select count(*) from profile_batch`))
	require.Less(t, partitions(), 20, "weeks of which nothing is kept are dropped")
	require.Equal(t, 0, r.count(`select count(*) from profile_batch b where not exists (select from profile_attempt a where a.id = b.attempt)`))

	// Beside a run that is kept, in the same week.
	again := sampled("1.3.0", 90*24*time.Hour, true)
	require.EqualValues(t, 1, r.expire(bench.KeepSamples).Rows)
	require.Empty(t, r.profile(again).Attempts)
	kept := store.Keep{Kind: bench.KeepSamples, For: month, Projects: map[string]time.Duration{project: bench.Forever}}
	require.NoError(t, r.FinishRun(t.Context(), open, bench.RunEnd{Outcome: bench.RunSuccess}))
	removed, _, err := r.RemoveExpired(t.Context(), kept)
	require.NoError(t, err)
	require.Zero(t, removed)
	require.Len(t, r.profile(open).Attempts, 1)

	// A run takes its samples along.
	r.execute(`delete from job_run where id = $1`, fresh)
	require.Equal(t, 1, r.count(`select count(*) from profile_attempt`))
	require.Equal(t, 1, r.count(`select count(*) from profile_batch`))
}
