package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// gate holds what the record knows about a locked job when a collector begins or continues
// a run of it.
type gate struct {
	gateAnswers
	Job bench.Job
	// Collectors are locked: the one that asks, and those whose runs will be closed.
	Collectors []bench.Collector
	// Run is the run that was begun before; nil: none was.
	Run *bench.Run
	// Waited has the job's time until now, Queues the configuration of its queue.
	Waited waitingJobs
	Queues fairshare.Queues
}

type gateAnswers struct {
	// Waiting reports that an open request waits for the job.
	Waiting bool
	// Dispatch is the secret of the present dispatch, Open its run that has not ended;
	// empty: there is none.
	Dispatch string
	Open     bench.RunID
	// Running reports that a run of any dispatch has not ended.
	Running bool
	// First reports that no run has begun since the job was last asked for.
	First bool
	// Member reports that the collector takes jobs from the task queue of the task.
	Member bool
}

// readGate locks the job of a run, the chunks that may change with it, and collectors, and
// reads the rest with these locks held: each statement sees what was committed before it.
func readGate(ctx context.Context, tx pgx.Tx, start RunStart) (gate, error) {
	var (
		at     gate
		runs   []bench.Run
		queues []fairshare.Queue
		b      pgx.Batch
		key    = start.Run.Job()
	)
	b.Queue(chunksLock, key)
	queueOne(&b, &at.Job, jobLock, key)
	queueOne(&b, &at.gateAnswers, `
		select exists (`+openWaiter+`) as waiting, j.dispatch::text as dispatch,
			coalesce((select n.id from job_run n where n.job_id = j.id and n.outcome = '' and n.dispatch = j.dispatch limit 1), '') as open,
			exists (select from job_run n where n.job_id = j.id and n.outcome = '') as running,
			not exists (select from job_run n where n.job_id = j.id and n.rerun = j.rerun) as first,
			coalesce((select `+serves("$3::text")+` from collector_config c where c.name = $2), false) as member
		from job_queue j where j.key = $1`, key, start.Collector, cleanText(start.TaskQueue))
	// In the order of names.
	queueAll(&b, &at.Collectors, `
		select `+collectorColumns+` from collector_config c
		where c.name = $2 or c.current_run in (select n.id from job_run n where n.job_id = (select id from job_queue where key = $1) and n.outcome = '')
		order by c.name for update`, key, start.Collector)
	queueAll(&b, &runs, `select `+runColumns+fromRuns+`where n.id = $1`, start.Run)
	queueOne(&b, &at.Waited, `
		select 1 as jobs, '' as pool, `+readySince("1 << 30")+` as ready, `+waitingJobColumns+`
		from job_queue j where j.key = $1`, key)
	queueAll(&b, &queues, `select `+queueColumnsOf+` from queue_config c where c.name = (select queue from job_queue where key = $1)`, key)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return gate{}, err
	}
	if len(runs) > 0 {
		at.Run = &runs[0]
	}
	at.Queues = byQueue(queues)
	return at, nil
}

// fence returns the collector, provided that its registration is the newest.
func (g gate) fence(start RunStart) (bench.Collector, error) {
	at := slices.IndexFunc(g.Collectors, func(c bench.Collector) bool { return c.Name == start.Collector })
	if at < 0 {
		return bench.Collector{}, fmt.Errorf("%w: no collector %s is registered", ErrFenced, start.Collector)
	}
	if epoch := g.Collectors[at].Epoch; epoch != start.Epoch {
		return bench.Collector{}, fmt.Errorf("%w: collector %s has epoch %d, not %d", ErrFenced, start.Collector, epoch, start.Epoch)
	}
	return g.Collectors[at], nil
}

// isForIt refuses a collector that did not get the job's task as it should: the job is for
// another target, it does not wait where the task came from, or the collector takes no jobs
// from there. A job that has moved may be taken from its former task queue, as its task
// follows its row.
func (g gate) isForIt(c bench.Collector, from string) error {
	switch {
	case c.Target != g.Job.Target:
		return fmt.Errorf("%w: it is for %s, and collector %s measures %s", ErrElsewhere, g.Job.Target, c.Name, c.Target)
	case from == "" || from != g.Job.TaskQueue && from != g.Job.MovedFrom:
		return fmt.Errorf("%w: it waits in task queue %s, and collector %s took it from %.200q", ErrElsewhere, g.Job.TaskQueue, c.Name, from)
	case !g.Member:
		return fmt.Errorf("%w: it waits in task queue %s, from which collector %s takes no jobs", ErrElsewhere, from, c.Name)
	}
	return nil
}

// isDispatched refuses a task that is not of the job's present dispatch, and one whose
// dispatch has an open run: only the job's workflow ends that run, and then dispatches anew.
func (g gate) isDispatched(start RunStart) error {
	if !bench.Dispatch(g.Dispatch).Is(start.Dispatch) {
		return fmt.Errorf("%w: run %s is not of the present dispatch of job %s", ErrStaleDispatch, start.Run, g.Job.Key)
	}
	if g.Open != "" {
		return fmt.Errorf("%w: run %s of the same dispatch has not ended", ErrUnderWay, g.Open)
	}
	return nil
}

// isItsRun refuses to repeat a start for another process or dispatch than the run's, or
// once the run has ended.
func isItsRun(ctx context.Context, tx pgx.Tx, run bench.Run, start RunStart) error {
	if run.Collector != start.Collector || run.Epoch != start.Epoch {
		return fmt.Errorf("%w: the run is collector %s's", ErrFenced, run.Collector)
	}
	if run.Outcome != bench.RunRunning {
		return fmt.Errorf("%w as %s", ErrRunClosed, run.Outcome)
	}
	began, err := value[string](ctx, tx, `select coalesce(dispatch::text, '') from job_run where id = $1`, run.ID)
	if err != nil {
		return err
	}
	if !bench.Dispatch(began).Is(start.Dispatch) {
		return fmt.Errorf("%w: another one began run %s", ErrStaleDispatch, run.ID)
	}
	return nil
}

// NextDispatch returns the secret with which an open job is dispatched again: a different
// one from that of the ended dispatch, whose tasks no longer begin runs. Repeating the call
// returns the same secret. It returns ErrJobClosed for a job that has ended, or was asked
// for again since.
func (s *Store) NextDispatch(ctx context.Context, key bench.JobKey, rerun int, ended bench.Dispatch) (bench.Dispatch, error) {
	var next string
	err := s.inTx(ctx, "dispatching job "+string(key)+" again", func(tx pgx.Tx) error {
		job, err := lockJob(ctx, tx, key)
		if err != nil {
			return err
		}
		if job.Rerun != rerun {
			return fmt.Errorf("%w: it was asked for again", ErrJobClosed)
		}
		if !job.Status.Open() {
			return fmt.Errorf("%w as %s", ErrJobClosed, job.Status)
		}
		next, err = value[string](ctx, tx, `
			update job_queue set dispatch = case when dispatch::text = $2 then gen_random_uuid() else dispatch end
			where id = $1 returning dispatch::text`, job.ID, string(ended))
		return err
	})
	return bench.Dispatch(next), err
}
