package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats/noise"
)

// canarySlot is the time for which a collector c may have one canary: the day, or the hour
// while it is set aside.
const canarySlot = `date_trunc(case when c.set_aside_at is not null then 'hour' else 'day' end, now(), 'UTC')`

// awaitsCanary matches a collector c without a canary that is open, of the present slot,
// or of the last hour.
const awaitsCanary = `(c.active or c.set_aside_at is not null and not ` + stuck + `) and not exists (
	select from canary k where k.collector = c.name and (k.slot = ` + canarySlot + ` or k.outcome = '' or coalesce(k.ended_at, k.created_at) > now() - interval '1 hour'))`

// CollectorsWithoutCanary lists by name the live collectors, including those set aside,
// that have had no canary today or, if set aside, in this hour.
func (s *Store) CollectorsWithoutCanary(ctx context.Context, offlineAfter time.Duration) ([]bench.Collector, error) {
	cs, err := all[bench.Collector](ctx, s.pool, `
		select `+collectorColumns+` from collector_config c where c.`+heardOf("$1")+` and `+awaitsCanary+` order by c.name`, offlineAfter.Seconds())
	return cs, wrap("listing the collectors without a canary", err)
}

// CanarySource is an artifact that a collector's pool has measured.
type CanarySource struct {
	Project string
	Config  json.RawMessage
	Tag     string
	// Seconds is the machine time that one iteration of each test case took.
	Seconds []CaseSeconds
}

// CaseSeconds is a test case with a duration in seconds.
type CaseSeconds struct {
	bench.TestCase
	Seconds float64
}

const (
	// canarySources bounds the newest requests of each project among which an artifact
	// for canaries is looked for.
	canarySources = 20
	// canaryAfter is the age of a project's first results from which it has canaries: a
	// service that was just set up is left alone.
	canaryAfter = time.Hour
)

// CanarySources lists the artifacts that canaries of a collector may measure: for each
// project that is not paused and has measured for an hour, the newest artifact that the
// collector's pool has measured successfully; the newest first.
func (s *Store) CanarySources(ctx context.Context, c bench.Collector) ([]CanarySource, error) {
	type source struct {
		Project  string
		Config   json.RawMessage
		Tag      string
		Artifact int64
	}
	sources, err := all[source](ctx, s.pool, `
		select p.name as project, p.config, n.tag, n.id as artifact from project p
		cross join lateral (
			select q.tag, a.id, q.jobs_done_at from (
				select r.tag, r.jobs_done_at from benchmark_request r
				where r.project = p.name and r.jobs_done_at is not null and r.expanded_at is not null and r.type <> 'adhoc' and r.outcome = 'success'
				order by r.jobs_done_at desc limit @most
			) q
			join artifact a on a.project = p.name and a.tag = q.tag
			where exists (
				select from test_result r join job_run n on n.id = r.run_id
				join test_case tc on tc.id = r.test_case_id and tc.target = @target
				where r.artifact_id = a.id and `+countingResult+` and n.pool = @pool and r.size_class = @size_class and r.hardware_id = @hardware)
			order by q.jobs_done_at desc limit 1
		) n
		where p.suite_hash is not null and not exists (select from queue_pause u where u.project = p.name)
			and exists (select from benchmark_request o where o.project = p.name and o.type <> 'adhoc' and o.expanded_at is not null
				and o.jobs_done_at <= now() - make_interval(secs => @after))
		order by n.jobs_done_at desc, p.name`,
		pgx.NamedArgs{
			"most": canarySources, "target": string(c.Target), "pool": c.Pool, "size_class": c.SizeClass, "hardware": c.HardwareID,
			"after": canaryAfter.Seconds(),
		})
	if err != nil {
		return nil, wrap("looking for an artifact for a canary of "+c.Name, err)
	}
	out := make([]CanarySource, len(sources))
	for i, found := range sources {
		out[i] = CanarySource{Project: found.Project, Config: found.Config, Tag: found.Tag}
		out[i].Seconds, err = all[CaseSeconds](ctx, s.pool, `
			select tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target, avg((co.facts ->> 'duration_seconds')::float8)::float8 as seconds
			from test_result r join collection co on co.result_id = r.id and co.facts ->> 'duration_seconds' is not null
			join test_case tc on tc.id = r.test_case_id and tc.target = $2
			where r.artifact_id = $1 and `+countingResult+` and r.size_class = $3 and r.hardware_id = $4
			group by tc.id`, found.Artifact, c.Target, c.SizeClass, c.HardwareID)
		if err != nil {
			return nil, wrap("reading how long the test cases of "+found.Tag+" take", err)
		}
	}
	return out, nil
}

// BeginCanary records a canary of a collector together with the request that measures it;
// begun is false if the collector has one already, or is gone.
func (s *Store) BeginCanary(ctx context.Context, collector string, r bench.Request) (stored bench.Request, begun bool, err error) {
	err = s.inTx(ctx, "beginning a canary of collector "+collector, func(tx pgx.Tx) error {
		if stored, begun, err = createRequest(ctx, tx, r); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			insert into canary (collector, slot, request_id)
			select c.name, `+canarySlot+`, $2 from collector_config c where c.name = $1 and `+awaitsCanary+`
			on conflict do nothing`, collector, r.ID)
		if err == nil && tag.RowsAffected() == 0 {
			err = errNoCanary
		}
		return err
	})
	if errors.Is(err, errNoCanary) {
		return bench.Request{}, false, nil
	}
	return stored, begun && err == nil, err
}

// errNoCanary undoes a canary that is not needed.
var errNoCanary = errors.New("the collector has a canary")

// OpenCanary is a canary without an outcome.
type OpenCanary struct {
	ID        int64
	Collector string
	// Request is nil if it was removed. Ended reports that it is completed, with Message,
	// Overdue that it began more than a day ago.
	Request *bench.RequestID
	Ended   bool
	Overdue bool
	Message string
	// Collections counts what was measured, Disturbed how many of them were disturbed.
	Collections int
	Disturbed   int
}

// OpenCanaries lists the canaries without an outcome.
func (s *Store) OpenCanaries(ctx context.Context) ([]OpenCanary, error) {
	open, err := all[OpenCanary](ctx, s.pool, `
		select k.id, k.collector, k.request_id as request, coalesce(r.status = 'completed', true) as ended,
			k.created_at < now() - interval '1 day' as overdue, coalesce(r.message, '') as message, m.collections, m.disturbed
		from canary k left join benchmark_request r on r.id = k.request_id
		cross join lateral (
			select count(c.id)::int as collections, (count(c.id) filter (where `+disturbed("c")+`))::int as disturbed
			from request_job rj join job_run n on n.job_id = rj.job_id
			join test_result t on t.run_id = n.id and t.invalid_at is null join collection c on c.result_id = t.id
			where rj.request_id = k.request_id
		) m
		where k.outcome = '' order by k.id`)
	return open, wrap("listing the canaries", err)
}

// EndCanary records the outcome of a canary, once, and its consequences for the collector.
// If the canary failed, the collector takes no jobs but canaries until one passes; it only
// gets the reason if its pool has no better live collector, or if its machine does other
// work by configuration (co-located). A canary that passed removes the reason, whatever it was.
//
// setAside reports that this call has set the collector aside, ended that it recorded the
// outcome: another call may have been first. A removed collector is no error.
func (s *Store) EndCanary(ctx context.Context, id int64, outcome bench.CanaryOutcome, message string, offlineAfter time.Duration) (ended, setAside bool, err error) {
	err = s.inTx(ctx, "ending a canary", func(tx pgx.Tx) error {
		name, err := value[string](ctx, tx, `select collector from canary where id = $1`, id)
		if err != nil {
			return err
		}
		c, others, err := lockPool(ctx, tx, name, offlineAfter)
		if removed := errors.Is(err, ErrNotFound); err != nil && !removed {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update canary set outcome = $2, message = $3, ended_at = now() where id = $1 and outcome = ''`, id, string(outcome), cleanText(message))
		if ended = tag.RowsAffected() > 0; err != nil || !ended {
			return err
		}
		switch {
		case outcome.Failed():
			setAside = c.Active && others > 0 && !c.CoLocated
			_, err = tx.Exec(ctx, `
				update collector_config set disturbed_by = @by, canary_failed = true, quiet_from = null,
					active = active and not @aside, set_aside_at = case when @aside then now() else set_aside_at end
				where name = @name`, pgx.NamedArgs{"name": name, "by": "its last canary failed: " + cleanText(message), "aside": setAside})
		case outcome == bench.CanaryPassed:
			_, err = tx.Exec(ctx, `
				update collector_config set disturbed_by = '', canary_failed = false, quiet_from = null, set_aside_at = null,
					active = active or set_aside_at is not null, available_at = case when set_aside_at is null then available_at else now() end,
					judged_from = now()
				where name = $1 and (disturbed_by <> '' or canary_failed)`, name)
		}
		return err
	})
	return ended, setAside, err
}

// LastCanaries lists the newest canary of each collector by name.
func (s *Store) LastCanaries(ctx context.Context) ([]bench.Canary, error) {
	canaries, err := all[bench.Canary](ctx, s.pool, `
		select distinct on (collector) collector, coalesce(request_id, '') as request, outcome, message, created_at, ended_at
		from canary order by collector, id desc`)
	return canaries, wrap("listing the last canaries", err)
}

// canaryWindow bounds the canaries of a collector from which its noise is derived.
const canaryWindow = 60

// CanarySession holds what a canary has measured of one metric of one test case.
type CanarySession struct {
	Collector string
	Metric    bench.Metric
	bench.Surrounding
	At   time.Time
	A, B []float64
}

// Canary returns the session as the noise model reads it.
func (s CanarySession) Canary() noise.Canary {
	return noise.Canary{At: s.At, Collector: s.Collector, A: s.A, B: s.B}
}

// CanarySessions reads what the newest canaries of each collector of a target have
// measured, the oldest first. Disturbed canaries and disturbed pairs are left out.
func (s *Store) CanarySessions(ctx context.Context, target bench.Target) ([]CanarySession, error) {
	sessions, err := all[CanarySession](ctx, s.pool, `
		with newest as materialized (
			select request_id from (
				select k.request_id, row_number() over (partition by k.collector order by k.id desc) as place
				from canary k where k.outcome in ('passed', 'changed')
			) known where place <= $2 and request_id is not null
		)
		select n.collector, se.metric, ra.size_class, ra.hardware_id, ra.co_located, n.started_at as at,
			array_agg(va.value order by ca.iteration) as a, array_agg(vb.value order by cb.iteration) as b
		from newest k join request_job rj on rj.request_id = k.request_id
		join job_queue j on j.id = rj.job_id and j.versus_artifact_id is not null and j.target = $1
		join job_run n on n.job_id = j.id
		join test_result ra on ra.run_id = n.id and ra.artifact_id = j.versus_artifact_id and ra.status = 'ok' and ra.invalid_at is null
		join test_result rb on rb.run_id = n.id and rb.artifact_id = j.artifact_id and rb.status = 'ok' and rb.invalid_at is null
			and rb.test_case_id = ra.test_case_id
		join collection ca on ca.result_id = ra.id and not `+disturbed("ca")+`
		join collection cb on cb.result_id = rb.id and cb.iteration = ca.iteration and not `+disturbed("cb")+`
		join `+statistics+` va on va.collection_id = ca.id
		join `+statistics+` vb on vb.collection_id = cb.id and vb.series_id = va.series_id
		join pstat_series se on se.id = va.series_id and se.metric <> all($3::text[])
		group by n.id, ra.id, se.metric
		order by n.started_at, n.id, ra.id, se.metric`, target, canaryWindow, explaining())
	return sessions, wrap("reading the canaries on "+string(target), err)
}
