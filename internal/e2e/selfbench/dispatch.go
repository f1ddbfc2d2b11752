package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/suite"
)

// Start and end points of the figures.
const (
	fromPost   = "post"     // before the client's call, by its clock
	fromJob    = "job"      // event WorkflowExecutionStarted of the Job workflow
	toActivity = "activity" // event ActivityTaskStarted of RunJob
	toCommand  = "command"  // the collector's clock right before it starts the command
)

// kind names the two ways to the start of a job's workflow.
type kind string

const (
	ofCommand kind = "command" // the hand-out starts the job's workflow
	ofSuite   kind = "suite"   // the request's workflow starts it as its child
)

func kinds() []kind { return []kind{ofCommand, ofSuite} }

func dispatchName(of kind, from, to string) string {
	return "Dispatch/of=" + string(of) + "/from=" + from + "/to=" + to
}

// pathProject tracks the suite of the submissions of kind suite.
const pathProject = "path"

// pathSuite has one test case, which runs the command true. All tags name one artifact.
const pathSuite = `name: path
description: one test case that runs the command true
artifact: {provider: directory, parameters: {path: "%s"}}
iterations: 1
benchmarks:
  - {name: "true", measure: {run: ["true"]}}
`

// preparePath applies the project of the submissions of kind suite, below dir.
func preparePath(ctx context.Context, api *apiclient.Client, dir string) error {
	suiteDir, artifact := filepath.Join(dir, "suite"), filepath.Join(dir, "artifact")
	for _, d := range []string{suiteDir, artifact} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("making the suite: %w", err)
		}
	}
	for path, text := range map[string]string{
		filepath.Join(suiteDir, suite.FileName): fmt.Sprintf(pathSuite, artifact),
		filepath.Join(artifact, "README"):       "an artifact may not be empty\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("making the suite: %w", err)
		}
	}
	return applySuite(ctx, api, suiteDir, apiclient.Project{Name: pathProject})
}

// applySuite uploads a suite and applies projects that use it.
func applySuite(ctx context.Context, api *apiclient.Client, suiteDir string, projects ...apiclient.Project) error {
	bundle, err := suite.Pack(suiteDir)
	if err != nil {
		return fmt.Errorf("packing the suite: %w", err)
	}
	if _, err := api.PutSuite(ctx, bundle.Hash, bundle.Archive); err != nil {
		return fmt.Errorf("uploading the suite: %w", err)
	}
	for _, p := range projects {
		p.SuiteHash = bundle.Hash
		if _, err := api.ApplyProject(ctx, p, false); err != nil {
			return fmt.Errorf("applying project %s: %w", p.Name, err)
		}
	}
	return nil
}

// blocks is the number of blocks in which submissions and bare workflows alternate, so
// that both see the same machine.
const blocks = 10

// workflowSoon is the interval between two looks for a workflow that does not run yet.
const workflowSoon = 5 * time.Millisecond

// submissionBound bounds the duration of a submission.
const submissionBound = time.Minute

// measureDispatch submits jobs that run true, one after the other: commands, then as
// many of a suite, then as many bare Temporal workflows, block by block.
func measureDispatch(ctx context.Context, s *livestack.Stack, submissions int, report *report) error {
	temporal, err := s.Temporal(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the stack's Temporal: %w", err)
	}
	defer temporal.Close()
	bare, err := startBare(temporal)
	if err != nil {
		return err
	}
	defer bare.stop()
	dir, err := os.MkdirTemp("", "path")
	if err != nil {
		return fmt.Errorf("making the suite: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := preparePath(ctx, s.API, dir); err != nil {
		return err
	}
	timelines := make(map[kind][]timeline)
	var bares []bareTimes
	for block := range blocks {
		from, to := submissions*block/blocks, submissions*(block+1)/blocks
		submitted := make(map[kind][]submission)
		for _, of := range kinds() {
			for n := from; n < to; n++ {
				one, err := submit(ctx, s.API, temporal, newRequest(of, n))
				if err != nil {
					return err
				}
				submitted[of] = append(submitted[of], one)
			}
		}
		ids := make([]string, 0, to-from)
		posted := make([]time.Time, 0, to-from)
		for n := from; n < to; n++ {
			posted = append(posted, time.Now())
			id, err := bare.run(ctx, n)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		// Reading histories loads the server, so it happens after the block.
		for _, of := range kinds() {
			for _, one := range submitted[of] {
				t, err := readTimeline(ctx, s.API, temporal, one)
				if err != nil {
					return err
				}
				timelines[of] = append(timelines[of], t)
			}
		}
		for i, id := range ids {
			t, err := bare.times(ctx, id)
			if err != nil {
				return err
			}
			t.posted = posted[i]
			bares = append(bares, t)
		}
	}
	for of, project := range map[kind]string{ofCommand: apiclient.AdHocProject, ofSuite: pathProject} {
		if err := readStarts(ctx, s.API, project, timelines[of]); err != nil {
			return err
		}
	}
	for _, of := range kinds() {
		if err := reportDispatch(of, timelines[of], report); err != nil {
			return err
		}
	}
	return reportBare(bares, report)
}

// newRequest returns the nth request of a kind.
func newRequest(of kind, n int) apiclient.NewRequest {
	if of == ofSuite {
		return apiclient.NewRequest{Project: pathProject, Type: bench.AdHoc, Tag: fmt.Sprint("t", n)}
	}
	return apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}}
}

// submission is the submission of one job, with times by the client's clock.
type submission struct {
	request          bench.RequestID
	tag              string // of its artifact; empty: a command
	posted, answered time.Time
}

// submit submits one job and waits until its request's workflow has closed, by a long
// poll that costs the stack next to nothing.
func submit(ctx context.Context, api *apiclient.Client, temporal client.Client, asked apiclient.NewRequest) (submission, error) {
	ctx, cancel := context.WithTimeout(ctx, submissionBound)
	defer cancel()
	s := submission{tag: asked.Tag, posted: time.Now()}
	request, err := api.CreateRequest(ctx, asked)
	s.answered = time.Now()
	if err != nil {
		return s, fmt.Errorf("submitting a job: %w", err)
	}
	s.request = request.ID
	for {
		err := temporal.GetWorkflow(ctx, request.WorkflowID, "").Get(ctx, nil)
		var notYet *serviceerror.NotFound
		if errors.As(err, &notYet) { // the hand-out starts it shortly after the answer
			err = sleep(ctx, workflowSoon)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return s, fmt.Errorf("waiting for request %s: %w", request.ID, err)
		}
		return s, nil
	}
}

// readStarts completes timelines of a project with the starts of their commands: the
// time of a collection is the collector's, taken right before the command starts. The
// results of an ad-hoc command have its job's key as their tag.
func readStarts(ctx context.Context, api *apiclient.Client, project string, timelines []timeline) error {
	var text bytes.Buffer
	if err := api.Export(ctx, &text, project, "json"); err != nil {
		return fmt.Errorf("reading the starts of commands: %w", err)
	}
	var collections []apiclient.ExportedCollection
	if err := json.Unmarshal(text.Bytes(), &collections); err != nil {
		return fmt.Errorf("reading the starts of commands: %w", err)
	}
	starts := make(map[string]time.Time, len(collections))
	for _, c := range collections {
		starts[c.Tag] = c.CollectedAt
	}
	for i, t := range timelines {
		start, known := starts[cmp.Or(t.tag, string(t.job))]
		if !known {
			return fmt.Errorf("job %s has no collection in the record", t.job)
		}
		timelines[i].command = start
	}
	return nil
}

// reportDispatch reports the total times, then the steps.
func reportDispatch(of kind, timelines []timeline, report *report) error {
	ends := []struct {
		from, to string
		took     func(timeline) time.Duration
	}{
		{fromPost, toCommand, func(t timeline) time.Duration { return t.command.Sub(t.posted) }},
		{fromJob, toCommand, func(t timeline) time.Duration { return t.command.Sub(t.jobStarted) }},
		{fromPost, toActivity, func(t timeline) time.Duration { return t.activityStarted.Sub(t.posted) }},
		{fromJob, toActivity, func(t timeline) time.Duration { return t.activityStarted.Sub(t.jobStarted) }},
		{fromPost, "answer", func(t timeline) time.Duration { return t.answered.Sub(t.posted) }},
		{toCommand, "completed", func(t timeline) time.Duration { return t.completed.Sub(t.command) }},
	}
	for _, e := range ends {
		durations := make([]time.Duration, len(timelines))
		for i, t := range timelines {
			durations[i] = e.took(t)
		}
		if err := report.addDurations(dispatchName(of, e.from, e.to), durations); err != nil {
			return err
		}
	}
	names, durations := stepDurations(timelines)
	for _, name := range names {
		if err := report.addDurations("Step/of="+string(of)+"/to="+name, durations[name]); err != nil {
			return err
		}
	}
	return nil
}
