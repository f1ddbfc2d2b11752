package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/report"
)

const project = "trust"

// pollEvery is the interval at which a running request is read: long, since reading needs CPU time.
const pollEvery = 500 * time.Millisecond

// bed is the service, with a project on it, in which trials run.
type bed struct {
	stack   *livestack.Stack
	record  *pgx.Conn
	library library
	cpus    measure.CPUList // of the job
	version string
}

// try runs one trial.
func (b *bed) try(ctx context.Context, t trial) (o outcome, err error) {
	o = outcome{Trial: t.ID, Version: b.version, Begun: time.Now()}
	wanted, baseline, err := b.wanted(ctx, t)
	if err != nil {
		return o, err
	}
	watcher := startWatcher(ctx, b.cpus)
	var ran []interval
	var l *load
	if t.Loaded {
		phase := phases(t.pattern)
		if t.Slower > 0 {
			phase = func() time.Duration { return steady }
		}
		l = startLoad(ctx, b.cpus, phase)
	}
	detail, err := b.measure(ctx, wanted)
	if l != nil {
		var failed error
		ran, failed = l.stop()
		err = errors.Join(err, failed)
	}
	samples := watcher.stop()
	if err != nil {
		return o, err
	}
	o.Request, o.Seconds = string(detail.ID), time.Since(o.Begun).Seconds()
	if baseline == "" {
		baseline = detail.Baseline
	}
	if baseline == "" {
		return o, fmt.Errorf("request %s was compared with nothing", detail.ID)
	}
	if o.Rows, err = b.rows(ctx, t, baseline, wanted.Tag); err != nil {
		return o, err
	}
	if _, found := o.planted(); t.Slower > 0 && !found {
		return o, fmt.Errorf("the comparison of %s with %s has no verdict on %s of %s", wanted.Tag, baseline, slowedMetric, slowed)
	}
	o.Sessions, err = b.sessions(ctx, detail.ID, func(s *session, in interval) {
		s.Load, s.Steal = loadShare(in, ran), stealShare(in, samples, len(b.cpus))
	})
	return o, err
}

// wanted returns the request of a trial, and its baseline if that is part of it.
func (b *bed) wanted(ctx context.Context, t trial) (r apiclient.NewRequest, baseline string, err error) {
	r = apiclient.NewRequest{Project: project, Type: bench.Release}
	if t.Slower == 0 {
		r.Tag, err = b.library.release(ctx)
		return r, "", err
	}
	r.Type, r.Selection.Benchmarks = bench.AdHoc, []string{slowed}
	r.Versus, r.Tag, err = b.library.pair(ctx, t.Slower)
	return r, r.Versus, err
}

// measure waits until a request has its verdicts.
func (b *bed) measure(ctx context.Context, wanted apiclient.NewRequest) (apiclient.RequestDetail, error) {
	r, err := b.stack.API.CreateRequest(ctx, wanted)
	if err != nil {
		return apiclient.RequestDetail{}, err
	}
	for {
		d, err := b.stack.API.Request(ctx, string(r.ID))
		switch {
		case err != nil:
			return d, err
		case d.Status == bench.Completed && d.Outcome != bench.Success:
			return d, fmt.Errorf("request %s ended with %s: %s", r.ID, d.Outcome, d.Message)
		case d.Status == bench.Completed:
			return d, nil
		}
		wait(ctx, pollEvery)
	}
}

func (b *bed) rows(ctx context.Context, t trial, baseline, tag string) ([]row, error) {
	c, err := b.stack.API.Compare(ctx, apiclient.CompareQuery{Project: project, A: baseline, B: tag, OnlyInTurns: t.Slower > 0})
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, r := range c.Result.Rows {
		if r.Verdict == nil {
			continue
		}
		one := row{Benchmark: r.TestCase.Benchmark, Metric: r.Metric, Verdict: *r.Verdict, Change: r.Estimate().Value, Worse: r.Direction == report.Regression, Reason: r.Reason}
		if r.Turns != nil {
			one.Pairs, one.Disturbed = r.Turns.Pairs, r.Turns.Disturbed
		}
		rows = append(rows, one)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the comparison of %s with %s has no verdict", tag, baseline)
	}
	return rows, nil
}

// sessions reads what the request's runs measured, with the marks of the record. Both sides of what was measured in turns
// are one session, and share the mark of a pair.
func (b *bed) sessions(ctx context.Context, id bench.RequestID, complete func(*session, interval)) ([]session, error) {
	rows, err := b.record.Query(ctx, `
		select n.id, tc.benchmark, count(*), count(*) filter (where c.disturbed <> ''),
			coalesce(min(r.disturbed_by) filter (where r.disturbed_by <> ''), ''), bool_or(r.disturbed_session),
			min(c.collected_at), max(c.collected_at + make_interval(secs => (c.facts->>'duration_seconds')::float8))
		from request_job rj join job_run n on n.job_id = rj.job_id join test_result r on r.run_id = n.id
			join test_case tc on tc.id = r.test_case_id join collection c on c.result_id = r.id
		where rj.request_id = $1 and r.status = 'ok'
		group by n.id, tc.benchmark order by 7`, string(id))
	if err != nil {
		return nil, fmt.Errorf("reading the sessions of request %s: %w", id, err)
	}
	sessions, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s session, err error) {
		var in interval
		err = r.Scan(&s.Run, &s.Benchmark, &s.Iterations, &s.Disturbed, &s.Cause, &s.Marked, &in.from, &in.to)
		s.Seconds = in.to.Sub(in.from).Seconds()
		complete(&s, in)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the sessions of request %s: %w", id, err)
	}
	if len(sessions) == 0 {
		return nil, fmt.Errorf("request %s measured nothing", id)
	}
	return sessions, nil
}
