package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// pausedBySuite names who pauses a project because of its suite.
const pausedBySuite = "benchloom"

// PauseForSuite pauses the project of a tracked request whose jobs have ended, if every
// test case of it and of the request that ended before failed in the same way with the
// project's present suite: further requests would only repeat that. It returns the pause,
// or nil if there is no reason for one or the project is paused already.
//
// What ended before the project was last resumed does not count, so that a person who
// resumes it is not contradicted immediately.
func (s *Store) PauseForSuite(ctx context.Context, id bench.RequestID) (*Pause, error) {
	r, err := s.Request(ctx, id)
	if err != nil || !r.Type.Tracked() || r.JobsDoneAt == nil || r.ExpandedAt == nil {
		return nil, err
	}
	// Most requests end well: they need no lock and no audit.
	failed, err := failedWholly(ctx, s.pool, r)
	if err != nil || failed == nil {
		return nil, wrap("reading the failures of request "+string(id), err)
	}
	var pause *Pause
	_, err = s.audited(ctx, Operation{Action: "queue pause", Project: r.Project, Subject: r.Project}, Act{Who: pausedBySuite}, func(tx pgx.Tx, entry int64) (OperationResult, error) {
		pause = nil
		if err := lock(ctx, tx, "admission "+r.Project); err != nil {
			return OperationResult{}, err
		}
		before, err := endedBefore(ctx, tx, r)
		if err != nil {
			return OperationResult{}, err
		}
		earlier, err := failedWholly(ctx, tx, before)
		if err != nil {
			return OperationResult{}, err
		}
		example, alike := sameFailures(before, earlier, r, failed)
		if !alike {
			return OperationResult{}, errNoPause
		}
		reason := fmt.Sprintf("every test case of %s and %s failed in the same way, such as %s: %s; correct the suite and apply it, which resumes the project, or resume it as it is ('benchloom queue resume %s')",
			before.Tag, r.Tag, example.TestCase, example.Message, r.Project)
		p, err := one[Pause](ctx, tx, `
			insert into queue_pause (project, paused_by, reason, suite_hash)
			select name, $2, $3, suite_hash from project where name = $1 and suite_hash is not null
			on conflict (project) do nothing returning `+pauseColumns, r.Project, pausedBySuite, cleanText(reason))
		if errors.Is(err, ErrNotFound) {
			return OperationResult{}, errNoPause
		} else if err != nil {
			return OperationResult{}, err
		}
		pause = &p
		_, err = tx.Exec(ctx, `update audit set reason = $2 where id = $1`, entry, cleanText(reason))
		return OperationResult{Changed: true, Message: p.String(), Requests: []bench.RequestID{before.ID, r.ID}}, err
	})
	if errors.Is(err, errNoPause) {
		return nil, nil //nolint:nilnil // no pause is an answer
	}
	return pause, err
}

// errNoPause undoes the audit entry of a pause that has no reason.
var errNoPause = errors.New("no pause")

// ResumeForSuite ends a pause that [Store.PauseForSuite] began, if the project has another
// suite now. A pause by a person stays. It reports whether it ended one.
func (s *Store) ResumeForSuite(ctx context.Context, project, who string) (Operation, bool, error) {
	const another = `from queue_pause q join project p on p.name = q.project where q.project = $1 and q.suite_hash is not null and q.suite_hash is distinct from p.suite_hash`
	there, err := value[bool](ctx, s.pool, `select exists (select `+another+`)`, project)
	if err != nil || !there {
		return Operation{}, false, wrap("reading the pause of queue "+project, err)
	}
	done, err := s.audited(ctx, Operation{Action: "queue resume", Project: project, Subject: project}, Act{Who: who, Reason: "the suite has changed"}, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		p, err := one[Pause](ctx, tx, `delete from queue_pause where project in (select q.project `+another+`) returning `+pauseColumns, project)
		if errors.Is(err, ErrNotFound) {
			return OperationResult{Message: "the queue was not paused"}, nil // resumed meanwhile
		} else if err != nil {
			return OperationResult{}, err
		}
		return OperationResult{Changed: true, Message: "it was " + p.since()}, releaseHeld(ctx, tx, `j.held = 'pause' and j.project = $1`, project)
	})
	return done, done.Result.Changed, err
}

// endedBefore returns the tracked request of the project whose jobs ended last before
// those of r, which must be the last to have ended; the zero value if there is none, or if
// the project was resumed since. Cancelled requests do not count.
func endedBefore(ctx context.Context, tx pgx.Tx, r bench.Request) (bench.Request, error) {
	last, err := all[bench.Request](ctx, tx, `
		select `+requestColumns+` from benchmark_request r
		where r.project = $1 and r.type <> 'adhoc' and r.jobs_done_at is not null and r.expanded_at is not null
			and r.outcome is distinct from 'cancelled' and r.outcome is distinct from 'expired'
			and r.jobs_done_at > coalesce((select max(a.at) from audit a where a.project = $1 and a.action = 'queue resume'), '-infinity')
		order by r.jobs_done_at desc, r.id limit 2`, r.Project)
	if err != nil || len(last) < 2 || last[0].ID != r.ID {
		return bench.Request{}, err
	}
	return last[1], nil
}

// failedWholly returns the last error of each test case of a request, if all of its own
// jobs have failed with the project's present suite, without any result; else nothing.
func failedWholly(ctx context.Context, q querier, r bench.Request) (map[bench.TestCase]bench.RunError, error) {
	if r.ID == "" {
		return nil, nil
	}
	type row struct {
		TestCase bench.TestCase
		Counts   bool // it is not of a replaced job
		Done     bool
		Failed   bool // its job has, with the present suite
		Kind     *bench.FailureKind
		Message  *string
	}
	rows, err := all[row](ctx, q, `
		select `+testCaseDocument+` as test_case, not rj.superseded as counts, t.done, e.kind, e.message,
			j.status = 'failure' and j.suite_hash is not distinct from p.suite_hash as failed
		from request_job rj join job_queue j on j.id = rj.job_id join project p on p.name = j.project
		join job_test_case_state t on t.job_id = j.id join test_case tc on tc.id = t.test_case_id
		left join lateral (
			select e.kind, e.message from error e join job_run n on n.id = e.run_id
			where n.job_id = j.id and e.test_case_id = t.test_case_id order by n.number desc, e.id desc limit 1) e on true
		where rj.request_id = $1 and rj.stage = 'own' and not rj.optional`, r.ID)
	if err != nil {
		return nil, err
	}
	failed := make(map[bench.TestCase]bench.RunError)
	for _, row := range rows {
		switch {
		case row.Done:
			return nil, nil
		case !row.Counts:
			continue
		case !row.Failed || row.Kind == nil || row.Message == nil:
			return nil, nil
		}
		tc := row.TestCase
		failed[tc] = bench.RunError{TestCase: &tc, Kind: *row.Kind, Message: *row.Message}
	}
	if len(failed) == 0 {
		return nil, nil
	}
	return failed, nil
}

// sameFailures reports whether the test cases that two requests have in common failed in
// the same way, with the first of them as an example.
func sameFailures(before bench.Request, earlier map[bench.TestCase]bench.RunError, after bench.Request, later map[bench.TestCase]bench.RunError) (bench.RunError, bool) {
	var example bench.RunError
	for tc, a := range earlier {
		b, both := later[tc]
		if !both {
			continue
		}
		if !bench.FailedAlike(before.Tag, a, after.Tag, b) {
			return bench.RunError{}, false
		}
		if example.TestCase == nil || bench.CompareTestCases(tc, *example.TestCase) < 0 {
			example = b
		}
	}
	return example, example.TestCase != nil
}
