package api

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// The course of requests, one letter a step: planned, waiting, running, done, failed or
// skipped; in the order artifacts, parent, turn, build, backfill, own, verify, compare.
func TestSteps(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	request := func(kind bench.RequestType, status bench.RequestStatus, change ...func(*bench.Request)) bench.Request {
		r := bench.Request{Type: kind, Tag: "t", Standing: bench.Standing{Status: status}, Timeline: bench.Timeline{CreatedAt: at}}
		for _, f := range change {
			f(&r)
		}
		return r
	}
	child := func(r *bench.Request) { r.WaitsFor = "p" }
	admitted := func(r *bench.Request) { r.AdmittedAt = &at }
	jobsDone := func(r *bench.Request) { r.JobsDoneAt = &at }
	ended := func(o bench.Outcome, baseline string) func(*bench.Request) {
		return func(r *bench.Request) { r.Outcome, r.Baseline, r.CompletedAt, r.JobsDoneAt = o, baseline, &at, &at }
	}
	command := func(r *bench.Request) { r.Command = &bench.Command{Argv: []string{"true"}} }
	stage := func(s bench.Stage, jobs, open, failed int, began bool) store.StageTimes {
		out := store.StageTimes{Stage: s, Jobs: jobs, Open: open, Failed: failed, WrittenAt: at}
		if began {
			out.StartedAt = &at
		}
		if open == 0 {
			out.EndedAt = &at
		}
		return out
	}
	for name, c := range map[string]struct {
		course course
		want   string
	}{
		"a try build waits for its artifacts": {course{request: request(bench.Try, bench.WaitingForArtifacts, child)}, "wppppppp"},
		"it waits for its parent":             {course{request: request(bench.Try, bench.ArtifactsReady, child)}, "dwwppppp"},
		"a release waits for its turn":        {course{request: request(bench.Release, bench.ArtifactsReady)}, "dswppppp"},
		"it is admitted":                      {course{request: request(bench.Release, bench.InProgress, admitted)}, "dsdppppp"},
		"its parent is measured":              {course{request(bench.Master, bench.InProgress, child, admitted), []store.StageTimes{stage(bench.StageParent, 2, 1, 0, true)}, nil}, "dddsrppp"},
		"its own jobs wait":                   {course{request(bench.Master, bench.InProgress, child, admitted), []store.StageTimes{stage(bench.StageParent, 2, 0, 0, true), stage(bench.StageOwn, 2, 2, 0, false)}, nil}, "dddsdwpp"},
		"one of its jobs has failed":          {course{request(bench.Release, bench.InProgress, admitted, jobsDone), []store.StageTimes{stage(bench.StageOwn, 2, 0, 1, true)}, nil}, "dsdssfpr"},
		"suspicions are measured":             {course{request(bench.Release, bench.InProgress, admitted, jobsDone), []store.StageTimes{stage(bench.StageOwn, 2, 0, 0, true), stage(bench.StageVerify, 1, 1, 0, true)}, &apiclient.Verification{Provisional: true}}, "dsdssdrr"},
		"it was compared":                     {course{request(bench.Release, bench.Completed, admitted, ended(bench.Success, "1.25.0")), []store.StageTimes{stage(bench.StageOwn, 2, 0, 0, true)}, nil}, "dsdssdsd"},
		"the first release":                   {course{request(bench.Release, bench.Completed, admitted, ended(bench.Success, "")), []store.StageTimes{stage(bench.StageOwn, 2, 0, 0, true)}, nil}, "dsdssdss"},
		"it was cancelled before its turn":    {course{request: request(bench.Release, bench.Completed, ended(bench.Cancelled, ""))}, "dsssssss"},
		"a command runs":                      {course{request(bench.AdHoc, bench.InProgress, command), []store.StageTimes{stage(bench.StageOwn, 1, 1, 0, true)}, nil}, "sssssrss"},
	} {
		var got strings.Builder
		for _, s := range c.course.steps() {
			letter := string(s.State)[:1]
			if s.State == apiclient.StepRunning {
				letter = "r"
			}
			got.WriteString(letter)
			require.NotEmpty(t, s.Words, "%s: %s", name, s.Name)
			if s.Since != nil && s.Until != nil {
				require.False(t, s.Until.Before(*s.Since))
			}
		}
		require.Equal(t, c.want, got.String(), name)
	}
}
