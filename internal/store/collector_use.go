package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats/noise"
)

// CollectorActivity holds the times of what a collector did last.
type CollectorActivity struct {
	Name string
	// AvailableAt is when it could last take jobs: it was active, and was heard of.
	AvailableAt time.Time
	// StartedAt and FinishedAt are the times of its newest run; nil: it has had no run, or
	// the run has not ended.
	StartedAt, FinishedAt *time.Time
}

// CollectorActivities lists the activity of every registered collector, by name.
func (s *Store) CollectorActivities(ctx context.Context) ([]CollectorActivity, error) {
	found, err := all[CollectorActivity](ctx, s.pool, `
		select c.name, c.available_at, n.started_at, n.finished_at from collector_config c
		left join lateral (
			select started_at, finished_at from job_run where collector = c.name order by started_at desc limit 1
		) n on true
		order by c.name`)
	return found, wrap("reading what collectors do", err)
}

// longestRun bounds how far before a period its runs are looked for: one that began earlier
// is left out.
const longestRun = `interval '2 days'`

// runsWithin selects the runs of a collector that were under way within a period, with the
// part that lies in it. The arguments are @from and @until.
func runsWithin(collector string) string {
	return `select outcome, greatest(started_at, @from) as began, least(coalesce(finished_at, @until), @until) as ended from job_run
		where collector = ` + collector + ` and started_at > @from::timestamptz - ` + longestRun + ` and started_at < @until
			and coalesce(finished_at, @until) > @from`
}

// CollectorUse sums up a collector's runs with one outcome within a period.
type CollectorUse struct {
	Name    string
	Outcome bench.RunOutcome // empty: the run had not ended
	Runs    int
	Seconds float64 // that they took within the period
}

// CollectorsUse lists by name and outcome how many runs collectors had under way within a
// period, and how long these took. Collectors without any are left out.
func (s *Store) CollectorsUse(ctx context.Context, from, until time.Time) ([]CollectorUse, error) {
	found, err := all[CollectorUse](ctx, s.reports, `
		select c.name, n.outcome, count(*) as runs, sum(extract(epoch from n.ended - n.began))::float8 as seconds
		from collector_config c cross join lateral (`+runsWithin("c.name")+`) n
		group by c.name, n.outcome order by c.name, n.outcome`, pgx.NamedArgs{"from": from, "until": until})
	return found, wrap("reading the use of collectors", err)
}

// UsedHour is the time within an hour in which a collector had a run under way.
type UsedHour struct {
	Since   time.Time
	Seconds float64
}

// CollectorHours divides the use of a collector by the hours since a time, the oldest first.
func (s *Store) CollectorHours(ctx context.Context, name string, from time.Time, hours int) ([]UsedHour, error) {
	found, err := all[UsedHour](ctx, s.reports, `
		with n as (`+runsWithin("@name")+`)
		select h.since, least(3600, coalesce(sum(extract(epoch from least(n.ended, h.since + interval '1 hour') - greatest(n.began, h.since)))
				filter (where n.began is not null), 0))::float8 as seconds
		from generate_series(@from::timestamptz, @until::timestamptz - interval '1 hour', interval '1 hour') as h (since)
		left join n on n.began < h.since + interval '1 hour' and n.ended > h.since
		group by h.since order by h.since`,
		pgx.NamedArgs{"name": name, "from": from, "until": from.Add(time.Duration(hours) * time.Hour)})
	return found, wrap("reading the use of collector "+name, err)
}

// RunPage selects a part of the runs of a collector.
type RunPage struct {
	// Outcomes selects runs by outcome; empty: all runs, including those that have not ended.
	Outcomes []bench.RunOutcome
	// Before continues a list after the run that began then; nil: from the newest.
	Before   *time.Time
	BeforeID bench.RunID
	Limit    int
}

// CollectorRuns lists runs of a collector, the newest first.
func (s *Store) CollectorRuns(ctx context.Context, name string, page RunPage) ([]bench.Run, error) {
	found, err := all[bench.Run](ctx, s.pool, `
		select `+runColumns+fromRuns+`
		where n.collector = @name and (cardinality(@outcomes::text[]) = 0 or n.outcome = any(@outcomes))
			and (@before::timestamptz is null or (n.started_at, n.id) < (@before, @id))
		order by n.started_at desc, n.id desc limit @limit`,
		pgx.NamedArgs{"name": name, "outcomes": append([]bench.RunOutcome{}, page.Outcomes...), "before": page.Before, "id": page.BeforeID, "limit": page.Limit})
	return found, wrap("listing the runs of collector "+name, err)
}

// NoiseOfCollector is the noise of a series on one collector, beside that on all collectors
// of the same surrounding.
type NoiseOfCollector struct {
	Project string
	SeriesNoise
	Pool noise.Model
}

// NoiseBeside lists the noise of each series on a collector, in its present surrounding,
// beside that on all collectors of the surrounding together. A surrounding of which no
// other collector has sessions has no noise of all collectors; pool counts the series that have one.
func (s *Store) NoiseBeside(ctx context.Context, c bench.Collector) (beside []NoiseOfCollector, pool int, err error) {
	doing := "reading the noise of collector " + c.Name
	args := pgx.NamedArgs{"name": c.Name, "class": c.SizeClass, "hardware": c.HardwareID, "co_located": c.CoLocated, "target": c.Target}
	beside, err = all[NoiseOfCollector](ctx, s.reports, `
		select tc.project, `+testCaseDocument+` as test_case, n.metric, n.size_class, n.hardware_id, n.co_located, n.collector, n.model, p.model as pool
		from noise_model n
		join noise_model p using (test_case_id, metric, size_class, hardware_id, co_located)
		join test_case tc on tc.id = n.test_case_id and tc.target = @target
		where n.collector = @name and p.collector = '' and n.size_class = @class and n.hardware_id = @hardware and n.co_located = @co_located
		order by tc.id, n.metric`, args)
	if err != nil {
		return nil, 0, wrap(doing, err)
	}
	pool, err = value[int](ctx, s.reports, `
		select count(*) from noise_model n join test_case tc on tc.id = n.test_case_id and tc.target = @target
		where n.collector = '' and n.size_class = @class and n.hardware_id = @hardware and n.co_located = @co_located`, args)
	return beside, pool, wrap(doing, err)
}
