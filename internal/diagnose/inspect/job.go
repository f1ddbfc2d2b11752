package inspect

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

// Job explains why a job is where it is.
func (i *Inspector) Job(ctx context.Context, j bench.Job) (diagnose.JobExplanation, error) {
	c := diagnose.JobCase{
		Key: j.Key, Project: j.Project, Status: j.Status, Message: j.Message, TaskQueue: j.TaskQueue, SizeClass: j.SizeClass,
		HandedOut: timeOf(j.HandedOutAt), AffinityUntil: timeOf(j.AffinityUntil),
	}
	if j.Constraints != nil {
		c.Needs = j.Constraints.Spec()
	}
	adds := []func(context.Context, bench.Job, *diagnose.JobCase) error{i.addRuns, i.addSize, i.addWaiters, i.addAccount}
	if j.Status.Open() {
		adds = append(adds, i.addQueue, i.addCollectors)
	}
	for _, add := range adds {
		if err := add(ctx, j, &c); err != nil {
			return diagnose.JobExplanation{}, err
		}
	}
	return diagnose.Job(c, i.Now()), nil
}

// timeOf is zero for no time.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func durationOf(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func (i *Inspector) addRuns(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	runs, err := i.Record.JobRuns(ctx, j.Key)
	for _, r := range runs {
		c.Runs = append(c.Runs, diagnose.Run{
			ID: r.ID, Number: r.Number, Reason: r.Reason, Collector: r.Collector, SizeClass: r.SizeClass, Outcome: r.Outcome, Message: r.Message,
			Started: r.StartedAt, Finished: timeOf(r.FinishedAt), Timeout: durationOf(r.TimeoutSeconds), Probe: r.Probe, PeakMemory: r.PeakMemory,
		})
	}
	return err
}

// addSize adds how the job's size class was chosen.
func (i *Inspector) addSize(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	c.Size = diagnose.Size{
		Class: j.SizeClass, Shape: j.Shape, Selected: timeOf(j.SelectedAt), Why: j.SelectedWhy, Probe: j.Probe, Timeout: durationOf(j.TimeoutSeconds),
	}
	fleet, err := i.fleet(ctx)
	if err != nil {
		return err
	}
	job, err := i.Record.SizingOf(ctx, j.Key)
	if err != nil {
		return err
	}
	var known store.SizeStatistics
	if j.Shape != "" {
		known, err = i.Record.SizeStatistics(ctx, j.Project, bench.Shape(j.Shape))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	statistics, _ := sizing.ReadStatistics(known.Statistics) // unreadable statistics count as none
	now, err := sizing.Explain(fleet, job, statistics, i.Now())
	c.Size.Pinned = now.Pinned
	if err == nil && j.Shape != "" { // an error: no collector could run it, so no class would be selected
		c.Size.Now = &now.Selection
	}
	return nil
}

// addWaiters adds the requests that wait for the job, the jobs for which it waits, and the
// pause of its project's queue.
func (i *Inspector) addWaiters(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	waiters, err := i.Record.JobWaiters(ctx, j.Key)
	if err != nil {
		return err
	}
	for _, w := range waiters {
		c.Waiters = append(c.Waiters, diagnose.Waiter{ID: w.ID, InTurn: w.InTurn})
	}
	inputs, err := i.Record.MissingInputs(ctx, j.Key)
	if err != nil {
		return err
	}
	c.Inputs = inputs[j.Key]
	c.Pause, err = i.pause(ctx, j.Project)
	return err
}

// pause returns nil for a project whose queue is not paused.
func (i *Inspector) pause(ctx context.Context, project string) (*diagnose.Pause, error) {
	p, err := i.Record.QueuePause(ctx, project)
	if p == nil || err != nil {
		return nil, err
	}
	return &diagnose.Pause{Who: p.By, Why: p.Reason, Since: p.At}, nil
}

func (i *Inspector) addAccount(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	account, err := i.account(ctx, j.Submitter, j.Branch)
	c.Account = account
	return err
}

func (i *Inspector) account(ctx context.Context, name, branch string) (diagnose.Account, error) {
	hold, err := i.Record.AccountHold(ctx, name, branch)
	return diagnose.Account{Name: name, MaxRunning: hold.MaxRunning, UnderWay: hold.UnderWay, Stranded: hold.Stranded, FirstLevel: hold.FirstLevel}, err
}

func (i *Inspector) addQueue(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	q, err := i.Record.QueuePosition(ctx, j.Key)
	c.Queue = diagnose.Queue{
		Name: j.Queue, Class: q.Class, Weight: q.Weight, Level: q.Level, OwnLevel: q.OwnLevel, Share: q.Entitled,
		Before: q.Before, More: q.Before >= store.MaxBefore, Waiting: q.Waiting, HandedOut: q.HandedOut, Running: q.Running, Earlier: q.Earlier, Beside: q.Beside,
	}
	return err
}

// addCollectors adds all registered collectors, and the job's failover when no live one
// serves its task queue.
func (i *Inspector) addCollectors(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	members, err := i.Record.SetMembers(ctx, j.TaskQueue)
	if err != nil {
		return err
	}
	collectors, err := i.Record.Collectors(ctx)
	if err != nil {
		return err
	}
	lacks, err := i.lacks(ctx, j)
	if err != nil {
		return err
	}
	now := i.Now()
	for _, one := range collectors {
		taskQueues := []string{poolQueue(one)}
		if slices.Contains(members, one.Name) {
			if taskQueues, err = i.Record.CollectorTaskQueues(ctx, one); err != nil {
				return err
			}
		}
		setAside := ""
		if one.SetAsideAt != nil {
			setAside = one.DisturbedBy
		}
		c.Collectors = append(c.Collectors, diagnose.Collector{
			Name: one.Name, Host: one.Host, State: one.State(now, i.OfflineAfter), Run: one.CurrentRun, LastHeard: one.LastHeartbeat, SetAside: setAside, AwaitsCanary: one.CanaryFailed, Stuck: one.Stuck, Version: one.Version,
			Wanted: one.WantedVersion, TaskQueues: taskQueues, Lacks: lacks[one.Name],
		})
	}
	stranded, err := i.stranded(ctx, j.Key)
	c.Stranded = stranded[j.Key]
	return err
}

// poolQueue is the task queue of a collector's pool.
func poolQueue(c bench.Collector) string {
	return bench.Pool{Target: c.Target, SizeClass: c.SizeClass, Name: c.Pool}.TaskQueue()
}

// lacks lists, by collector, the needs of the job that it does not meet.
func (i *Inspector) lacks(ctx context.Context, j bench.Job) (map[string][]string, error) {
	fleet, err := i.fleet(ctx)
	if err != nil {
		return nil, err
	}
	needs := plan.NeedsOf(j).Requirements().On(j.SizeClass)
	words := make(map[string][]string, len(fleet))
	for _, c := range fleet {
		words[c.Name] = placement.WhyNot(c, needs)
	}
	return words, nil
}
