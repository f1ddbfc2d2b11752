package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

// shownProblems bounds the number of refused jobs of a batch that are named.
const shownProblems = 20

// createCommands creates a request for one command or a batch, together with its jobs,
// which wait from then on.
func (s *requestHandlers) createCommands(ctx context.Context, wanted apiclient.NewRequest, batch *spool) (*createdRequest, error) {
	if wanted.Project == "" {
		wanted.Project = apiclient.AdHocProject
	}
	if wanted.Type == "" {
		wanted.Type = bench.AdHoc
	}
	if err := checkCommands(wanted, batch != nil); err != nil {
		return nil, err
	}
	project, err := s.project(ctx, wanted.Project, http.StatusUnprocessableEntity)
	if err != nil {
		return nil, err
	}
	own, err := readConstraints(wanted.Constraints)
	if err != nil {
		return nil, err
	}
	r := bench.Request{
		Project: wanted.Project, Type: wanted.Type,
		Submission: bench.Submission{Queue: wanted.Queue, Branch: wanted.Branch, Submitter: caller(ctx).Owner, IdempotencyKey: wanted.IdempotencyKey},
		Scope:      bench.Scope{Profiler: wanted.Profiler, SizeClass: wanted.SizeClass, Constraints: own, Profiling: givenProfiling(wanted.Profiling)},
	}
	f, err := s.facts(ctx, r, project)
	if err != nil {
		return nil, err
	}
	if err := checkProfiling(wanted.Profiling, f.Config); err != nil {
		return nil, err
	}
	timeouts, err := plan.NewTimeouts(f.Config.Size)
	if err != nil {
		return nil, fmt.Errorf("project %s: %w; apply a corrected configuration", project.Name, err)
	}
	if wanted.Command != nil {
		command, err := timeouts.Limit(storeCommand(*wanted.Command))
		if err != nil {
			return nil, err
		}
		r.Command = &command
	}
	c := commands{
		facts: f, timeouts: timeouts, target: wanted.Target, shape: wanted.Shape, batch: batch, taskQueues: make(map[string]bool), mayUse: s.queueGuard(ctx, wanted.Branch),
	}
	if r.IdempotencyKey != "" {
		switch stored, err := s.repeated(ctx, r, c); {
		case err == nil:
			return requestCreated(stored, false, nil), s.fillAgain(ctx, stored.ID)
		case errors.Is(err, store.ErrConflict):
			return nil, differs(wanted, stored)
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	if err := s.standing(ctx, wanted); err != nil {
		return nil, err
	}
	if r.ID, err = bench.NewRequestID(s.Random); err != nil {
		return nil, err
	}
	switch {
	case batch == nil:
		if wanted.Target, err = f.CommandTarget(wanted.Target); err != nil {
			return nil, err
		}
		r.Selection = bench.Selection{Targets: []bench.Target{wanted.Target}}
	case wanted.Target != "":
		r.Selection = bench.Selection{Targets: []bench.Target{wanted.Target}}
	}
	f.Request = r
	c.planner = plan.NewCommands(f)
	if r.Batch, r.Digest, err = c.check(); err != nil {
		return nil, err
	}
	stored, created, err := s.record.CreateCommands(ctx, r, c.jobs())
	if errors.Is(err, store.ErrConflict) {
		return nil, differs(wanted, stored)
	}
	if err != nil {
		return nil, err
	}
	if created {
		s.presume(ctx, stored.ID, c.taskQueues)
	}
	s.fill(ctx, c.taskQueues)
	return requestCreated(stored, created, c.planner.Warnings()), nil
}

// repeated returns the caller's earlier request with the same idempotency key: an accepted
// request stays accepted, whatever has become of collectors, queues and limits. The error is
// store.ErrNotFound when there is none, and store.ErrConflict, with the request, when it
// asks for something else.
func (s *requestHandlers) repeated(ctx context.Context, r bench.Request, c commands) (bench.Request, error) {
	if c.target != "" {
		r.Selection = bench.Selection{Targets: []bench.Target{c.target}}
	}
	stored, err := s.record.RequestLike(ctx, r)
	if !errors.Is(err, store.ErrConflict) {
		return stored, err
	}
	// The target was determined then.
	if c.batch == nil && c.target == "" {
		r.Selection = stored.Selection
	}
	if c.batch != nil {
		if r.Digest, err = c.digest(); err != nil {
			return stored, err
		}
	}
	return s.record.RequestLike(ctx, r)
}

// fillAgain hands out the waiting jobs of an existing request: the call that wrote it may
// have ended too early.
func (s *requestHandlers) fillAgain(ctx context.Context, id bench.RequestID) error {
	open, err := s.record.OpenTaskQueues(ctx, id, bench.StageOwn)
	queues := make(map[string]bool, len(open))
	for _, q := range open {
		queues[q] = true
	}
	s.fill(ctx, queues)
	return err
}

// presume moves new jobs to where jobs of their shape went last, and adds the task queues
// they wait in. A failure is only logged: the jobs stay where they are.
func (s *requestHandlers) presume(ctx context.Context, id bench.RequestID, taskQueues map[string]bool) {
	queues, err := s.dispatcher.Presume(ctx, id)
	for _, q := range queues {
		taskQueues[q] = true
	}
	if err != nil {
		s.Log.WarnContext(ctx, "could not move new jobs by their shape", "request", id, "error", err)
	}
}

// checkCommands refuses contradictions in a request for commands.
func checkCommands(r apiclient.NewRequest, batch bool) error {
	what := "a command"
	if batch {
		what = "a batch of commands"
	}
	switch {
	case batch && r.Command != nil:
		return invalid("the request has both a command and jobs; add the command to the jobs")
	case r.Type.Tracked():
		return invalid("a %s request is measured with its project's suite, not with a command; use type adhoc for a command", r.Type)
	case r.Parent != "", r.PR != 0, r.ArtifactsReady, r.CommitDate != nil:
		return invalid("%s has no parent, pull request, artifacts and date; leave parent, pr, artifacts_ready and commit_date out", what)
	case r.Versus != "":
		return invalid("versus is for ad-hoc measurements of an artifact; use type adhoc with a tag, or leave it out")
	case r.Tag != "":
		return invalid("%s measures no artifact; leave tag out", what)
	case !emptySelection(r.Selection):
		return invalid("%s measures nothing of a suite; leave selection out", what)
	}
	if err := checkKey(r.IdempotencyKey); err != nil {
		return err
	}
	if err := r.PlacementWish.Check(); err != nil {
		return invalid("%s", plain(err))
	}
	if r.Command == nil {
		return nil
	}
	if err := r.Command.Check(); err != nil {
		return invalid("%s", err)
	}
	return nil
}

// commands holds the command lines of a request while it is created.
type commands struct {
	facts    plan.Facts
	timeouts plan.Timeouts
	// target of the request, for jobs that name none; may be empty.
	target  bench.Target
	shape   string // of jobs that name none; may be empty
	batch   *spool // nil: the request has one command
	planner *plan.Commands
	// taskQueues holds the task queues in which its jobs wait.
	taskQueues map[string]bool
	// mayUse returns an error unless a job may wait in the named queue.
	mayUse func(queue string) error
}

// check plans every job of a batch and names those that are refused, up to a limit. It returns the digest
// of the batch.
func (c commands) check() (count int, digest string, err error) {
	if c.batch == nil {
		_, err := c.plan(c.only())
		return 0, "", err
	}
	wrong, found := 0, invalid("")
	for place, text := range c.batch.lines() {
		line, err := c.line(place, text)
		if err == nil {
			_, err = c.plan(line)
		}
		if err != nil {
			if wrong++; wrong <= shownProblems {
				found.Errors = append(found.Errors, &huma.ErrorDetail{Location: fmt.Sprintf("body.jobs[%d]", place-1), Message: plain(err)})
			}
		}
	}
	if wrong > 0 {
		found.Detail = fmt.Sprintf("nothing was submitted: %d of %d jobs cannot be taken; correct what is named below", wrong, c.batch.count)
		if wrong > shownProblems {
			found.Detail += fmt.Sprintf(" (the first %d of them)", shownProblems)
		}
		return 0, "", found
	}
	digest, err = c.digest()
	return c.batch.count, digest, err
}

// digest returns the digest of a batch. It does not depend on the formatting, nor on the
// registered collectors.
func (c commands) digest() (string, error) {
	sum := sha256.New()
	for place, text := range c.batch.lines() {
		line, err := c.asked(place, text)
		if err != nil {
			return "", fmt.Errorf("job %d: %w", place, err)
		}
		asked, err := json.Marshal(line)
		if err != nil {
			return "", fmt.Errorf("reading job %d of the batch: %w", place, err)
		}
		sum.Write(asked)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// plan returns the job of a line.
func (c commands) plan(line plan.Line) (bench.PlannedJob, error) {
	j, err := c.planner.Job(line)
	if err == nil {
		c.taskQueues[j.TaskQueue] = true
	}
	return j, err
}

// only returns the command of a request without a batch.
func (c commands) only() plan.Line {
	line := c.planner.Only()
	line.Shape = c.shape
	return line
}

// line reads a job of the batch, and where it runs.
func (c commands) line(place int, text []byte) (plan.Line, error) {
	line, err := c.asked(place, text)
	if err != nil {
		return line, err
	}
	if line.Target, err = c.facts.CommandTarget(line.Target); err != nil {
		return line, err
	}
	return line, c.mayUse(line.Queue)
}

// asked reads a job of the batch.
func (c commands) asked(place int, text []byte) (plan.Line, error) {
	j, err := apiclient.ReadJob(text)
	if err != nil {
		return plan.Line{}, err
	}
	orDefault(&j.Target, c.target)
	orDefault(&j.Shape, c.shape)
	command, err := c.timeouts.Limit(storeCommand(j.Command))
	if err != nil {
		return plan.Line{}, err
	}
	constraints, err := readConstraints(j.Constraints)
	if err != nil {
		return plan.Line{}, err
	}
	return plan.Line{
		Number: place, Name: j.Name, Command: command, Target: j.Target, Class: j.SizeClass, Queue: j.Queue, Shape: j.Shape, Constraints: constraints,
	}, nil
}

// jobs yields the jobs of the request.
func (c commands) jobs() iter.Seq2[bench.PlannedJob, error] {
	return func(yield func(bench.PlannedJob, error) bool) {
		if c.batch == nil {
			yield(c.plan(c.only()))
			return
		}
		for place, text := range c.batch.lines() {
			line, err := c.line(place, text)
			var j bench.PlannedJob
			if err == nil {
				j, err = c.plan(line)
			}
			if !yield(j, err) {
				return
			}
		}
	}
}
