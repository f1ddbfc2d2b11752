package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

func (s *server) registerExplain() {
	handle(s, operation{id: "explain-job", method: http.MethodGet, path: "/jobs/{job}/explain", need: toRead, tag: "jobs",
		summary:     "Why a job is where it is",
		description: "What it waits for, its place in its queue, why each collector does not take it, why it has its size class, and what its runs cost."}, s.explainJob)
	handle(s, operation{id: "explain-request", method: http.MethodGet, path: "/requests/{request}/explain", need: toRead, tag: "requests",
		summary:     "Why a request is where it is",
		description: "What it waits for, its place in its project's queue, and the explanation of its next job."}, s.explainRequest)
}

func (s *server) explainJob(ctx context.Context, in *jobPath) (*body[diagnose.JobExplanation], error) {
	j, err := s.job(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	e, err := s.explanation(ctx, j)
	return answer(e, err)
}

// explanation asks the record for all that is known of a job.
func (s *server) explanation(ctx context.Context, j bench.Job) (diagnose.JobExplanation, error) {
	c := diagnose.JobCase{
		Key: j.Key, Project: j.Project, Status: j.Status, Message: j.Message, TaskQueue: j.TaskQueue, Target: j.Target, SizeClass: j.SizeClass,
		Created: j.CreatedAt, HandedOutTo: j.HandedOutTo,
	}
	if j.Constraints != nil {
		c.Needs = j.Constraints.Spec()
	}
	if j.HandedOutAt != nil {
		c.HandedOut = *j.HandedOutAt
	}
	if j.AffinityUntil != nil {
		c.AffinityUntil = *j.AffinityUntil
	}
	for _, add := range []func(context.Context, bench.Job, *diagnose.JobCase) error{s.addRuns, s.addSize, s.addWaiters, s.addQueue, s.addCollectors} {
		if err := add(ctx, j, &c); err != nil {
			return diagnose.JobExplanation{}, err
		}
	}
	return diagnose.Job(c, s.Now()), nil
}

func (s *server) addRuns(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	runs, err := s.Store.JobRuns(ctx, j.Key)
	for _, r := range runs {
		run := diagnose.Run{
			ID: r.ID, Number: r.Number, Reason: r.Reason, Collector: r.Collector, SizeClass: r.SizeClass, Outcome: r.Outcome, Message: r.Message,
			Started: r.StartedAt, Timeout: time.Duration(r.TimeoutSeconds * float64(time.Second)), Probe: r.Probe, PeakMemory: r.PeakMemory,
		}
		if r.FinishedAt != nil {
			run.Finished = *r.FinishedAt
		}
		c.Runs = append(c.Runs, run)
	}
	return err
}

// addSize adds how the job's size class came about.
func (s *server) addSize(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	c.Size = diagnose.Size{Class: j.SizeClass, Shape: j.Shape, Why: j.SelectedWhy, Probe: j.Probe, Timeout: time.Duration(j.TimeoutSeconds * float64(time.Second))}
	if j.SelectedAt != nil {
		c.Size.Selected = *j.SelectedAt
	}
	fleet, err := s.Store.Fleet(ctx, s.OfflineAfter)
	if err != nil {
		return err
	}
	job, err := s.Store.SizingOf(ctx, j.Key)
	if err != nil {
		return err
	}
	var known store.SizeStatistics
	if j.Shape != "" {
		known, err = s.Store.SizeStatistics(ctx, j.Project, bench.Shape(j.Shape))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	statistics, _ := sizing.ReadStatistics(known.Statistics) // what cannot be read is nothing
	now, err := sizing.Explain(fleet, job, statistics, s.Now())
	c.Size.Pinned = now.Pinned
	if err == nil && j.Shape != "" {
		c.Size.Now = &now.Selection
	}
	return nil
}

// addWaiters adds who waits for an open job, and what holds all of its project or
// account.
func (s *server) addWaiters(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	waiters, err := s.Store.JobWaiters(ctx, j.Key)
	if err != nil {
		return err
	}
	for _, w := range waiters {
		c.Waiters = append(c.Waiters, diagnose.Waiter{ID: w.ID, InTurn: w.InTurn})
	}
	pause, err := s.Store.QueuePause(ctx, j.Project)
	if err != nil {
		return err
	}
	if pause != nil {
		c.Pause = &diagnose.Pause{Who: pause.By, Why: pause.Reason}
	}
	account, err := s.Store.AccountHold(ctx, j.Submitter, j.Branch)
	c.Account = diagnose.Account{Name: j.Submitter, MaxRunning: account.MaxRunning, UnderWay: account.UnderWay, Stranded: account.Stranded, FirstLevel: account.FirstLevel}
	return err
}

func (s *server) addQueue(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	if !j.Status.Open() {
		return nil
	}
	q, err := s.Store.QueuePlace(ctx, j.Key)
	c.Queue = diagnose.Queue{
		Name: j.Queue, Class: q.Class, Weight: q.Weight, Level: q.Level, OwnLevel: q.OwnLevel, Share: q.Entitled,
		Before: q.Before, Waiting: q.Waiting, HandedOut: q.HandedOut, Running: q.Running, Earlier: q.Earlier, Beside: q.Beside,
	}
	return err
}

// addCollectors adds who there is for an open job.
func (s *server) addCollectors(ctx context.Context, j bench.Job, c *diagnose.JobCase) error {
	if !j.Status.Open() {
		return nil
	}
	members, err := s.Store.SetMembers(ctx, j.TaskQueue)
	if err != nil {
		return err
	}
	collectors, err := s.Store.Collectors(ctx)
	if err != nil {
		return err
	}
	lacks, err := s.lacks(ctx, j)
	if err != nil {
		return err
	}
	now := s.Now()
	for _, one := range collectors {
		queues := []string{bench.Pool{Target: one.Target, SizeClass: one.SizeClass, Name: one.Pool}.TaskQueue()}
		if slices.Contains(members, one.Name) {
			if queues, err = s.Store.CollectorTaskQueues(ctx, one); err != nil {
				return err
			}
		}
		c.Collectors = append(c.Collectors, diagnose.Collector{
			Name: one.Name, Host: one.Host, State: one.State(now, s.OfflineAfter), Run: one.CurrentRun, LastHeard: one.LastHeartbeat, Version: one.Version,
			Wanted: one.WantedVersion, TaskQueues: queues, Lacks: lacks[one.Name],
		})
	}
	stranded, err := s.stranded(ctx, j.Key)
	c.Stranded = stranded[j.Key]
	return err
}

// lacks says by the collectors' names what each does not have that the job needs.
func (s *server) lacks(ctx context.Context, j bench.Job) (map[string][]string, error) {
	fleet, err := s.Store.Fleet(ctx, s.OfflineAfter)
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

// shownOpen bounds how many open jobs a request's explanation lists.
const shownOpen = 10

func (s *server) explainRequest(ctx context.Context, in *requestPath) (*body[apiclient.RequestExplanation], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	out := apiclient.RequestExplanation{Request: requestOf(r), Findings: []apiclient.Finding{}, Open: []apiclient.OpenJob{}}
	if out.Findings, err = s.findings(ctx, r); err != nil {
		return nil, err
	}
	if out.Place, err = s.placeOf(ctx, r); err != nil {
		return nil, err
	}
	progress, err := s.Store.JobProgress(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	out.Progress = apiclient.Progress{
		Jobs: progress.Total, JobsDone: progress.Total - progress.Open(), JobsFailed: progress.Failure,
		TestCases: progress.TestCases, TestCasesDone: progress.TestCasesDone,
	}
	open, err := s.Store.OpenJobsOf(ctx, r.ID, shownOpen)
	if err != nil || len(open) == 0 {
		return answer(out, err)
	}
	jobs := make([]apiclient.Job, len(open))
	running := make([]apiclient.Run, 0, len(open))
	for i, j := range open {
		jobs[i] = jobOf(j.Job)
		if j.Running {
			running = append(running, apiclient.Run{Job: j.Key})
		}
	}
	if err := s.explainWaiting(ctx, jobs, running); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		out.Open = append(out.Open, apiclient.OpenJob{Key: j.Key, Status: j.Status, Waits: j.Waits})
	}
	next := max(0, slices.IndexFunc(open, func(j store.AttendedJob) bool { return !j.Running }))
	e, err := s.explanation(ctx, open[next].Job)
	out.Next = &e
	return answer(out, err)
}

// placeOf is a request's place in its project's queue; nil when it is not in it.
func (s *server) placeOf(ctx context.Context, r bench.Request) (*apiclient.QueueEntry, error) {
	if !r.Type.Tracked() || r.Status == bench.Completed || r.JobsDoneAt != nil {
		return nil, nil //nolint:nilnil // no place is an answer
	}
	entries, _, err := s.queue(ctx, r.Project)
	if at := slices.IndexFunc(entries, func(e admission.Entry) bool { return e.Request.ID == r.ID }); at >= 0 {
		entry := queueEntryOf(entries[at])
		return &entry, err
	}
	return nil, err
}

// findings are what a request waits for, without those about jobs that only wait:
// they are explained by themselves. When Temporal does not answer, that is a
// finding.
func (s *server) findings(ctx context.Context, r bench.Request) ([]apiclient.Finding, error) {
	c, err := s.caseOf(ctx, r)
	if problem, away := errors.AsType[*huma.ErrorModel](err); away && problem.Status == http.StatusServiceUnavailable {
		return []apiclient.Finding{{Subject: "Temporal", What: problem.Detail, Stuck: true}}, nil
	} else if err != nil {
		return nil, err
	}
	out := []apiclient.Finding{}
	for _, f := range diagnose.Request(c, s.Now()) {
		if f.Job == "" || f.Stuck {
			out = append(out, findingOf(f))
		}
	}
	return out, nil
}
