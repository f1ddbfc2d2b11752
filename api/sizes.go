package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

func (s *server) registerSizes() {
	handle(s, operation{id: "list-shapes", method: http.MethodGet, path: "/sizeclasses", need: toRead, tag: "jobs",
		summary: "Shapes of jobs of whose size something is known", description: "At most 500, what was learned of last first."}, s.listShapes)
	handle(s, operation{id: "get-shape", method: http.MethodGet, path: "/sizeclasses/{shape}", need: toRead, tag: "jobs",
		summary:     "What is known of how large a machine the jobs of a shape need",
		description: "Per class the samples, acceptable time, timeout and probability; named by the shape or by the key of one of its jobs."}, s.getShape)
}

// shownShapes bounds a list.
const shownShapes = 500

type listShapes struct {
	Project string `query:"project" doc:"Only those of this project."`
}

func (s *server) listShapes(ctx context.Context, in *listShapes) (*body[apiclient.ShapeList], error) {
	records, err := s.Store.AllSizeStatistics(ctx, in.Project, shownShapes)
	if err != nil {
		return nil, err
	}
	fleet, err := s.Store.Fleet(ctx, s.OfflineAfter)
	if err != nil {
		return nil, err
	}
	out := apiclient.ShapeList{Shapes: []apiclient.Shape{}}
	for _, r := range records {
		e, err := s.shape(ctx, r, fleet)
		if err != nil {
			return nil, err
		}
		next := e.Next.Why
		if e.Next.Class > 0 {
			next = fmt.Sprintf("class %d", e.Next.Class)
		}
		out.Shapes = append(out.Shapes, apiclient.Shape{
			Project: r.Project, Shape: string(r.Shape), About: e.About, Runs: e.Runs, Next: next, UpdatedAt: r.UpdatedAt,
		})
	}
	return answer(out, nil)
}

type getShape struct {
	Shape   string `path:"shape" doc:"The shape, or the key of one of its jobs."`
	Project string `query:"project" doc:"Which one is meant, where several projects have the shape."`
}

func (s *server) getShape(ctx context.Context, in *getShape) (*body[diagnose.ShapeExplanation], error) {
	records, err := s.Store.SizeStatisticsOf(ctx, bench.Shape(in.Shape))
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		if records, err = s.shapeOfJob(ctx, in.Shape); err != nil {
			return nil, err
		}
	}
	var projects []string
	for _, r := range records {
		projects = append(projects, r.Project)
	}
	at := slices.Index(projects, in.Project)
	switch {
	case at < 0 && in.Project != "":
		return nil, problemf(http.StatusNotFound, "unknown-shape", "project %s knows nothing of shape %s; %v does", in.Project, in.Shape, projects)
	case at < 0 && len(records) > 1:
		return nil, invalid("projects %v have shape %s: say which one is meant", projects, in.Shape)
	}
	fleet, err := s.Store.Fleet(ctx, s.OfflineAfter)
	if err != nil {
		return nil, err
	}
	e, err := s.shape(ctx, records[max(0, at)], fleet)
	return answer(e, err)
}

// shapeOfJob are the statistics of a job's shape.
func (s *server) shapeOfJob(ctx context.Context, ref string) ([]store.SizeStatistics, error) {
	unknown := problemf(http.StatusNotFound, "unknown-shape", "nothing is known of shape %s, and there is no job of that key; 'benchloom sizeclass list' lists the shapes", ref)
	key, err := bench.ParseJobKey(ref)
	if err != nil {
		return nil, unknown
	}
	j, err := s.Store.Job(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, unknown
	case err != nil:
		return nil, err
	case j.Shape == "":
		return nil, problemf(http.StatusNotFound, "unknown-shape", "the size class of job %s is not learned: it is fixed; 'benchloom explain %s' says why", key, key)
	}
	records, err := s.Store.SizeStatisticsOf(ctx, bench.Shape(j.Shape))
	records = slices.DeleteFunc(records, func(r store.SizeStatistics) bool { return r.Project != j.Project })
	if err == nil && len(records) == 0 {
		return nil, problemf(http.StatusNotFound, "unknown-shape", "nothing is known yet of shape %s, that of job %s: none of its runs has ended", j.Shape, key)
	}
	return records, err
}

// shape puts statistics into words. What the next job would do is asked for the last
// one that is remembered: others of the shape need the same.
func (s *server) shape(ctx context.Context, r store.SizeStatistics, fleet plan.Fleet) (diagnose.ShapeExplanation, error) {
	known, unread := sizing.ReadStatistics(r.Statistics)
	about := readAbout(r.About)
	job, err := s.lastOf(ctx, r, known)
	if err != nil {
		return diagnose.ShapeExplanation{}, err
	}
	if job.Target == "" {
		job.Target = about.Target
	}
	if job.Command == nil && len(about.Command) > 0 { // it is known by its words only
		job.Command = &bench.Command{Argv: about.Command}
	}
	var next *sizeclass.Selection
	if now, err := sizing.Explain(fleet, job, known, s.Now()); err == nil {
		next = &now.Selection
	}
	e := diagnose.Shape(known, next)
	e.Project, e.Shape, e.About, e.UpdatedAt = r.Project, string(r.Shape), about.String(), r.UpdatedAt
	if unread != nil {
		e.Unread = unread.Error()
	}
	return e, nil
}

// lastOf is the last job of a shape that is remembered, or what is known of any.
func (s *server) lastOf(ctx context.Context, r store.SizeStatistics, known sizeclass.Statistics) (store.Sizing, error) {
	var last sizeclass.Sample
	for _, h := range known.Classes {
		for _, sample := range h.Samples {
			if sample.Job != "" && !sample.At.Before(last.At) {
				last = sample
			}
		}
	}
	if last.Job != "" {
		job, err := s.Store.SizingOf(ctx, bench.JobKey(last.Job))
		if !errors.Is(err, store.ErrNotFound) {
			return job, err
		}
	}
	if job, err := s.Store.LastOfShape(ctx, r.Project, r.Shape); !errors.Is(err, store.ErrNotFound) {
		return job, err
	}
	p, err := s.Store.Project(ctx, r.Project)
	return store.Sizing{Project: r.Project, Config: p.Config}, err
}

// about is what a shape is, as it is stored with its statistics: the command line,
// or test cases in words.
type about struct {
	Target    bench.Target `json:"target"`
	Command   []string     `json:"command"`
	TestCases []string     `json:"test_cases"`
	// Of is how many test cases there are; not all are named.
	Of int `json:"of"`
	// InTurns: they are measured for two artifacts in turns.
	InTurns bool `json:"in_turns"`
}

// readAbout reads it; what cannot be read says nothing.
func readAbout(text []byte) about {
	var a about
	if err := json.Unmarshal(text, &a); err != nil {
		return about{}
	}
	return a
}

// shownAbout bounds the words for a shape, in characters: a command may be long.
const shownAbout = 80

func (a about) String() string {
	words := strings.Join(a.Command, " ")
	if runes := []rune(words); len(runes) > shownAbout {
		words = string(runes[:shownAbout]) + "…"
	}
	switch {
	case len(a.TestCases) > 1:
		words = fmt.Sprintf("%d test cases, the first of them %s", max(a.Of, len(a.TestCases)), a.TestCases[0])
	case len(a.TestCases) == 1:
		words = a.TestCases[0]
	}
	if a.InTurns {
		words += ", of two artifacts in turns"
	}
	if a.Target != "" && words != "" {
		words += " on " + string(a.Target)
	}
	return words
}
