package sizing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/store"
)

// Learn adds a job's ended runs to the statistics of its shape; calling it again does
// nothing. If the shape's best class has changed, its undecided waiting jobs move there,
// and Learn returns the task queues to which some have moved, which the caller should
// fill. Errors are logged, not returned: they must not fail a job.
func (s Sizes) Learn(ctx context.Context, key bench.JobKey) []string {
	queue, err := s.learn(ctx, key)
	if err != nil {
		s.Log.WarnContext(ctx, "nothing was learned from a job's runs; it is tried again with its next one", "job", key, "error", err)
	}
	if queue == "" {
		return nil
	}
	return []string{queue}
}

func (s Sizes) learn(ctx context.Context, key bench.JobKey) (string, error) {
	view, err := s.View(ctx)
	if err != nil || !view.Several() {
		return "", err
	}
	fleet := view.fleet
	var job store.Sizing
	var config bench.ProjectConfig
	var before, best bench.SizeClass
	learned, err := s.Record.LearnSizes(ctx, key, func(j store.Sizing, lessons []store.SizeLesson, known *store.SizeStatistics) error {
		var analyzer *sizeclass.Analyzer
		if config, analyzer, err = s.analyzer(j); err != nil {
			return err
		}
		job, before = j, known.Best
		classes := Classes(fleet, config, j)
		stats := s.read(ctx, known)
		for _, attempt := range s.attempts(j, lessons, classes) {
			stats = analyzer.Learn(stats, attempt)
		}
		if len(classes) > 0 {
			q := ask(fleet, config, j, offered(fleet, config, j), s.Now())
			if selected, err := analyzer.Explain(occupied(stats, q.Now), q); err == nil {
				best = selected.Class
			}
		}
		return s.write(known, stats, j, best)
	})
	if err != nil || !learned || best == 0 || best == before || boundPool(config, job) != "" {
		return "", err
	}
	return s.replace(ctx, fleet, config, job, best)
}

// presumed bounds the number of shapes of a request that are placed at submission; the
// others are placed when their jobs are next.
const presumed = 100

// Presume moves the jobs of a new request to where jobs of their shape went last, so
// that they do not wait behind jobs of another class. It returns the task queues to
// which some have moved.
func (s Sizes) Presume(ctx context.Context, id bench.RequestID) ([]string, error) {
	view, err := s.View(ctx)
	if err != nil || !view.Several() {
		return nil, err
	}
	jobs, err := s.Record.Misplaced(ctx, id, presumed)
	if err != nil {
		return nil, err
	}
	var queues []string
	for _, j := range jobs {
		config, err := bench.ReadProjectConfig(j.Config)
		if err != nil {
			return queues, fmt.Errorf("project %s: %w", j.Project, err)
		}
		known, err := s.Record.SizeStatistics(ctx, j.Project, j.Shape)
		if err != nil {
			return queues, err
		}
		if slices.Contains(offered(view.fleet, config, j), known.Best) {
			at, err := s.replace(ctx, view.fleet, config, j, known.Best)
			if err != nil {
				return queues, err
			}
			if at != "" && !slices.Contains(queues, at) {
				queues = append(queues, at)
			}
		}
	}
	return queues, nil
}

// replace moves the waiting jobs of a shape to where they will probably run, and
// returns that task queue; empty: they stay.
func (s Sizes) replace(ctx context.Context, fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing, best bench.SizeClass) (string, error) {
	if j.Constraints != nil { // such jobs are placed one by one
		return "", nil
	}
	at, err := place(fleet, config, j, best)
	if err != nil {
		return "", err
	}
	moved, err := s.Record.PlaceShape(ctx, j.Project, j.Shape, at)
	if moved == 0 || err != nil {
		return "", err
	}
	s.Log.InfoContext(ctx, "jobs wait for another size class, after what was learned", "project", j.Project, "shape", j.Shape, "size_class", best, "jobs", moved)
	return at.TaskQueue(), nil
}

// attempts converts a job's runs to attempts of its shape. A probe is marked with the
// key of its job, and the first run with a lesson removes the mark.
func (s Sizes) attempts(j store.Sizing, lessons []store.SizeLesson, classes []bench.SizeClass) []sizeclass.Attempt {
	if len(lessons) == 0 { // it never ran
		return []sizeclass.Attempt{{ID: string(j.Key), Job: string(j.Key), Class: j.SizeClass, Outcome: sizeclass.Abandoned, At: s.Now()}}
	}
	attempts := make([]sizeclass.Attempt, len(lessons))
	for i, l := range lessons {
		outcome, work := outcomeOf(l), sizeclass.Work{Resumed: l.Resumed, Done: l.Done, All: l.All}
		attempts[i] = sizeclass.Attempt{
			ID: string(l.Run), Job: string(j.Key), Class: l.SizeClass, Outcome: outcome,
			Duration: seconds(l.Seconds), Timeout: seconds(l.TimeoutSeconds), OwnLimit: hitOwnLimit(l), At: l.EndedAt,
			Largest: len(classes) == 0 || l.SizeClass >= slices.Max(classes), Complete: work.Complete(outcome),
			PeakMemory: l.PeakMemory, CPUTime: seconds(l.CPUSeconds),
		}
	}
	return attempts
}

// outcomeOf converts a run's end to an outcome of its size class.
func outcomeOf(l store.SizeLesson) sizeclass.Outcome {
	switch l.Outcome {
	case bench.RunSuccess:
		return sizeclass.Succeeded
	case bench.RunTimeout:
		return sizeclass.TimedOut
	case bench.RunOutOfMemory:
		return sizeclass.OutOfMemory
	case bench.RunFailure, bench.RunTooSmall:
		return sizeclass.Failed
	}
	return sizeclass.Abandoned
}

// hitOwnLimit reports whether a run reached the time limit of its command or suite
// rather than the limit of its size class. It tolerates small differences of clocks.
func hitOwnLimit(l store.SizeLesson) bool {
	const agree = 0.95
	return l.Outcome == bench.RunTimeout && (l.TimeoutSeconds == 0 || l.Seconds < agree*l.TimeoutSeconds)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
