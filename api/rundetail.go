package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

// RunDetailRecord reads what a run has left. RunAside returns store.ErrNotFound for an
// unknown run.
type RunDetailRecord interface {
	RunAside(ctx context.Context, id bench.RunID) (store.RunAside, error)
	RunErrors(ctx context.Context, id bench.RunID, limit int) ([]bench.RunError, error)
	RunResults(ctx context.Context, id bench.RunID, after int64, limit int) ([]store.RunResult, error)
}

// shownRunErrors bounds the failures of a run in one answer.
const shownRunErrors = 100

func (s *jobHandlers) registerRuns() {
	handle(s.base, operation{id: "get-run", method: http.MethodGet, path: "/runs/{run}", need: toRead, tag: "jobs",
		summary: "Show a run with the facts of its machine and its failures"}, s.getRun)
	handle(s.base, operation{id: "list-run-results", method: http.MethodGet, path: "/runs/{run}/results", need: toRead, tag: "jobs", slots: outputSlots,
		summary: "List what a run has measured"}, s.listRunResults)
}

type runPath struct {
	Run string `path:"run" doc:"ID of the run."`
}

func (s *jobHandlers) getRun(ctx context.Context, in *runPath) (*body[apiclient.RunDetail], error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	stored, err := s.record.Run(ctx, id)
	if err != nil {
		return nil, unknownRun(id, err)
	}
	run, err := runOf(stored)
	if err != nil {
		return nil, err
	}
	j, err := s.record.Job(ctx, stored.Job)
	if err != nil {
		return nil, unknownRun(id, err)
	}
	aside, err := s.record.RunAside(ctx, id)
	if err != nil {
		return nil, unknownRun(id, err)
	}
	out := apiclient.RunDetail{
		Run: run, Project: j.Project, Tag: j.Tag, Kind: j.Kind, Target: j.Target, Status: j.Status,
		Version: stored.Version, HardwareID: stored.HardwareID, Segment: aside.Segment, Facts: factsOf(stored.Facts),
		LogBytes: stored.LogSize, OutputRemovedAt: aside.OutputRemovedAt, Results: aside.Results, Errors: []apiclient.RunError{},
	}
	failures, err := s.record.RunErrors(ctx, id, shownRunErrors)
	for _, e := range failures {
		out.Errors = append(out.Errors, runErrorOf(e))
	}
	return answer(out, err)
}

type listRunResults struct {
	Run   string `path:"run" doc:"ID of the run."`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
	After string `query:"after" doc:"The value of next from the page before."`
}

func (s *jobHandlers) listRunResults(ctx context.Context, in *listRunResults) (*body[apiclient.RunResultList], error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	var after int64
	if in.After != "" {
		if after, err = strconv.ParseInt(in.After, 10, 64); err != nil || after < 0 {
			return nil, invalid("after is %.40q; give what the page before named as next, or nothing for the first page", in.After)
		}
	}
	if _, err := s.record.Run(ctx, id); err != nil {
		return nil, unknownRun(id, err)
	}
	stored, err := s.record.RunResults(ctx, id, after, in.Limit)
	if err != nil {
		return nil, err
	}
	out := apiclient.RunResultList{Results: make([]apiclient.RunResult, len(stored))}
	for i, r := range stored {
		values := make([]apiclient.MetricValues, len(r.Values))
		for k, v := range r.Values {
			values[k] = apiclient.MetricValues{Metric: v.Metric, Unit: results.Unit(v.Metric), Count: v.Count, Median: v.Median, Least: v.Least, Most: v.Most, Values: v.Values}
		}
		out.Results[i] = apiclient.RunResult{
			TestCase: r.TestCase, Tag: r.Tag, Skipped: r.Skipped, Invalid: r.Invalid, Probe: r.Probe,
			Disturbed: r.Disturbed, DisturbedBy: r.DisturbedBy, TooDisturbed: r.TooDisturbed, Values: values,
		}
	}
	if len(stored) == in.Limit {
		out.Next = strconv.FormatInt(stored[len(stored)-1].ID, 10)
	}
	return answer(out, nil)
}
