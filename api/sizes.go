package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/explain"
	"github.com/benchloom/benchloom/internal/sizeclass"
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
	records, err := s.Store.SizeRecords(ctx, in.Project, shownShapes)
	if err != nil {
		return nil, err
	}
	collectors, err := s.Store.Collectors(ctx)
	if err != nil {
		return nil, err
	}
	out := apiclient.ShapeList{Shapes: []apiclient.Shape{}}
	for _, r := range records {
		e := s.shape(r, collectors)
		next := e.Next.Why
		if e.Next.Class > 0 {
			next = fmt.Sprintf("class %d", e.Next.Class)
		}
		out.Shapes = append(out.Shapes, apiclient.Shape{
			Project: r.Project, Shape: r.Shape, About: e.About, Runs: e.Runs, Next: next, UpdatedAt: r.UpdatedAt,
		})
	}
	return answer(out, nil)
}

type getShape struct {
	Shape   string `path:"shape" doc:"The shape, or the key of one of its jobs."`
	Project string `query:"project" doc:"Which one is meant, where several projects have the shape."`
}

func (s *server) getShape(ctx context.Context, in *getShape) (*body[explain.ShapeExplanation], error) {
	records, err := s.Store.SizeRecordsOf(ctx, in.Shape)
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
	collectors, err := s.Store.Collectors(ctx)
	if err != nil {
		return nil, err
	}
	return answer(s.shape(records[max(0, at)], collectors), nil)
}

// shapeOfJob are the statistics of a job's shape.
func (s *server) shapeOfJob(ctx context.Context, ref string) ([]store.SizeRecord, error) {
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
	records, err := s.Store.SizeRecordsOf(ctx, j.Shape)
	records = slices.DeleteFunc(records, func(r store.SizeRecord) bool { return r.Project != j.Project })
	if err == nil && len(records) == 0 {
		return nil, problemf(http.StatusNotFound, "unknown-shape", "nothing is known yet of shape %s, that of job %s: none of its runs has ended", j.Shape, key)
	}
	return records, err
}

// readStatistics reads them; nothing is known while a first selection is under way.
func readStatistics(r store.SizeRecord) (sizeclass.Statistics, error) {
	if string(r.Statistics) == "null" {
		return sizeclass.Statistics{}, nil
	}
	return sizeclass.Read(r.Statistics)
}

// shape puts statistics into words.
func (s *server) shape(r store.SizeRecord, collectors []store.Collector) explain.ShapeExplanation {
	known, unread := readStatistics(r)
	about := readAbout(r.About)
	e := explain.Shape(known, s.wouldSelect(known, classesOf(collectors, about.Target)))
	e.Project, e.Shape, e.About, e.UpdatedAt = r.Project, r.Shape, about.String(), r.UpdatedAt
	if unread != nil {
		e.Unread = unread.Error()
	}
	return e
}

// about is what a shape is, as it is stored with its statistics: the command line,
// or test cases in words.
type about struct {
	Target    bench.Target `json:"target"`
	Command   []string     `json:"command"`
	TestCases []string     `json:"test_cases"`
	// Of is how many test cases there are; not all are named.
	Of int `json:"of"`
}

// readAbout reads it; what cannot be read says nothing.
func readAbout(text []byte) about {
	var a about
	if err := json.Unmarshal(text, &a); err != nil {
		return about{}
	}
	return a
}

func (a about) String() string {
	words := strings.Join(a.Command, " ")
	switch {
	case len(a.TestCases) > 1:
		words = fmt.Sprintf("%d test cases, the first of them %s", max(a.Of, len(a.TestCases)), a.TestCases[0])
	case len(a.TestCases) == 1:
		words = a.TestCases[0]
	}
	if a.Target != "" && words != "" {
		words += " on " + string(a.Target)
	}
	return words
}

// classesOf are the size classes of the collectors of a target, ascending.
func classesOf(collectors []store.Collector, target bench.Target) []bench.SizeClass {
	var classes []bench.SizeClass
	for _, c := range collectors {
		if c.Target == target || target == "" {
			classes = append(classes, c.SizeClass)
		}
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// wouldSelect is what would be selected now; nil where no class is to be had.
func (s *server) wouldSelect(known sizeclass.Statistics, classes []bench.SizeClass) *sizeclass.Selection {
	policy := sizeclass.Defaults()
	analyzer, err := sizeclass.New(policy)
	if err != nil {
		return nil
	}
	selection, err := analyzer.Explain(known, sizeclass.Question{Classes: classes, Original: time.Duration(policy.DefaultTimeout), Now: s.Now()})
	if err != nil {
		return nil
	}
	return &selection
}
