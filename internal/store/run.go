package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/profiler"
)

// RunStart is a collector's request to begin a run, checked by the fence.
type RunStart struct {
	Run       bench.RunID
	Reason    bench.RunReason
	Collector string
	Epoch     int64
	// Dispatch is the secret that the task carried, TaskQueue where it came from.
	Dispatch  bench.Dispatch
	TaskQueue string
	// Facts of the collector's machine now; empty: as registered.
	Facts json.RawMessage
}

// RunPlan is the fence's answer: the work of this run.
type RunPlan struct {
	Run    bench.Run
	Job    bench.Job
	Config json.RawMessage // the project's
	// Profiling is the recording configured by the request for which the job was handed out; nil: it says nothing.
	Profiling *bench.Profiling
	// Wait of the job for the run; nil: the run had begun before.
	Wait *RunWait
	// Missing lists the job's test cases without an accepted result on this collector's
	// size class and hardware. For a job that measures in turns these are the test cases
	// that lack either side; both are measured again.
	Missing []bench.TestCase
	// Norms of the job's test cases; those of which nothing is known are left out.
	Norms []SeriesNorms
}

const runColumns = `n.id, j.project, j.key as job, n.number, n.reason, n.rerun, n.generation, n.asked_by, n.size_class, n.pool, n.collector, n.epoch, n.version,
	n.hardware_id, n.co_located, n.facts, n.outcome, n.message, n.output_tail, n.progress, n.log_size, n.started_at, n.finished_at,
	n.timeout_seconds, n.probe, n.measured_seconds, n.peak_memory, n.cpu_seconds, n.announced_at is not null as announced`

const fromRuns = ` from job_run n join job_queue j on j.id = n.job_id `

// Run reads a run.
func (s *Store) Run(ctx context.Context, id bench.RunID) (bench.Run, error) {
	r, err := one[bench.Run](ctx, s.pool, `select `+runColumns+fromRuns+`where n.id = $1`, id)
	return r, wrap("reading run "+string(id), err)
}

// RunCollector names the collector that carries out a run, or has done so. Its answer is not
// kept: a restored record may name another.
func (s *Store) RunCollector(ctx context.Context, id bench.RunID) (string, error) {
	name, err := value[string](ctx, s.pool, `select collector from job_run where id = $1`, id)
	return name, wrap("reading the collector of run "+string(id), err)
}

// JobRuns lists the runs of a job by number.
func (s *Store) JobRuns(ctx context.Context, key bench.JobKey) ([]bench.Run, error) {
	rs, err := all[bench.Run](ctx, s.pool, `select `+runColumns+fromRuns+`where j.key = $1 order by n.number`, key)
	return rs, wrap("listing the runs of job "+string(key), err)
}

// StartRun is the fence: it opens a run of the job named by the run's ID, or refuses with
// ErrJobClosed, ErrNobodyWaits, or ErrFenced if the collector is unknown or was
// registered again since. Repeating the call returns the same plan, or ErrRunClosed once
// the run has ended.
//
// A run begins only with a task of the job's present dispatch, else the error is
// ErrStaleDispatch, and only at a collector that takes jobs from the task queue in which
// the job waits, else it is ErrElsewhere. Open runs of earlier dispatches are closed as
// lost; one of the same dispatch stays, and the new one is refused with ErrUnderWay.
//
// A collector that is draining, is out of date or does not meet the job's constraints
// begins no new run: ErrDraining, ErrOutdated, ErrUnfit. It may continue a run that it
// has begun.
//
// With its first run, a chunk gets the test cases that it measures.
func (s *Store) StartRun(ctx context.Context, start RunStart) (RunPlan, error) {
	var plan RunPlan
	err := s.inPlannedTx(ctx, "starting run "+string(start.Run), func(tx pgx.Tx) error {
		at, err := readGate(ctx, tx, start)
		if err != nil {
			return err
		}
		job := at.Job
		if !job.Status.Open() {
			return fmt.Errorf("%w as %s", ErrJobClosed, job.Status)
		}
		if !at.Waiting {
			return ErrNobodyWaits
		}
		collector, err := at.fence(start)
		if err != nil {
			return err
		}
		var rest pgx.Batch
		var configured configuredRun
		if at.Run == nil {
			if err := at.isForIt(collector, start.TaskQueue); err != nil {
				return err
			}
			if err := at.isDispatched(start); err != nil {
				return err
			}
			if err := mayBegin(collector, job); err != nil {
				return err
			}
			if err := formChunk(ctx, tx, job); err != nil {
				return err
			}
			wait, err := openRun(ctx, tx, at, collector, start, &rest)
			if err != nil {
				return err
			}
			plan.Wait = &wait
			queueOne(&rest, &plan.Job, `
				update job_queue j set status = 'in_progress', started_at = coalesce(j.started_at, now()), handed_out_at = coalesce(j.handed_out_at, now())
				where j.id = $1 returning `+jobColumns, job.ID)
		} else {
			if err := isItsRun(ctx, tx, *at.Run, start); err != nil {
				return err
			}
			queueOne(&rest, &plan.Job, `select `+jobColumns+` from job_queue j where j.id = $1`, job.ID)
		}
		queueOne(&rest, &plan.Run, `select `+runColumns+fromRuns+`where n.id = $1`, start.Run)
		// A request may have very many jobs: it is not joined with them, which may read them all.
		queueOne(&rest, &configured, `
			select config, (select selection -> 'profiling' from benchmark_request where id = $2) as profiling from project where name = $1`,
			job.Project, job.HandedOutTo)
		queueAll(&rest, &plan.Missing, missing, start.Run)
		if job.Kind != bench.KindCommand { // commands share a test case, and have nothing else in common
			queueAll(&rest, &plan.Norms, norms, start.Run)
		}
		if err := tx.SendBatch(ctx, &rest).Close(); err != nil {
			return err
		}
		plan.Config, plan.Profiling = configured.Config, configured.Profiling
		return nil
	})
	if err != nil {
		return RunPlan{}, err
	}
	return plan, nil
}

// configuredRun holds the configuration of a run, by its project and by the request for which its
// job was handed out.
type configuredRun struct {
	Config    json.RawMessage
	Profiling *bench.Profiling
}

// mayBegin refuses a collector that may take no further job, or not this one: it joined
// the job's task queue, or changed, after the job was placed there.
func mayBegin(c bench.Collector, job bench.Job) error {
	if !c.Active && !(c.SetAsideAt != nil && job.IsCanary()) {
		return fmt.Errorf("%w: collector %s takes no further job until it is activated", ErrDraining, c.Name)
	}
	if c.Outdated() {
		return fmt.Errorf("%w: collector %s is version %s, version %s is wanted", ErrOutdated, c.Name, c.Version, c.WantedVersion)
	}
	// Any collector that takes the job's task may run the job, which from now on belongs
	// where it runs.
	if lacks := placement.WhyNot(placement.Of(c), plan.NeedsOf(job).Requirements()); len(lacks) > 0 {
		return fmt.Errorf("%w: collector %s: %s", ErrUnfit, c.Name, strings.Join(lacks, ", "))
	}
	return nil
}

// openRun writes the run's row, with the locked job's waiting time, and makes it the job's only open run. The
// caller writes the job's row. Statements on which nothing here depends go into rest.
func openRun(ctx context.Context, tx pgx.Tx, at gate, c bench.Collector, start RunStart, rest *pgx.Batch) (RunWait, error) {
	job := at.Job
	if at.Running {
		if err := closeRuns(ctx, tx, job.ID, bench.RunLost, "replaced by run "+string(start.Run)); err != nil {
			return RunWait{}, err
		}
	}
	if len(start.Facts) > 0 {
		c.Facts = json.RawMessage(document(start.Facts, "{}"))
	}
	run, err := bench.OpenRun(start.Run, start.Reason, at.First, job, c)
	if err != nil {
		return RunWait{}, err
	}
	var now pgx.Batch
	now.Queue(`
		insert into job_run (id, job_id, number, reason, rerun, generation, asked_by, size_class, pool, collector, epoch, version, hardware_id, co_located, facts, timeout_seconds, probe, dispatch)
		values (@id, @job_id, (select coalesce(max(number), 0) + 1 from job_run where job_id = @job_id), @reason, @rerun, @generation, @asked_by, @size_class, @pool,
			@collector, @epoch, @version, @hardware_id, @co_located, @facts, @timeout_seconds, @probe, (select dispatch from job_queue where id = @job_id))`,
		pgx.NamedArgs{
			"id": run.ID, "job_id": job.ID, "reason": run.Reason, "rerun": run.Rerun, "generation": run.Generation, "asked_by": run.AskedBy, "size_class": run.SizeClass, "pool": run.Pool,
			"collector": run.Collector, "epoch": run.Epoch, "version": run.Version, "hardware_id": run.HardwareID,
			"co_located": run.CoLocated, "facts": run.Facts, "timeout_seconds": run.TimeoutSeconds, "probe": run.Probe,
		})
	waits := newWaitsReader(tx, at.Waited.Ready)
	waits.queue(&now, at.Waited)
	if err := tx.SendBatch(ctx, &now).Close(); err != nil {
		return RunWait{}, err
	}
	wait, err := recordWait(ctx, waits, at, run, rest)
	if err != nil {
		return RunWait{}, err
	}
	if err := settle(ctx, tx, job, c); err != nil {
		return RunWait{}, err
	}
	rest.Queue(`update collector_config set current_run = $2, facts = $3 where name = $1`, c.Name, start.Run, c.Facts)
	return wait, nil
}

// missing lists the test cases of run $1's job without an accepted result in the run's
// surroundings, for any artifact that the job measures.
const missing = `
	select tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target
	from job_run n
	join job_queue j on j.id = n.job_id
	join job_test_case jt on jt.job_id = j.id
	join test_case tc on tc.id = jt.test_case_id
	where n.id = $1 and jt.done_class is null and not exists (
		select from test_result r where r.artifact_id = jt.artifact_id and r.test_case_id = tc.id and r.size_class = n.size_class
			and r.hardware_id = n.hardware_id and r.co_located = n.co_located and r.generation = n.generation
			and r.invalid_at is null)
		and not exists (select from code_profile p join job_run its on its.id = p.run_id where p.job_id = j.id and its.rerun = n.rerun)
	group by tc.id, jt.place
	order by jt.place`

// closeRuns closes all open runs of a locked job.
func closeRuns(ctx context.Context, tx pgx.Tx, jobID int64, outcome bench.RunOutcome, message string) error {
	closed, err := column[string](ctx, tx, `
		update job_run set outcome = $2, message = $3, finished_at = now() where job_id = $1 and outcome = '' returning id`,
		jobID, outcome, cleanText(message))
	if err != nil || len(closed) == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `update collector_config set current_run = null where current_run = any($1)`, closed)
	return err
}

// CloseLostRuns closes the open runs of a job as lost: the collector died, was shut down
// or could not report. Runs that began after the job was asked for again stay open.
func (s *Store) CloseLostRuns(ctx context.Context, key bench.JobKey, rerun int, message string) error {
	return s.inTx(ctx, "closing the lost runs of job "+string(key), func(tx pgx.Tx) error {
		job, err := lockJob(ctx, tx, key)
		if err != nil || job.Rerun != rerun {
			return err
		}
		return closeRuns(ctx, tx, job.ID, bench.RunLost, message)
	})
}

// lockRun reads a run and its job and locks both until the transaction ends.
func lockRun(ctx context.Context, tx pgx.Tx, id bench.RunID) (run bench.Run, job bench.Job, err error) {
	var ask pgx.Batch
	queueRun(&ask, &run, &job, id)
	err = tx.SendBatch(ctx, &ask).Close()
	return run, job, err
}

// queueRun adds to a batch what [lockRun] does.
func queueRun(b *pgx.Batch, run *bench.Run, job *bench.Job, id bench.RunID) {
	queueOne(b, job, jobLock, id.Job())
	queueOne(b, run, `select `+runColumns+fromRuns+`where n.id = $1 for update of n`, id)
}

// SetProgress records the current activity of an open run of a collector. The progress of
// a run that has ended does not change. It returns ErrNotFound for another collector's run.
func (s *Store) SetProgress(ctx context.Context, collector string, run bench.RunID, progress json.RawMessage) error {
	err := affected(s.pool.Exec(ctx, `
		update job_run set progress = case when outcome = '' then $3::jsonb else progress end where id = $1 and collector = $2`,
		run, collector, document(progress, "{}")))
	return wrap("recording the progress of run "+string(run), err)
}

// RunAnnounced records that the workflow of the run's job knows of the run.
func (s *Store) RunAnnounced(ctx context.Context, run bench.RunID) error {
	_, err := s.pool.Exec(ctx, `update job_run set announced_at = now() where id = $1 and announced_at is null`, run)
	return wrap("recording that run "+string(run)+" was announced", err)
}

// FinishRun closes a run. The first end counts, except that a collector may correct the
// end of a run given up as lost while its job is open.
func (s *Store) FinishRun(ctx context.Context, id bench.RunID, end bench.RunEnd) error {
	_, err := s.FinishRunWith(ctx, id, end, RunRest{})
	return err
}

// RunRest is handed in together with the end of a run.
type RunRest struct {
	bench.RunRest
	// Profile holds its last samples.
	Profile *profiler.Upload
}

// RunClosed describes a closed run.
type RunClosed struct {
	bench.RunClosed
	// Profiled reports that there were samples and that they were stored.
	Profiled bool
}

// endSuccessful ends the locked job $1 if nothing is left to decide: each test case has its
// result, no other run is under way, and the job is not to run again. Its workflow finds it ended.
const endSuccessful = `
	update job_queue j set status = 'success', message = '', completed_at = now()
	where j.id = $1 and j.status = 'in_progress' and j.again = 0
		and not exists (select from job_test_case_state t where t.job_id = j.id and not t.done)
		and not exists (select from job_run o where o.job_id = j.id and o.outcome = '')`

// FinishRunWith stores the rest of a run as [Store.StoreBlock] and [Store.AppendLog] do, and then
// closes the run, all or nothing. Samples matter less: if they cannot be stored, the run is closed
// without them. The job of a command that has succeeded ends with its run.
func (s *Store) FinishRunWith(ctx context.Context, id bench.RunID, end bench.RunEnd, rest RunRest) (RunClosed, error) {
	closed, err := s.finishRun(ctx, id, end, rest)
	if err != nil && closed.lacksSamples && ctx.Err() == nil {
		rest.Profile = nil
		closed, err = s.finishRun(ctx, id, end, rest)
	}
	if err != nil {
		return RunClosed{}, err
	}
	return closed.RunClosed, nil
}

// closing is a run that was closed, or would have been if its samples could be stored.
type closing struct {
	RunClosed
	lacksSamples bool
}

func (s *Store) finishRun(ctx context.Context, id bench.RunID, end bench.RunEnd, rest RunRest) (closed closing, err error) {
	err = s.inPlannedTx(ctx, "finishing run "+string(id), func(tx pgx.Tx) error {
		if err := end.Validate(); err != nil {
			return err
		}
		b := block{tx: tx}
		if rest.Block != nil {
			if err := b.lock(ctx, id); err != nil {
				return err
			}
			if err := b.store(ctx, rest.Block.Results, rest.Block.Errors, &closed.Block); err != nil {
				return err
			}
		} else if b.run, b.job, err = lockRun(ctx, tx, id); err != nil {
			return err
		}
		run, job := b.run, b.job
		closed.Kind = job.Kind
		size := run.LogSize
		if rest.Output != nil {
			if size, err = appendLog(&b.last, id, size, *rest.Output); err != nil {
				return err
			}
		}
		late := run.Outcome == bench.RunLost && job.Status.Open() && run.Rerun == job.Rerun
		switch {
		case run.Outcome == bench.RunRunning || late:
			b.last.Queue(`
				update job_run set outcome = @outcome, message = @message, output_tail = @tail, finished_at = now(),
					measured_seconds = @seconds, peak_memory = @memory, cpu_seconds = @cpu, log_size = @size
				where id = @id`,
				pgx.NamedArgs{
					"id": id, "outcome": end.Outcome, "message": cleanText(end.Message), "tail": cleanText(end.OutputTail),
					"seconds": end.MeasuredSeconds, "memory": end.PeakMemory, "cpu": end.CPUSeconds, "size": size,
				})
			b.last.Queue(`update collector_config set current_run = null where current_run = $1`, id)
			if job.Kind == bench.KindCommand && end.Outcome == bench.RunSuccess && run.Rerun == job.Rerun {
				b.last.Queue(endSuccessful, job.ID)
			}
		case size != run.LogSize:
			b.last.Queue(`update job_run set log_size = $2 where id = $1`, id, size)
		}
		if err := tx.SendBatch(ctx, &b.last).Close(); err != nil || rest.Profile == nil {
			return err
		}
		_, err := storeProfile(ctx, tx, id, *rest.Profile)
		closed.Profiled, closed.lacksSamples = err == nil, err != nil
		return err
	})
	return closed, err
}
