package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
)

// Sizing holds the properties and state of a job that decide on its size class.
type Sizing struct {
	ID          int64
	Key         bench.JobKey
	Project     string
	Config      json.RawMessage // the project's
	Shape       bench.Shape
	Target      bench.Target
	SizeClass   bench.SizeClass
	Pool        string
	TaskQueue   string
	MinClass    bench.SizeClass // the smallest allowed; 0: any
	Pinned      bool
	Command     *bench.Command // nil: the job measures a suite, or builds
	Versus      string         // tag measured in turns with the job's own; empty: none
	TestCases   []bench.TestCase
	Iterations  int
	Constraints *bench.Constraints
	Status      bench.JobStatus
	SelectedAt  *time.Time
}

// Requirements returns what the job demands of a collector, apart from size class and
// pool.
func (j Sizing) Requirements() placement.Requirements {
	return plan.Needs{Target: j.Target, Command: j.Command != nil, MinClass: j.MinClass, Constraints: j.Constraints}.Requirements()
}

const sizingColumns = `j.id, j.key, j.project, (select config from project p where p.name = j.project) as config, j.shape, j.target, j.size_class,
	j.pool, j.task_queue, j.min_class, ` + pinned + ` as pinned, j.command, coalesce(j.versus, '') as versus, j.test_cases, j.iterations, j.constraints, j.status, j.selected_at`

// SizingOf reads the properties of a job that decide on its size class.
func (s *Store) SizingOf(ctx context.Context, key bench.JobKey) (Sizing, error) {
	j, err := one[Sizing](ctx, s.pool, `select `+sizingColumns+` from job_queue j where j.key = $1`, key)
	return j, wrap("reading job "+string(key), err)
}

// LastOfShape reads the newest job of a shape; ErrNotFound if there is none.
func (s *Store) LastOfShape(ctx context.Context, project string, shape bench.Shape) (Sizing, error) {
	j, err := one[Sizing](ctx, s.pool, `select `+sizingColumns+` from job_queue j where j.project = $1 and j.shape = $2 order by j.id desc limit 1`, project, shape)
	return j, wrap("reading the last job of shape "+string(shape), err)
}

// unsized matches a waiting job j that needs a size class and has none selected yet.
const unsized = `j.status = 'queued' and j.shape <> '' and j.selected_at is null`

// Unsized lists jobs without a selected size class among those to be handed out next in a
// task queue: the first most of each weighted queue, the first strict of each strict one.
func (s *Store) Unsized(ctx context.Context, taskQueue string, most, strict int) ([]Sizing, error) {
	jobs, err := all[Sizing](ctx, s.pool, `
		with recursive queues as (
			(select queue from job_queue where task_queue = $1 and status = 'queued' and held = '' order by queue limit 1)
			union all
			select (select j.queue from job_queue j where j.task_queue = $1 and j.status = 'queued' and j.held = '' and j.queue > q.queue order by j.queue limit 1)
			from queues q where q.queue is not null
		), named as (
			select n.queue, `+asConfigured("n.queue")+` from queues n left join queue_config q on q.name = n.queue where n.queue is not null
		)
		select `+sizingColumns+` from named q
		cross join lateral (
			select j.id from job_queue j where j.task_queue = $1 and j.status = 'queued' and j.held = '' and j.queue = q.queue
			order by (j.started_at is null), j.request_created, j.id limit case when q.class = 'strict' then $3::int else $2::int end) first
		join job_queue j on j.id = first.id
		where `+unsized+` order by j.request_created, j.id`, taskQueue, most, strict)
	return jobs, wrap("listing the jobs of task queue "+taskQueue+" without a size class", err)
}

// SizeChoice is the size class selected for a job.
type SizeChoice struct {
	// Place takes the job from then on, unless the job stays.
	Place bench.Place
	Stays bool
	// TimeoutSeconds bounds the whole job; 0: no limit.
	TimeoutSeconds float64
	Probe          bool
	Why            string // as a sentence
}

// SizeStatistics holds what was learned about the jobs of a shape.
type SizeStatistics struct {
	Project string
	Shape   bench.Shape
	// Version increases with each change.
	Version    int64
	Statistics json.RawMessage // sizeclass.Statistics; empty: nothing learned
	About      json.RawMessage // description of the shape
	// Best is the class for jobs of the shape; 0: unknown.
	Best      bench.SizeClass
	UpdatedAt time.Time
	// Void lists the jobs marked as probes that have ended without a run, so that no run
	// reports their end. It is read where size classes are selected.
	Void []bench.JobKey `db:"-"`
}

// SizeStatistics reads the statistics of a shape; ErrNotFound if there are none.
func (s *Store) SizeStatistics(ctx context.Context, project string, shape bench.Shape) (SizeStatistics, error) {
	stats, err := one[SizeStatistics](ctx, s.pool, sizeStatistics+` where project = $1 and shape = $2`, project, shape)
	return stats, wrap("reading the statistics of shape "+string(shape), err)
}

const sizeStatistics = `select project, shape, version, statistics, about, coalesce(best, 0) as best, updated_at from size_statistics`

// BestClasses returns the best class of each of these shapes of a project for which one
// is known.
func (s *Store) BestClasses(ctx context.Context, project string, shapes []bench.Shape) (map[bench.Shape]bench.SizeClass, error) {
	type row struct {
		Shape bench.Shape
		Best  bench.SizeClass
	}
	rows, err := all[row](ctx, s.pool, `select shape, best from size_statistics where project = $1 and shape = any($2) and best is not null`, project, shapes)
	best := make(map[bench.Shape]bench.SizeClass, len(rows))
	for _, r := range rows {
		best[r.Shape] = r.Best
	}
	return best, wrap("reading the size classes of known shapes", err)
}

// SelectSizes selects the size classes of jobs of one shape, one after the other with
// updated statistics, and places the jobs there. Jobs that no longer wait, or have their
// class, do not change. decide must not call the store; if it fails, the job stays as it
// is, without a limit. SelectSizes returns the task queues in which the jobs wait now.
func (s *Store) SelectSizes(ctx context.Context, project string, shape bench.Shape, keys []bench.JobKey,
	decide func(Sizing, *SizeStatistics) (SizeChoice, error),
) ([]string, error) {
	var queues []string
	err := s.inTx(ctx, "selecting the size class of jobs of shape "+string(shape), func(tx pgx.Tx) error {
		queues = nil
		ids, err := column[int64](ctx, tx, `select j.id from job_queue j where j.key = any($1) and `+unsized+` order by j.id for update`, keys)
		if err != nil || len(ids) == 0 {
			return err
		}
		jobs, err := all[Sizing](ctx, tx, `select `+sizingColumns+` from job_queue j where j.id = any($1) and j.shape = $2 order by j.request_created, j.id`, ids, shape)
		if err != nil {
			return err
		}
		stats, err := lockStatistics(ctx, tx, project, shape)
		if err != nil {
			return err
		}
		if stats.Void, err = column[bench.JobKey](ctx, tx, voidProbes, project, shape); err != nil {
			return err
		}
		before := slices.Clone(stats.Statistics)
		for _, j := range jobs {
			choice, err := decide(j, &stats)
			if err != nil {
				choice = SizeChoice{Stays: true, Why: "none could be selected, so that it runs where it waited: " + err.Error()}
			}
			if !choice.Stays {
				if err := recordSet(ctx, tx, choice.Place); err != nil {
					return err
				}
				j.SizeClass, j.Pool, j.TaskQueue = choice.Place.SizeClass, choice.Place.Name, choice.Place.TaskQueue()
			}
			if _, err := tx.Exec(ctx, `
				update job_queue set size_class = @size_class, pool = @pool, task_queue = @task_queue, timeout_seconds = @timeout, probe = @probe, selected_at = now(), selected_why = @why where id = @id`,
				pgx.NamedArgs{
					"id": j.ID, "size_class": j.SizeClass, "pool": j.Pool, "task_queue": j.TaskQueue,
					"timeout": choice.TimeoutSeconds, "probe": choice.Probe, "why": cleanText(choice.Why),
				}); err != nil {
				return err
			}
			queues = append(queues, j.TaskQueue)
		}
		if slices.Equal(before, stats.Statistics) {
			return nil
		}
		return writeStatistics(ctx, tx, stats)
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(queues)
	return slices.Compact(queues), nil
}

// voidProbes selects the jobs marked as probes in a shape's statistics that have ended
// without a run, such as those cancelled before hand-out.
const voidProbes = `select j.key from size_statistics k
	cross join lateral jsonb_path_query(k.statistics, '$.marks[*].id') m join job_queue j on j.key = m #>> '{}'
	where k.project = $1 and k.shape = $2 and j.status not in ('queued', 'handed_out', 'in_progress')
		and not exists (select from job_run n where n.job_id = j.id)`

// lockStatistics reads the statistics of a shape and locks them until the transaction
// ends. A transaction locks them last.
func lockStatistics(ctx context.Context, tx pgx.Tx, project string, shape bench.Shape) (SizeStatistics, error) {
	if _, err := tx.Exec(ctx, `
		insert into size_statistics (project, shape, version, statistics) values ($1, $2, 0, 'null') on conflict (project, shape) do nothing`,
		project, shape); err != nil {
		return SizeStatistics{}, err
	}
	stats, err := one[SizeStatistics](ctx, tx, sizeStatistics+` where project = $1 and shape = $2 for update`, project, shape)
	if string(stats.Statistics) == "null" {
		stats.Statistics = nil
	}
	return stats, err
}

// writeStatistics writes the statistics of a shape unless they have changed since they
// were read.
func writeStatistics(ctx context.Context, tx pgx.Tx, s SizeStatistics) error {
	return affected(tx.Exec(ctx, `
		update size_statistics set version = version + 1, statistics = @statistics, about = @about, best = nullif(@best, 0), updated_at = now()
		where project = @project and shape = @shape and version = @version`,
		pgx.NamedArgs{
			"project": s.Project, "shape": s.Shape, "version": s.Version,
			"statistics": document(s.Statistics, "null"), "about": document(s.About, "{}"), "best": s.Best,
		}))
}

// SizeLesson is a run that has ended and may be learned from.
type SizeLesson struct {
	Run       bench.RunID
	Number    int
	SizeClass bench.SizeClass
	Outcome   bench.RunOutcome
	// Seconds is the time measured by the run, TimeoutSeconds its limit; 0: none.
	Seconds        float64
	TimeoutSeconds float64
	PeakMemory     int64
	CPUSeconds     float64
	EndedAt        time.Time
	// Resumed reports that test cases of the job had results when the run began. Done
	// counts those that have one from this run, of All.
	Resumed   bool
	Done, All int
}

// resumed matches a run n of a job j that began when other runs had stored results for
// its test cases: runs of the job, or of another that measures the same in the
// surroundings of n.
const resumed = `exists (
	select from job_test_case t
	join test_result r on r.artifact_id = t.artifact_id and r.test_case_id = t.test_case_id and r.generation = n.generation and r.invalid_at is null
	join job_run o on o.id = r.run_id
	where t.job_id = j.id and o.id <> n.id and o.started_at < n.started_at
		and (o.job_id = j.id or (r.size_class, r.hardware_id, r.co_located) = (n.size_class, n.hardware_id, n.co_located)))`

// LearnSizes updates the statistics of a job's shape with its runs that have ended, each
// once, and reports whether anything was learned. Lost runs of an open job are skipped:
// the job continues where they were, as the same probe. learn must not call the store.
func (s *Store) LearnSizes(ctx context.Context, key bench.JobKey, learn func(Sizing, []SizeLesson, *SizeStatistics) error) (bool, error) {
	learned := false
	err := s.inTx(ctx, "learning from the runs of job "+string(key), func(tx pgx.Tx) error {
		learned = false
		job, err := one[Sizing](ctx, tx, `select `+sizingColumns+` from job_queue j where j.key = $1`, key)
		if err != nil || job.Shape == "" {
			return err
		}
		ids, err := column[bench.RunID](ctx, tx, `
			select id from job_run where job_id = $1 and outcome <> '' and taught_at is null and (outcome <> 'lost' or not $2) order by id for update`,
			job.ID, job.Status.Open())
		if err != nil {
			return err
		}
		lessons, err := all[SizeLesson](ctx, tx, `
			select n.id as run, n.number, n.size_class, n.outcome, n.measured_seconds as seconds, n.timeout_seconds, n.peak_memory, n.cpu_seconds,
				n.finished_at as ended_at, `+resumed+` as resumed,
				(select count(*) from test_result r where r.run_id = n.id) as done,
				(select count(*) from job_test_case t where t.job_id = n.job_id) as all
			from job_run n join job_queue j on j.id = n.job_id
			where n.id = any($1) order by n.number`, ids)
		if err != nil {
			return err
		}
		// A job that never ran teaches only that it is over.
		if len(lessons) == 0 {
			ran, err := value[bool](ctx, tx, `select exists (select from job_run where job_id = $1)`, job.ID)
			if err != nil || ran || job.Status.Open() || job.SelectedAt == nil {
				return err
			}
		}
		stats, err := lockStatistics(ctx, tx, job.Project, job.Shape)
		if err != nil {
			return err
		}
		if err := learn(job, lessons, &stats); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update job_run set taught_at = now() where id = any($1)`, ids); err != nil {
			return err
		}
		learned = true
		return writeStatistics(ctx, tx, stats)
	})
	if err != nil {
		return false, err
	}
	return learned, nil
}

// PlaceShape places a shape's jobs without a selected class where they will probably run,
// and returns how many have moved. Jobs with constraints stay.
func (s *Store) PlaceShape(ctx context.Context, project string, shape bench.Shape, at bench.Place) (int, error) {
	var moved int
	err := s.inTx(ctx, "placing the jobs of shape "+string(shape), func(tx pgx.Tx) error {
		ids, err := column[int64](ctx, tx, `
			select j.id from job_queue j
			where j.shape = @shape and j.project = @project and `+unsized+` and j.constraints is null and j.started_at is null
				and j.target = @target and j.task_queue <> @task_queue and j.min_class <= @size_class
			order by j.id for update`,
			pgx.NamedArgs{
				"shape": shape, "project": project, "target": at.Target, "task_queue": at.TaskQueue(), "size_class": at.SizeClass,
			})
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := recordSet(ctx, tx, at); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update job_queue j set size_class = $2, pool = $3, task_queue = $4 where j.id = any($1) and `+unsized,
			ids, at.SizeClass, at.Name, at.TaskQueue())
		moved = int(tag.RowsAffected())
		return err
	})
	return moved, err
}

// Misplaced returns one job for each shape whose best class differs from where the
// request's jobs of that shape wait, at most most of them.
func (s *Store) Misplaced(ctx context.Context, id bench.RequestID, most int) ([]Sizing, error) {
	jobs, err := all[Sizing](ctx, s.pool, `
		select `+sizingColumns+` from job_queue j where j.id in (
			select min(j.id) from request_job w join job_queue j on j.id = w.job_id
			join size_statistics k on k.project = j.project and k.shape = j.shape
			where w.request_id = $1 and `+unsized+` and k.best is not null and k.best <> j.size_class
			group by j.project, j.shape order by min(j.id) limit $2)`, id, most)
	return jobs, wrap("listing the jobs of request "+string(id)+" whose size class is known", err)
}
