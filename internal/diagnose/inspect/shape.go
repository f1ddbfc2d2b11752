package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

// ShapeError reports a shape, or a job, whose size class has no history to explain.
type ShapeError struct{ reason string }

// Error says why, and what to do.
func (e *ShapeError) Error() string { return e.reason }

func shapeErrorf(format string, args ...any) error {
	return &ShapeError{reason: fmt.Sprintf(format, args...)}
}

// shownShapes bounds a list.
const shownShapes = 500

// Shapes explains the shapes of a project, or of all when it is empty: at most 500, the
// latest learned first.
func (i *Inspector) Shapes(ctx context.Context, project string) ([]diagnose.ShapeExplanation, error) {
	records, err := i.Record.AllSizeStatistics(ctx, project, shownShapes)
	if err != nil {
		return nil, err
	}
	fleet, err := i.fleet(ctx)
	if err != nil {
		return nil, err
	}
	shapes := make([]diagnose.ShapeExplanation, len(records))
	for n, r := range records {
		if shapes[n], err = i.shape(ctx, r, fleet); err != nil {
			return nil, err
		}
	}
	return shapes, nil
}

// Shape explains a shape, named by itself or by the key of one of its jobs. project
// decides when several projects have it. The error is a *ShapeError when nothing is known
// of the shape, and bench.ErrInvalid when the project must be named.
func (i *Inspector) Shape(ctx context.Context, ref, project string) (diagnose.ShapeExplanation, error) {
	var none diagnose.ShapeExplanation
	records, err := i.Record.SizeStatisticsOf(ctx, bench.Shape(ref))
	if err != nil {
		return none, err
	}
	if len(records) == 0 {
		if records, err = i.shapeOfJob(ctx, ref); err != nil {
			return none, err
		}
	}
	var projects []string
	for _, r := range records {
		projects = append(projects, r.Project)
	}
	at := slices.Index(projects, project)
	switch {
	case at < 0 && project != "":
		return none, shapeErrorf("project %s knows nothing of shape %s; %v does", project, ref, projects)
	case at < 0 && len(records) > 1:
		return none, fmt.Errorf("%w: projects %v have shape %s: say which one is meant", bench.ErrInvalid, projects, ref)
	}
	fleet, err := i.fleet(ctx)
	if err != nil {
		return none, err
	}
	return i.shape(ctx, records[max(0, at)], fleet)
}

// shapeOfJob returns the statistics of a job's shape.
func (i *Inspector) shapeOfJob(ctx context.Context, ref string) ([]store.SizeStatistics, error) {
	unknown := shapeErrorf("nothing is known of shape %s, and there is no job of that key; 'benchloom sizeclass list' lists the shapes", ref)
	key, err := bench.ParseJobKey(ref)
	if err != nil {
		return nil, unknown
	}
	j, err := i.Record.Job(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, unknown
	case err != nil:
		return nil, err
	case j.Shape == "":
		return nil, shapeErrorf("the size class of job %s is not learned: it is fixed; 'benchloom explain %s' says why", key, key)
	}
	known, err := i.Record.SizeStatistics(ctx, j.Project, bench.Shape(j.Shape))
	if errors.Is(err, store.ErrNotFound) {
		return nil, shapeErrorf("nothing is known yet of shape %s, that of job %s: none of its runs has ended", j.Shape, key)
	}
	return []store.SizeStatistics{known}, err
}

// shape explains statistics. It selects the next class for the last recorded job: others
// of the shape need the same.
func (i *Inspector) shape(ctx context.Context, r store.SizeStatistics, fleet plan.Fleet) (diagnose.ShapeExplanation, error) {
	known, unread := sizing.ReadStatistics(r.Statistics)
	about := sizing.ReadAbout(r.About)
	job, err := i.lastOf(ctx, r, known)
	if err != nil {
		return diagnose.ShapeExplanation{}, err
	}
	if job.Target == "" {
		job.Target = about.Target
	}
	if job.Command == nil && len(about.Command) > 0 { // only its command line is known
		job.Command = &bench.Command{Argv: about.Command}
	}
	var next *sizeclass.Selection
	if now, err := sizing.Explain(fleet, job, known, i.Now()); err == nil {
		next = &now.Selection
	}
	e := diagnose.Shape(known, next)
	e.Project, e.Shape, e.About, e.UpdatedAt = r.Project, string(r.Shape), about.String(), r.UpdatedAt
	if unread != nil {
		e.Unread = unread.Error()
	}
	return e, nil
}

// lastOf returns the last recorded job of a shape; without one, only its project is set.
func (i *Inspector) lastOf(ctx context.Context, r store.SizeStatistics, known sizeclass.Statistics) (store.Sizing, error) {
	var last sizeclass.Sample
	for _, h := range known.Classes {
		for _, sample := range h.Samples {
			if sample.Job != "" && !sample.At.Before(last.At) {
				last = sample
			}
		}
	}
	if last.Job != "" {
		job, err := i.Record.SizingOf(ctx, bench.JobKey(last.Job))
		if !errors.Is(err, store.ErrNotFound) {
			return job, err
		}
	}
	if job, err := i.Record.LastOfShape(ctx, r.Project, r.Shape); !errors.Is(err, store.ErrNotFound) {
		return job, err
	}
	p, err := i.Record.Project(ctx, r.Project)
	return store.Sizing{Project: r.Project, Config: p.Config}, err
}
