package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/intake"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

type createRequest struct {
	Body apiclient.NewRequest
}

type createdRequest struct {
	Status int
	Body   apiclient.Request
}

func (s *requestHandlers) createRequest(ctx context.Context, in *createRequest) (*createdRequest, error) {
	wanted, batch := in.Body, spooled(ctx)
	if len(wanted.Jobs) > 0 {
		return nil, invalid("the field jobs is there twice, or its name is written with escapes; write it once and plainly")
	}
	if wanted.Command != nil || batch != nil {
		return s.createCommands(ctx, wanted, batch)
	}
	if wanted.Profiler != "" {
		orDefault(&wanted.Type, bench.AdHoc)
	}
	orDefault(&wanted.Type, bench.Release)
	if err := checkRequest(wanted); err != nil {
		return nil, err
	}
	if _, err := asked(wanted, caller(ctx).Owner); err != nil {
		return nil, err
	}
	project, err := s.project(ctx, wanted.Project, http.StatusUnprocessableEntity)
	if err != nil {
		return nil, err
	}
	if wanted.Type != bench.Release { // whose tag is a version
		if err := s.tags(ctx, wanted.Project, &wanted.Tag, &wanted.Versus, &wanted.Parent); err != nil {
			return nil, err
		}
	}
	r, err := asked(wanted, caller(ctx).Owner)
	if err != nil {
		return nil, err
	}
	if r.Constraints, err = readConstraints(wanted.Constraints); err != nil {
		return nil, err
	}
	r.Profiling = givenProfiling(wanted.Profiling)
	f, err := s.facts(ctx, r, project)
	if err != nil {
		return nil, err
	}
	if err := checkProfiling(wanted.Profiling, f.Config); err != nil {
		return nil, err
	}
	var warnings []string
	switch stored, err := s.record.RequestLike(ctx, r); {
	case errors.Is(err, store.ErrConflict):
		return nil, differs(wanted, stored)
	case errors.Is(err, store.ErrNotFound):
		if warnings, err = s.acceptable(ctx, f, wanted, project); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	taken, err := s.intake().Create(ctx, r, f.Config)
	if errors.Is(err, store.ErrConflict) {
		return nil, differs(wanted, taken.Request)
	}
	if err != nil {
		return nil, err
	}
	s.begin(ctx, append(taken.Created, taken.Request))
	for _, o := range taken.Superseded {
		s.reach(ctx, "cancel the workflow of a superseded request", o.Ref().WorkflowID(), func(ctx context.Context) error {
			return s.workflows.CancelRequest(ctx, o.Ref(), nil)
		})
	}
	return requestCreated(taken.Request, taken.IsNew(), warnings), nil
}

// acceptable refuses a new request that no collector could run, or whose queue the caller
// may not use. An accepted request stays so: repetitions are not checked. Warnings explain
// why the request has to wait.
func (s *requestHandlers) acceptable(ctx context.Context, f plan.Facts, wanted apiclient.NewRequest, project store.Project) ([]string, error) {
	warnings, err := s.runnable(ctx, f, project)
	if err != nil {
		return nil, err
	}
	return warnings, s.standing(ctx, wanted)
}

func requestCreated(r bench.Request, isNew bool, warnings []string) *createdRequest {
	out := &createdRequest{Status: http.StatusOK, Body: requestOf(r)}
	out.Body.Warnings = warnings
	if out.Body.Created = isNew; isNew {
		out.Status = http.StatusCreated
	}
	return out
}

func (s *requestHandlers) intake() intake.Intake {
	return intake.Intake{Record: s.record, Random: s.Random, Now: s.Now, Limited: true}
}

// begin starts the workflows of requests without one, each once.
func (s *requestHandlers) begin(ctx context.Context, requests []bench.Request) {
	begun := make(map[bench.RequestID]bool)
	for _, r := range requests {
		if r.WorkflowStartedAt != nil || r.Status == bench.Completed || begun[r.ID] {
			continue
		}
		begun[r.ID] = true
		s.reach(ctx, "start the workflow of a request", r.Ref().WorkflowID(), func(ctx context.Context) error {
			if err := s.workflows.StartRequest(ctx, r.Ref()); err != nil {
				return err
			}
			return s.record.MarkWorkflowStarted(ctx, r.ID)
		})
	}
}

func differs(wanted apiclient.NewRequest, stored bench.Request) error {
	what := fmt.Sprintf("%s of project %s", wanted.Tag, wanted.Project)
	if wanted.IdempotencyKey != "" {
		what = fmt.Sprintf("the idempotency key %q", wanted.IdempotencyKey)
	}
	other := "selection or command"
	switch {
	case stored.Project != wanted.Project:
		other = "project"
	case stored.Type != wanted.Type:
		other = "type"
	case stored.Tag != wanted.Tag:
		other = "tag"
	case stored.Versus != wanted.Versus:
		other = "artifact to be measured in turns with"
	case stored.Profiler != wanted.Profiler:
		other = "profiler"
	case stored.SizeClass != wanted.SizeClass:
		other = "size class"
	case stored.Queue != wanted.Queue:
		other = "queue"
	case stored.Branch != wanted.Branch:
		other = "branch"
	case stored.Batch > 0:
		other = "set of jobs"
	case !reflect.DeepEqual(stored.Profiling, givenProfiling(wanted.Profiling)):
		other = "profiling"
	case !sameConstraints(stored.Constraints, wanted.Constraints):
		other = "set of constraints"
	}
	return problemf(http.StatusConflict, "conflict", "request %s for %s exists already with another %s; look at it with 'benchloom status %s', or use type adhoc (and another idempotency key) for a measurement of its own", stored.ID, what, other, stored.ID)
}

// checkRequest refuses fields that do not belong to such a request, before any lookup;
// [asked] refuses those that its type cannot have.
func checkRequest(r apiclient.NewRequest) error {
	switch {
	case r.Project == "":
		return invalid("the request names no project; add one, 'benchloom project list' shows them")
	case r.Shape != "":
		return invalid("shape belongs to a command; what a suite's jobs share is their test cases")
	case r.Type.Tracked() && !r.Constraints.IsZero():
		return invalid("a %s request is measured where its project's constraints say; leave constraints out, or use type adhoc", r.Type)
	case r.ArtifactsReady && r.Type != bench.Try:
		return invalid("artifacts_ready is for try builds; the artifacts of other requests are taken to be ready")
	case r.Target != "":
		return invalid("target is for commands; name the suite's targets in selection.targets")
	case r.Selection.Iterations < 0 || r.Selection.Iterations > bench.MaxIterations:
		return invalid("selection.iterations is %d; use 1 to %d, or leave it out for the suite's number", r.Selection.Iterations, bench.MaxIterations)
	}
	return checkKey(r.IdempotencyKey)
}

// asked returns an account's request for an artifact, without constraints.
func asked(wanted apiclient.NewRequest, account string) (bench.Request, error) {
	by := bench.Submission{Submitter: account, Queue: wanted.Queue, Branch: wanted.Branch, IdempotencyKey: wanted.IdempotencyKey}
	from := bench.Origin{Parent: wanted.Parent, PR: wanted.PR, CommitDate: wanted.CommitDate}
	scope := bench.Scope{Selection: wanted.Selection, Versus: wanted.Versus, SizeClass: wanted.SizeClass, Profiler: wanted.Profiler}
	var r bench.Request
	var err error
	switch wanted.Type {
	case bench.Release:
		r, err = bench.NewRelease(wanted.Project, wanted.Tag, wanted.CommitDate, wanted.Selection, by)
	case bench.Master:
		r, err = bench.NewMasterCommit(wanted.Project, wanted.Tag, from, wanted.Selection, by)
	case bench.Try:
		r, err = bench.NewTryBuild(wanted.Project, wanted.Tag, from, wanted.Selection, by)
		if err == nil && wanted.ArtifactsReady {
			r, err = r.Ready()
		}
	case bench.AdHoc:
		r, err = bench.NewMeasurement(wanted.Project, wanted.Tag, wanted.CommitDate, scope, by)
	default:
		err = invalid("a request of type %q is not known; use release, master, try or adhoc", wanted.Type)
	}
	if err != nil {
		return bench.Request{}, err
	}
	r.Origin, r.Scope = from, scope // also fields that its type cannot have: Validate refuses them
	return r, r.Validate()
}

func checkKey(key string) error {
	if strings.ContainsRune(key, 0) {
		return invalid("the idempotency key holds a zero byte; use letters and digits")
	}
	return nil
}

func emptySelection(s bench.Selection) bool {
	return s.Set == "" && s.Iterations == 0 && len(s.Benchmarks)+len(s.Profiles)+len(s.Scenarios)+len(s.Backends)+len(s.Targets) == 0
}

const defaultCommandIterations = 1

func storeCommand(c apiclient.Command) bench.Command {
	out := bench.Command{Argv: c.Argv, Env: c.Env, TimeoutSeconds: c.TimeoutSeconds, Iterations: c.Iterations}
	orDefault(&out.Iterations, defaultCommandIterations)
	return out
}

// runnable checks that registered collectors can run all selected parts of the suite.
func (s *requestHandlers) runnable(ctx context.Context, f plan.Facts, project store.Project) ([]string, error) {
	if project.SuiteHash == "" {
		return nil, problemf(http.StatusUnprocessableEntity, "no-suite", "project %s has no suite, so there is nothing to measure; apply it with one ('benchloom project apply'), or submit a command", project.Name)
	}
	var err error
	if f.Suite, err = s.suites.Suite(ctx, project.SuiteHash); err != nil {
		return nil, fmt.Errorf("reading the suite of project %s: %w", project.Name, err)
	}
	warnings, err := f.Check()
	if err != nil {
		return nil, fmt.Errorf("project %s, suite %s: %w", project.Name, f.Suite.Name(), err)
	}
	return warnings, nil
}
