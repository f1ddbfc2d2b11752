package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// isForIt refuses a collector that did not get the locked job's task as it should: the
// job is for another target, its task does not wait where the task came from, or the
// collector takes no jobs from there. A job that has moved may be taken from where it
// was, as its task follows its row.
func isForIt(ctx context.Context, tx pgx.Tx, c bench.Collector, job bench.Job, from string) error {
	if c.Target != job.Target {
		return fmt.Errorf("%w: it is for %s, and collector %s measures %s", ErrElsewhere, job.Target, c.Name, c.Target)
	}
	if from == "" || from != job.TaskQueue && from != job.MovedFrom {
		return fmt.Errorf("%w: it waits in task queue %s, and collector %s took it from %.200q", ErrElsewhere, job.TaskQueue, c.Name, from)
	}
	member, err := value[bool](ctx, tx, `select `+serves("$2::text")+` from collector_config c where c.name = $1`, c.Name, from)
	if err == nil && !member {
		err = fmt.Errorf("%w: it waits in task queue %s, from which collector %s takes no jobs", ErrElsewhere, from, c.Name)
	}
	return err
}

// gate holds the answers of a locked job to the fence.
type gate struct {
	// Waiting reports that an open request waits for the job.
	Waiting bool
	// Dispatch is the secret of the present dispatch, Open the run of it that has not ended;
	// empty: there is none.
	Dispatch string
	Open     bench.RunID
	// First reports that no run has begun since the job was last asked for.
	First bool
}

func readGate(ctx context.Context, tx pgx.Tx, job bench.Job) (gate, error) {
	return one[gate](ctx, tx, `
		select exists (`+openWaiter+`) as waiting, j.dispatch::text as dispatch,
			coalesce((select n.id from job_run n where n.job_id = j.id and n.outcome = '' and n.dispatch = j.dispatch limit 1), '') as open,
			not exists (select from job_run n where n.job_id = j.id and n.rerun = j.rerun) as first
		from job_queue j where j.id = $1`, job.ID)
}

// isDispatched refuses a task that is not of the job's present dispatch, and one whose
// dispatch has an open run: only the job's workflow ends that, and then dispatches anew.
func (g gate) isDispatched(job bench.Job, start RunStart) error {
	if !bench.Dispatch(g.Dispatch).Is(start.Dispatch) {
		return fmt.Errorf("%w: run %s is not of the present dispatch of job %s", ErrStaleDispatch, start.Run, job.Key)
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

// NextDispatch returns the secret with which an open job is dispatched again: another than
// that of the dispatch that has ended, whose tasks begin no run any more. Repeating the
// call returns the same. It returns ErrJobClosed for a job that has ended, or was asked for
// again since.
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
