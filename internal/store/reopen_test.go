package store_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/store"
)

// commands creates a batch of ada's with all jobs cancelled.
func (r record) commands(n int) bench.Request {
	r.t.Helper()
	request := batch(r.t, n)
	stored, _, err := r.CreateCommands(r.t.Context(), request, lines(request, n))
	require.NoError(r.t, err)
	_, _, err = r.EndRequest(r.t.Context(), request.ID, cancel, byAda)
	require.NoError(r.t, err)
	return stored
}

func TestThousandsOfCommandsAreRetriedTogether(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	const n = 1100
	request := batch(t, n)
	stored, _, err := r.CreateCommands(t.Context(), request, lines(request, n))
	require.NoError(t, err)
	first := lineJob(request, 1)
	r.measure(first, 1, r.registerCard("c1"), bench.TestCaseResult{TestCase: first.TestCases[0], Collections: measured("", 1).Collections})
	_, _, err = r.EndRequest(t.Context(), request.ID, cancel, byAda)
	require.NoError(t, err)

	done, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
	require.Equal(t, "1099 jobs, 1099 test cases", done.Result.Message)
	require.LessOrEqual(t, r.count(`select count(distinct cmin::text) from job_queue where generation = 1`), 2, "statements that wrote them")
	progress, err := r.JobProgress(t.Context(), request.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{Total: n, Queued: n - 1, Success: 1, TestCases: n, TestCasesDone: 1}, progress)
	jobs := r.openJobs(request.ID)
	for i, j := range jobs {
		want := lineJob(request, i+2)
		want.Generation, want.AskedBy = 1, "ada"
		want.ID, want.CreatedAt, want.RequestCreated = j.ID, j.CreatedAt, stored.CreatedAt
		want.Key = bench.JobIdentity{
			Request: request.ID, Project: project, Target: target, Kind: want.Kind, TestCases: want.TestCases, SizeClass: want.SizeClass, Line: want.Line, Generation: 1,
		}.Key()
		require.Equal(t, want, j, "as it was")
	}

	// After another retry each command is there once, with its own results.
	r.measure(jobs[0], 1, r.registerCard("c1"), bench.TestCaseResult{TestCase: first.TestCases[0], Collections: measured("", 1).Collections})
	_, _, err = r.EndRequest(t.Context(), request.ID, cancel, byAda)
	require.NoError(t, err)
	done, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
	require.Equal(t, 1098, done.Result.Jobs)
	require.Equal(t, 1098, r.count(`select count(distinct t.artifact_id) from job_test_case t join job_queue j on j.id = t.job_id where j.generation = 2`))

	// A single command, and commands with results.
	_, _, err = r.EndRequest(t.Context(), request.ID, cancel, byAda)
	require.NoError(t, err)
	one := r.count(`select min(place) from job_queue where generation = 2`)
	require.Equal(t, 3, one)
	of, err := r.RequestJobs(t.Context(), request.ID)
	require.NoError(t, err)
	done, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{Job: of[len(of)-1].Key}, byAda)
	require.NoError(t, err)
	require.Equal(t, 1, done.Result.Jobs)
	_, _, err = r.EndRequest(t.Context(), request.ID, cancel, byAda)
	require.NoError(t, err)
	done, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{Remeasure: true, Benchmarks: []string{"command"}}, byAda)
	require.NoError(t, err)
	require.Equal(t, n, done.Result.Jobs)
	_, _, err = r.EndRequest(t.Context(), request.ID, cancel, byAda)
	require.NoError(t, err)
	_, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{Remeasure: true, Benchmarks: []string{"none"}}, byAda)
	require.ErrorIs(t, err, store.ErrNothingToMeasure)
}

// The limit on waiting jobs applies to every way of adding some.
func TestTheWaitingLimitAppliesToEverySubmission(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.execute(`insert into account_limit (account, max_queued, updated_by) values ('ada', 10, 'ops')`)
	former := r.commands(9)
	second := batch(t, 9)
	_, _, err := r.CreateCommands(t.Context(), second, lines(second, 9))
	require.NoError(t, err)

	var full *fairshare.TooManyWaiting
	for _, again := range []store.ReopenOptions{{}, {Remeasure: true}} {
		_, err = r.Reopen(t.Context(), former.ID, again, byAda)
		require.ErrorAs(t, err, &full)
		require.Equal(t, fairshare.TooManyWaiting{Account: "ada", Most: 10, Waiting: 9, More: 9}, *full)
	}
	require.Equal(t, bench.Completed, r.request(former.ID).Status)
	require.Equal(t, 9, r.count(`select count(*) from job_queue where status = 'queued'`))
	_, err = r.Reopen(t.Context(), former.ID, store.ReopenOptions{Job: lineJob(former, 1).Key}, byAda)
	require.NoError(t, err, "there is room for one")
	_, err = r.Reopen(t.Context(), former.ID, store.ReopenOptions{Job: lineJob(former, 2).Key}, byAda)
	require.ErrorAs(t, err, &full)

	// The limit is ada's, whoever retries: it is her work that would wait.
	_, err = r.Reopen(t.Context(), former.ID, store.ReopenOptions{}, store.Act{Who: "bob"})
	require.ErrorIs(t, err, store.ErrConflict, "it is open")
	_, err = r.Reopen(t.Context(), former.ID, store.ReopenOptions{Job: lineJob(former, 2).Key}, store.Act{Who: "bob"})
	require.ErrorAs(t, err, &full)
}

// A suite request has no jobs yet when it is accepted: until it has, it counts as one,
// and accepted requests are never refused later.
func TestSuiteRequestsCountTowardsTheWaitingLimit(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.execute(`insert into account_limit (account, max_queued, updated_by) values ('ada', 2, 'ops')`)
	create := func(tag string, limited bool) error {
		_, _, err := r.CreateWithAncestors(t.Context(), release(t, tag), store.Creation{Limited: limited})
		return err
	}
	tags := []string{"1.1.0", "1.2.0", "1.3.0", "1.4.0"}
	var full *fairshare.TooManyWaiting
	refused := 0
	for _, err := range together(len(tags), func(i int) error { return create(tags[i], true) }) {
		if errors.As(err, &full) {
			refused++
			continue
		}
		require.NoError(t, err)
	}
	require.Equal(t, 2, refused)
	require.Equal(t, 2, r.count(`select count(*) from benchmark_request`))

	// Existing requests do not count again, and accepted ones are carried out.
	there := r.count(`select split_part(max(tag), '.', 2)::int from benchmark_request`)
	require.NoError(t, create(tags[there-1], true))
	for _, id := range r.admit() {
		request := r.request(id)
		for _, job := range []bench.Job{newJob(request, "gin"), newJob(request, "kit"), newJob(request, "sort")} {
			job.Submitter = "ada"
			r.expand(request, job)
		}
	}
	require.ErrorAs(t, create("2.0.0", true), &full)
	require.NoError(t, create("2.0.0", false), "nobody has submitted it")
}

// Retrying another account's work gives no access to its earlier level.
func TestARetryKeepsToTheAccountsFirstLevel(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.execute(`insert into account_limit (account, branch, first_level, updated_by) values ('eve', '*', 3, 'ops'), ('eve', 'dev', 4, 'ops')`)
	eve := store.Act{Who: "eve"}
	former := r.commands(2)
	var early *fairshare.TooEarly
	_, err := r.Reopen(t.Context(), former.ID, store.ReopenOptions{}, eve)
	require.ErrorAs(t, err, &early)
	require.Equal(t, fairshare.TooEarly{Queue: "user:ada", Branch: "dev", Account: "eve", Level: 3, First: 4}, *early)
	r.execute(`delete from account_limit where branch = 'dev'`)
	r.execute(`update job_queue set queue = 'vip' where place = 1`)
	for _, again := range []store.ReopenOptions{{}, {Remeasure: true}, {Job: lineJob(former, 1).Key}} {
		_, err = r.Reopen(t.Context(), former.ID, again, eve)
		require.ErrorAs(t, err, &early)
		require.Equal(t, "vip", early.Queue)
	}
	require.Zero(t, r.count(`select count(*) from job_queue where generation > 0`))
	_, err = r.Reopen(t.Context(), former.ID, store.ReopenOptions{Job: lineJob(former, 2).Key}, eve)
	require.NoError(t, err, "it goes no earlier than eve's own")

	// Nor if the jobs are not written yet.
	vip := release(t, "1.1.0")
	vip.Queue = "vip"
	vip = r.create(vip)
	_, _, err = r.EndRequest(t.Context(), vip.ID, cancel, byAda)
	require.NoError(t, err)
	_, err = r.Reopen(t.Context(), vip.ID, store.ReopenOptions{}, eve)
	require.ErrorAs(t, err, &early)
	_, err = r.Reopen(t.Context(), vip.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
}
