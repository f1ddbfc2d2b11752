package api

import (
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// course holds the facts behind a request's steps.
type course struct {
	request bench.Request
	stages  []store.StageTimes
	// compared is nil if nothing was compared with the baseline yet.
	compared *apiclient.Verification
}

// steps tells the course of a request: what is over, what is under way, and what may follow.
func (c course) steps() []apiclient.Step {
	r := c.request
	steps := []apiclient.Step{
		c.artifacts(), c.parent(), c.turn(),
		c.jobs(apiclient.StepBuild, bench.StageBuild, "builds artifacts from their revision", "nothing has to be built"),
		c.jobs(apiclient.StepBackfill, bench.StageParent, "measures what the parent lacks", "the parent lacks nothing, or there is none"),
		c.jobs(apiclient.StepOwn, bench.StageOwn, "measures the artifact itself", "nothing has to be measured"),
		c.jobs(apiclient.StepVerify, bench.StageVerify, "measures suspicions again, in turns with the baseline", "nothing was suspected, or it is not verified"),
		c.compare(),
	}
	if r.OfCommands() {
		steps[5].Words = "runs its commands"
		for i := 6; i < len(steps); i++ {
			steps[i].State, steps[i].Words = apiclient.StepSkipped, "commands are not compared"
		}
	}
	if r.Template != nil {
		steps[5].Words = "runs the nodes of its graph"
		for i := 6; i < len(steps); i++ {
			steps[i].State, steps[i].Words = apiclient.StepSkipped, "nodes of the graph compare"
		}
	}
	if r.Status == bench.Completed {
		for i := range steps { // what has not begun never will
			if steps[i].State == apiclient.StepPlanned || steps[i].State == apiclient.StepWaiting {
				steps[i].State = apiclient.StepSkipped
				if r.Outcome != bench.Success {
					steps[i].Words = "the request ended before: " + string(r.Outcome)
				}
			}
		}
	}
	return steps
}

func (c course) artifacts() apiclient.Step {
	r := c.request
	step := apiclient.Step{Name: apiclient.StepArtifacts, State: apiclient.StepDone, Words: "its artifacts are ready"}
	switch {
	case r.Status == bench.WaitingForArtifacts:
		step.State, step.Since, step.Words = apiclient.StepWaiting, &r.CreatedAt, "waits for a notification that its artifacts are ready"
	case r.OfCommands():
		step.State, step.Words = apiclient.StepSkipped, "commands need none"
	case r.Template != nil:
		step.State, step.Words = apiclient.StepSkipped, "nodes of the graph build theirs"
	}
	return step
}

func (c course) parent() apiclient.Step {
	r := c.request
	step := apiclient.Step{Name: apiclient.StepParent, State: apiclient.StepSkipped, Words: "there is no parent to wait for"}
	switch {
	case r.WaitsFor == "" && r.ParentNote != "":
		step.Words = r.ParentNote
	case r.WaitsFor == "":
	case r.AdmittedAt != nil || r.Status == bench.InProgress || r.Status == bench.Completed:
		step.State, step.Words = apiclient.StepDone, "the jobs of "+r.WaitsFor+" are done"
	case r.Status == bench.ArtifactsReady:
		step.State, step.Words = apiclient.StepWaiting, "waits for the jobs of "+r.WaitsFor
	default:
		step.State, step.Words = apiclient.StepPlanned, "waits for the jobs of "+r.WaitsFor
	}
	return step
}

func (c course) turn() apiclient.Step {
	r := c.request
	step := apiclient.Step{Name: apiclient.StepTurn, State: apiclient.StepPlanned, Words: "its project admits one request after the other"}
	switch {
	case !r.Type.Tracked():
		step.State, step.Words = apiclient.StepSkipped, "ad-hoc work needs no admission"
	case r.AdmittedAt != nil:
		step.State, step.Words, step.Until = apiclient.StepDone, "it was admitted", r.AdmittedAt
	case r.Status == bench.ArtifactsReady:
		step.State, step.Words = apiclient.StepWaiting, "waits for its turn"
		if r.Message != "" {
			step.Words += ": " + r.Message
		}
		since := r.WaitsSince()
		step.Since = &since
	}
	return step
}

// jobs is the step of a stage. Stages follow each other, so one without jobs is skipped as
// soon as a later one has some.
func (c course) jobs(name apiclient.StepName, stage bench.Stage, words, none string) apiclient.Step {
	step := apiclient.Step{Name: name, State: apiclient.StepPlanned, Words: words}
	at := slices.IndexFunc(c.stages, func(t store.StageTimes) bool { return t.Stage == stage })
	if at < 0 {
		if c.request.JobsDoneAt != nil && stage != bench.StageVerify || c.decided() || c.past(stage) {
			step.State, step.Words = apiclient.StepSkipped, none
		}
		return step
	}
	t := c.stages[at]
	step.Jobs, step.JobsDone, step.JobsFailed, step.Since = t.Jobs, t.Jobs-t.Open, t.Failed, t.StartedAt
	switch {
	case t.Open > 0 && t.StartedAt == nil:
		step.State = apiclient.StepWaiting
		step.Words = fmt.Sprintf("%s: %s to begin", words, count(t.Open, "job"))
	case t.Open > 0:
		step.State = apiclient.StepRunning
	case t.Failed > 0:
		step.State, step.Until = apiclient.StepFailed, t.EndedAt
		step.Words = fmt.Sprintf("%s: %d of %s failed", words, t.Failed, count(t.Jobs, "job"))
	default:
		step.State, step.Until = apiclient.StepDone, t.EndedAt
	}
	return step
}

var stageOrder = []bench.Stage{bench.StageBuild, bench.StageParent, bench.StageOwn, bench.StageVerify}

// past reports whether a later stage than the given one has jobs.
func (c course) past(stage bench.Stage) bool {
	return slices.ContainsFunc(c.stages, func(t store.StageTimes) bool {
		return slices.Index(stageOrder, t.Stage) > slices.Index(stageOrder, stage)
	})
}

// decided reports whether nothing is left to be verified.
func (c course) decided() bool {
	return c.request.Status == bench.Completed || c.compared != nil && !c.compared.Provisional
}

func (c course) compare() apiclient.Step {
	r := c.request
	step := apiclient.Step{Name: apiclient.StepCompare, State: apiclient.StepPlanned, Words: "compares it with its baseline"}
	switch {
	case r.Status == bench.Completed && r.Baseline == "":
		step.State, step.Words = apiclient.StepSkipped, "there is nothing to compare it with"
		if r.ParentNote != "" {
			step.Words += ": " + r.ParentNote
		}
	case r.Status == bench.Completed:
		step.State, step.Words, step.Since, step.Until = apiclient.StepDone, "compared with "+r.Baseline, r.JobsDoneAt, r.CompletedAt
	case r.JobsDoneAt != nil:
		step.State, step.Since = apiclient.StepRunning, r.JobsDoneAt
		if c.compared != nil {
			step.Words = "compares it with " + c.compared.Baseline
		}
	}
	return step
}
