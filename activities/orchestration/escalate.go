package orchestration

import (
	"context"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/retry"
	"github.com/benchloom/benchloom/internal/sizing"
)

// decide applies the rules of retries to the recorded runs of a job, after one with this outcome.
func (a *Activities) decide(ctx context.Context, config bench.ProjectConfig, job bench.Job, kind bench.FailureKind) (retry.Decision, error) {
	runs, err := a.Store.JobRuns(ctx, job.Key)
	if err != nil {
		return retry.Decision{}, err
	}
	view, err := a.Sizes.View(ctx)
	if err != nil {
		return retry.Decision{}, err
	}
	at, err := view.Standing(ctx, config, job.Key)
	at.Asked = job.AskedBy != "" && !slices.ContainsFunc(runs, func(r bench.Run) bool { return r.Rerun == job.Rerun })
	return retry.Decide(sizing.Attempts(config), retry.Tries(runs), at, kind), err
}

// escalate moves the rest of a job to the larger size class that was chosen, and hands out the
// jobs that wait for the collector it leaves. It returns the moved job, with the decision to
// carry out next.
func (a *Activities) escalate(ctx context.Context, config bench.ProjectConfig, job bench.Job, d retry.Decision) (bench.Job, retry.Decision, error) {
	view, err := a.Sizes.View(ctx)
	if err != nil {
		return job, d, err
	}
	to, err := view.Larger(ctx, config, job.Key, d.EscalateTo)
	if err != nil {
		return job, d, err // its collectors were just removed: the retry decides anew
	}
	left := job.TaskQueue
	escalated, err := a.Store.EscalateJob(ctx, job.Key, job.SizeClass, to)
	if err != nil {
		return job, d, fmt.Errorf("moving the job to size class %d: %w", d.EscalateTo, err)
	}
	if job, err = a.Store.Job(ctx, job.Key); err != nil {
		return job, d, err
	}
	if !escalated { // no test case of it lacks a result any more
		d.Reason = bench.Retry
		return job, d, nil
	}
	a.Log.InfoContext(ctx, "a job failed on its size class and goes to a larger one",
		"project", job.Project, "job", job.Key, "from", left, "to", job.TaskQueue)
	if d.AttemptsLeft, err = view.Attempts(ctx, config, job.Key, nil); err != nil {
		return job, d, err
	}
	return job, d, a.dispatcher().Fill(ctx, left)
}
