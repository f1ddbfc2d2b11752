package sizing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/retry"
	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/store"
)

// Record reads and writes sizes, jobs and the fleet; *store.Store implements it. Each
// call is a transaction; decide and learn are called under the lock of the shape.
type Record interface {
	Fleet(ctx context.Context, offlineAfter time.Duration) (plan.Fleet, error)
	Unsized(ctx context.Context, taskQueue string, most, strict int) ([]store.Sizing, error)
	SelectSizes(ctx context.Context, project string, shape bench.Shape, keys []bench.JobKey,
		decide func(store.Sizing, *store.SizeStatistics) (store.SizeChoice, error)) ([]string, error)
	LearnSizes(ctx context.Context, key bench.JobKey, learn func(store.Sizing, []store.SizeLesson, *store.SizeStatistics) error) (bool, error)
	SizingOf(ctx context.Context, key bench.JobKey) (store.Sizing, error)
	SizeStatistics(ctx context.Context, project string, shape bench.Shape) (store.SizeStatistics, error)
	Misplaced(ctx context.Context, id bench.RequestID, most int) ([]store.Sizing, error)
	PlaceShape(ctx context.Context, project string, shape bench.Shape, at bench.Place) (int, error)
}

// Sizes selects size classes and learns from runs. It has no state.
type Sizes struct {
	Record Record
	// OfflineAfter is the time after which a silent collector no longer counts as live.
	OfflineAfter time.Duration
	Now          func() time.Time
	// Random returns a number in [0, 1).
	Random func() float64
	Log    *slog.Logger
}

// rounds bounds how often the first jobs of a task queue are looked at: when some move
// elsewhere, others become the first. The next hand-out looks at the rest.
const rounds = 20

// View is a snapshot of the fleet.
type View struct {
	sizes Sizes
	fleet plan.Fleet
}

// View reads the fleet.
func (s Sizes) View(ctx context.Context) (View, error) {
	fleet, err := s.fleet(ctx)
	return View{sizes: s, fleet: fleet}, err
}

// Several reports whether there is a choice: a target with more than one size class.
// Without one, sizing costs nothing.
func (v View) Several() bool {
	classes := make(map[bench.Target]bench.SizeClass)
	for _, c := range v.fleet {
		if known, ok := classes[c.Pool.Target]; ok && known != c.Pool.SizeClass {
			return true
		}
		classes[c.Pool.Target] = c.Pool.SizeClass
	}
	return false
}

// Live returns the number of live collectors that take jobs from a task queue; for the
// task queue of a set, an upper bound.
func (v View) Live(taskQueue string) int {
	live := 0
	for _, c := range v.fleet {
		own := c.Pool.TaskQueue()
		alike := strings.HasPrefix(taskQueue, strings.TrimSuffix(own, c.Pool.Name)) // in target and size class
		if c.Live && (own == taskQueue || alike && bench.IsSet(taskQueue)) {
			live++
		}
	}
	return live
}

// Standing returns a job's size class and the next larger one after a failure.
func (v View) Standing(ctx context.Context, config bench.ProjectConfig, key bench.JobKey) (retry.Standing, error) {
	j, err := v.sizes.Record.SizingOf(ctx, key)
	return Standing(v.fleet, config, j), err
}

// Attempts returns the number of attempts of a job that has not begun since it was asked
// for; former are its runs before. Only the job's own failures use them up.
func (v View) Attempts(ctx context.Context, config bench.ProjectConfig, key bench.JobKey, former []bench.Run) (int, error) {
	at := retry.Standing{}
	if v.Several() {
		var err error
		if at, err = v.Standing(ctx, config, key); err != nil {
			return 0, err
		}
	}
	return Attempts(config).Attempts(retry.Tries(former), at), nil
}

// Larger returns the place on a larger class for a job that has failed on its own, and
// its time limit there; 0: only the job's own limits apply.
func (v View) Larger(ctx context.Context, config bench.ProjectConfig, key bench.JobKey, class bench.SizeClass) (store.SizeChoice, error) {
	j, err := v.sizes.Record.SizingOf(ctx, key)
	if err != nil {
		return store.SizeChoice{}, err
	}
	at, err := place(v.fleet, config, j, class)
	if err != nil {
		return store.SizeChoice{}, err
	}
	choice := store.SizeChoice{Place: at}
	classes := Classes(v.fleet, config, j)
	if j.Shape == "" || class >= slices.Max(classes) {
		return choice, nil
	}
	known, err := v.sizes.Record.SizeStatistics(ctx, j.Project, j.Shape)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return choice, err
	}
	_, analyzer, err := v.sizes.analyzer(j)
	if err != nil {
		return choice, v.sizes.without(ctx, j, err)
	}
	if next, larger := analyzer.Escalate(v.sizes.read(ctx, &known), ask(v.fleet, config, j, classes, v.sizes.Now()), j.SizeClass); larger && next.Class == class {
		choice.TimeoutSeconds = next.Timeout.Seconds()
	}
	return choice, nil
}

// Select selects size classes for the next jobs of a task queue: the first jobs of each
// weighted queue, up to most, and of each strict queue, up to strict. It returns the
// other task queues to which some of them have moved.
func (v View) Select(ctx context.Context, taskQueue string, most, strict int) ([]string, error) {
	s := v.sizes
	var elsewhere []string
	for range rounds {
		jobs, err := s.Record.Unsized(ctx, taskQueue, most, strict)
		if err != nil || len(jobs) == 0 {
			return elsewhere, err
		}
		for _, alike := range byShape(jobs) {
			queues, err := s.Record.SelectSizes(ctx, alike[0].Project, alike[0].Shape, keysOf(alike), func(j store.Sizing, known *store.SizeStatistics) (store.SizeChoice, error) {
				return s.choose(ctx, v.fleet, j, known)
			})
			if err != nil {
				return elsewhere, err
			}
			for _, q := range queues {
				if q != taskQueue && !slices.Contains(elsewhere, q) {
					elsewhere = append(elsewhere, q)
				}
			}
		}
	}
	return elsewhere, nil
}

func byShape(jobs []store.Sizing) [][]store.Sizing {
	type key struct {
		project string
		shape   bench.Shape
	}
	at := make(map[key]int)
	var groups [][]store.Sizing
	for _, j := range jobs {
		k := key{j.Project, j.Shape}
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], j)
	}
	return groups
}

func keysOf(jobs []store.Sizing) []bench.JobKey {
	keys := make([]bench.JobKey, len(jobs))
	for i, j := range jobs {
		keys[i] = j.Key
	}
	return keys
}

func (s Sizes) fleet(ctx context.Context) (plan.Fleet, error) {
	return s.Record.Fleet(ctx, s.OfflineAfter)
}

// choose selects the size class of one job. If only one class can run it, nothing is
// selected and no time limit set.
func (s Sizes) choose(ctx context.Context, fleet plan.Fleet, j store.Sizing, known *store.SizeStatistics) (store.SizeChoice, error) {
	config, analyzer, err := s.analyzer(j)
	if err != nil {
		return store.SizeChoice{}, s.without(ctx, j, err)
	}
	classes := offered(fleet, config, j)
	if len(classes) == 1 {
		return s.at(ctx, fleet, config, j, sizeclass.Selection{Class: classes[0], Why: "it is the only class that can run the job"})
	}
	stats := s.read(ctx, known)
	stats.Marks = slices.DeleteFunc(stats.Marks, func(m sizeclass.Mark) bool { return slices.Contains(known.Void, bench.JobKey(m.ID)) })
	question := ask(fleet, config, j, classes, s.Now())
	question.Random, question.Attempt = s.Random(), string(j.Key)
	selected, after, err := analyzer.Select(stats, question)
	if err == nil && selected.Probe && j.Command == nil {
		// Results that will be compared must not come from a probe.
		selected, err = analyzer.Explain(occupied(stats, question.Now), question)
		after = stats
	}
	if err != nil {
		return store.SizeChoice{}, s.without(ctx, j, err)
	}
	if after.Counts.InFlight > stats.Counts.InFlight {
		selected.Why += "; no other class is tried, for a run that is under way does that already"
	}
	choice, err := s.at(ctx, fleet, config, j, selected)
	if err != nil {
		return choice, err
	}
	if selected.Class < classes[len(classes)-1] {
		choice.TimeoutSeconds = selected.Timeout.Seconds()
	}
	choice.Probe = selected.Probe
	return choice, s.write(known, after, j, 0)
}

// without logs that a job runs on the class where it waits. An error of sizing must not
// keep a job from running.
func (s Sizes) without(ctx context.Context, j store.Sizing, err error) error {
	s.Log.WarnContext(ctx, "no size class was selected; the job runs on the one where it waits",
		"project", j.Project, "job", j.Key, "size_class", j.SizeClass, "error", err)
	return err
}

func (s Sizes) at(ctx context.Context, fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing, selected sizeclass.Selection) (store.SizeChoice, error) {
	if selected.Class == j.SizeClass {
		return store.SizeChoice{Stays: true, Why: selected.Why}, nil
	}
	at, err := place(fleet, config, j, selected.Class)
	if err != nil {
		return store.SizeChoice{}, s.without(ctx, j, err)
	}
	return store.SizeChoice{Place: at, Why: selected.Why}, nil
}

func (s Sizes) analyzer(j store.Sizing) (bench.ProjectConfig, *sizeclass.Analyzer, error) {
	config, err := bench.ReadProjectConfig(j.Config)
	if err != nil {
		return config, nil, fmt.Errorf("project %s: %w", j.Project, err)
	}
	policy, err := plan.SizePolicy(config.Size)
	if err != nil {
		return config, nil, fmt.Errorf("project %s: %w", j.Project, err)
	}
	analyzer, err := sizeclass.New(policy)
	return config, analyzer, err
}

// read decodes the statistics of a shape. Unreadable statistics are learned anew.
func (s Sizes) read(ctx context.Context, known *store.SizeStatistics) sizeclass.Statistics {
	if len(known.Statistics) == 0 {
		return sizeclass.Statistics{}
	}
	stats, err := sizeclass.Read(known.Statistics)
	if err != nil {
		s.Log.WarnContext(ctx, "what was known of a shape is learned anew", "project", known.Project, "shape", known.Shape, "error", err)
	}
	return stats
}

func (s Sizes) write(known *store.SizeStatistics, stats sizeclass.Statistics, j store.Sizing, best bench.SizeClass) error {
	text, err := stats.Encode()
	if err != nil {
		return err
	}
	known.Statistics = text
	if best != 0 {
		known.Best = best
	}
	known.About, err = json.Marshal(about(j))
	return err
}

// occupied marks statistics as if a probe were under way, so that no other begins.
func occupied(s sizeclass.Statistics, now time.Time) sizeclass.Statistics {
	s.Marks = append(append([]sizeclass.Mark{}, s.Marks...), sizeclass.Mark{ID: "none", Class: 1, Expires: now.Add(time.Hour)})
	return s
}
