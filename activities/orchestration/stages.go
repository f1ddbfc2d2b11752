package orchestration

import (
	"context"
	"errors"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// Expand writes the jobs of one stage of a request and hands out what can run:
// once, however often it is called.
func (a *Activities) Expand(ctx context.Context, in protocol.ExpandInput) (protocol.ExpandResult, error) {
	r, err := a.Store.Request(ctx, in.Request.ID)
	if err != nil {
		return protocol.ExpandResult{}, found(err, "reading the request")
	}
	a.Points.Reach(ctx, failpoint.Expanding)
	if err := a.writeStage(ctx, r, in.Stage); err != nil {
		var unplaceable *placement.Unplaceable
		switch {
		case !errors.As(err, &unplaceable):
			return protocol.ExpandResult{}, err
		case in.Stage == bench.StageVerify: // what differs stands as it was measured
		case in.Stage != bench.StageParent: // a parent that cannot be measured is no failure of its child
			return protocol.ExpandResult{Failed: err.Error()}, nil
		}
	}
	var out protocol.ExpandResult
	// What was written with the request was handed out then, before there was a workflow.
	if !r.Deferred || r.ReopenedAt != nil {
		if out.HandedOut, err = a.handOutTo(ctx, r, in.Stage); err != nil {
			return protocol.ExpandResult{}, err
		}
	}
	if out.Shared, err = a.shared(ctx, r); err != nil {
		return protocol.ExpandResult{}, err
	}
	p, err := a.Store.StageProgress(ctx, r.ID, in.Stage, false)
	out.Counts = counts(p)
	return out, err
}

// handOutTo hands out where jobs of a stage of a request wait, and makes the inputs of
// those that the request is to start. They are asked of the record, not of what was
// handed out now: a repetition must name the jobs that the first try handed out.
func (a *Activities) handOutTo(ctx context.Context, r bench.Request, stage bench.Stage) ([]protocol.JobInput, error) {
	queues, err := a.Store.OpenTaskQueues(ctx, r.ID, stage)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		if err := a.dispatcher().FillFor(ctx, q, r.ID); err != nil {
			return nil, err
		}
	}
	jobs, err := a.dispatcher().HandedOutTo(ctx, r.ID)
	return jobs, classify(err, "reading what was handed out")
}

func (a *Activities) writeStage(ctx context.Context, r bench.Request, stage bench.Stage) error {
	if stage == bench.StageOwn && r.ExpandedAt != nil {
		return nil
	}
	e, err := a.expansion(ctx, r, stage)
	if err != nil {
		return err
	}
	for range rewrites {
		err = a.writeJobs(ctx, e, stage)
		if !errors.Is(err, store.ErrStale) {
			break
		}
	}
	if errors.Is(err, store.ErrConflict) {
		return permanent(err) // the request has ended, or means another job by the same key
	}
	return err
}

// rewrites is how often the jobs of a stage are made up anew at once because
// others have written, ended or cancelled jobs meanwhile. After that the activity
// is tried again, later.
const rewrites = 5

func (a *Activities) writeJobs(ctx context.Context, e expansion, stage bench.Stage) error {
	var wanted store.Expansion
	var err error
	switch stage {
	case bench.StageBuild:
		wanted, err = a.buildStage(ctx, e)
	case bench.StageParent:
		wanted, err = a.parentJobs(ctx, e)
	case bench.StageOwn:
		wanted, err = a.ownJobs(ctx, e)
	case bench.StageVerify:
		wanted, err = a.verifyJobs(ctx, e)
	default:
		return permanent(errors.New("there is no stage " + string(stage)))
	}
	if err != nil {
		return err
	}
	wanted.Queue = e.queue()
	if !e.request.Type.Tracked() {
		if err := a.Store.StartAdHoc(ctx, e.request.ID); err != nil {
			return err // also when it was cancelled meanwhile
		}
	}
	return a.Store.ExpandRequest(ctx, e.request.ID, wanted)
}

// expansion reads what is needed to turn a request into the jobs of a stage.
func (a *Activities) expansion(ctx context.Context, r bench.Request, stage bench.Stage) (expansion, error) {
	project, config, err := a.config(ctx, r.Project)
	if err != nil {
		return expansion{}, err
	}
	fleet, err := a.Store.Fleet(ctx, a.OfflineAfter)
	if err != nil {
		return expansion{}, err
	}
	e := expansion{request: r, project: project, config: config, fleet: fleet, series: map[bench.Target]map[bench.TestCase]bench.SizeClass{}}
	if r.Command != nil || r.Batch > 0 {
		return e, nil
	}
	if e.loaded, err = a.Suites.Suite(ctx, project.SuiteHash); err != nil {
		return e, found(err, "loading the suite of project "+project.Name)
	}
	e.best = func(shapes []bench.Shape) (map[bench.Shape]bench.SizeClass, error) {
		return a.Store.BestClasses(ctx, r.Project, shapes)
	}
	near, err := a.seriesSeenFrom(ctx, r, stage)
	if err != nil {
		return e, err
	}
	for _, c := range fleet {
		target := c.Pool.Target
		if _, known := e.series[target]; known {
			continue
		}
		if e.series[target], err = a.Store.SeriesClasses(ctx, r.Project, target, near); err != nil {
			return e, err
		}
	}
	return e, nil
}

// seriesSeenFrom is the tag next to whose results those of a stage belong, so that
// both compare: that of the parent or baseline; when it is verified what the request
// itself has measured, its own.
func (a *Activities) seriesSeenFrom(ctx context.Context, r bench.Request, stage bench.Stage) (string, error) {
	switch {
	case stage == bench.StageVerify:
		return r.Tag, nil
	case r.Versus != "":
		return r.Versus, nil
	case r.Type.HasParent():
		return r.Parent, nil
	}
	return a.baseline(ctx, r)
}

// ownJobs are the request's jobs without what is stored already.
func (a *Activities) ownJobs(ctx context.Context, e expansion) (store.Expansion, error) {
	jobs, err := e.jobs()
	if err != nil {
		return store.Expansion{}, err
	}
	out := store.Expansion{Stage: bench.StageOwn, Optional: e.optional()}
	if !e.request.Type.Tracked() { // a person asks for a measurement of one's own
		out.Jobs = jobs
		return out, nil
	}
	out.OnlyMissing = true
	out.Jobs, out.Shared, err = a.lacking(ctx, e, jobs, func(c store.Coverage, tc bench.TestCase) bool { return c.Stored[tc] })
	return out, err
}

// parentJobs are jobs of the parent's artifact for what it lacks of what the
// request measures, where the request measures it. What was tried and failed is
// not tried for each child again. The parent of a merged commit that nobody has
// asked for, such as one before the look-back, stays unmeasured.
func (a *Activities) parentJobs(ctx context.Context, e expansion) (store.Expansion, error) {
	out := store.Expansion{Stage: bench.StageParent, Optional: e.optional()}
	r := e.request
	if r.Parent == "" || (r.Type == bench.Master && r.WaitsFor != r.Parent) {
		return out, nil
	}
	base, err := a.baseJobs(ctx, e)
	if err != nil {
		return out, err
	}
	jobs := make([]bench.PlannedJob, 0, len(base))
	for _, j := range base {
		// Where the request's own jobs ran there may be nobody left who meets the
		// constraints.
		if _, err := e.narrowed(j.At().Pool); err != nil {
			return out, err
		}
		jobs = append(jobs, e.of(r.Parent, j))
	}
	out.OnlyMissing = true
	out.Jobs, out.Shared, err = a.lacking(ctx, e, jobs, func(c store.Coverage, tc bench.TestCase) bool {
		_, impossible := c.Impossible[tc]
		return c.Stored[tc] || impossible
	})
	return out, err
}

// baseJobs are the jobs after which those of the parent are made: as the request
// is expected to be measured and, once its own jobs are there, as it was. Where a
// part of a job has escalated, the parent is measured there as well.
func (a *Activities) baseJobs(ctx context.Context, e expansion) ([]bench.PlannedJob, error) {
	if e.request.ExpandedAt == nil {
		return e.jobs()
	}
	jobs, err := a.Store.StageJobs(ctx, e.request.ID, bench.StageOwn)
	if err != nil {
		return nil, err
	}
	parts, err := a.Store.MeasuredParts(ctx, e.request.ID, bench.StageOwn)
	if err != nil {
		return nil, err
	}
	var base []bench.PlannedJob
	for _, j := range jobs {
		for _, p := range parts {
			if p.Key == j.Key {
				part := withTestCases(j, p.TestCases)
				part.SizeClass, part.Pool, part.Shape = p.SizeClass, p.Pool, ""
				base = append(base, bench.PlannedJob{Job: part})
			}
		}
	}
	return base, nil
}

// lacking are the jobs without the test cases that are settled where the job
// runs, and the open jobs that others are part of.
func (a *Activities) lacking(ctx context.Context, e expansion, jobs []bench.PlannedJob, settled func(store.Coverage, bench.TestCase) bool) (rest []bench.PlannedJob, shared []bench.JobKey, err error) {
	covered := make(map[store.Place]store.Coverage)
	for _, j := range jobs {
		place := store.Place{Pool: bench.Pool{Target: j.Target, SizeClass: j.SizeClass, Name: j.Pool}, SuiteHash: j.SuiteHash}
		c, known := covered[place]
		if !known {
			if c, err = a.Store.CoverageOf(ctx, j.Project, j.Tag, place); err != nil {
				return nil, nil, err
			}
			covered[place] = c
		}
		var missing []bench.TestCase
		for _, tc := range j.TestCases {
			running, open := c.Running[tc]
			switch {
			case settled(c, tc):
			case open:
				shared = append(shared, running)
			default:
				missing = append(missing, tc)
			}
		}
		if len(missing) == 0 {
			continue
		}
		next := e.job(place.Pool, withTestCases(j.Job, missing))
		// A job never runs twice: where the same one was cancelled, or has lost
		// its results since, it is one of the next generation.
		if next.Generation, err = a.Store.GenerationFor(ctx, e.request.ID, next.Job); err != nil {
			return nil, nil, err
		}
		rest = append(rest, e.job(place.Pool, next.Job))
	}
	slices.Sort(shared)
	return rest, slices.Compact(shared), nil
}

func withTestCases(j bench.Job, cases []bench.TestCase) bench.Job {
	j.TestCases = cases
	return j
}
