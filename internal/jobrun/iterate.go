package jobrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

// maxRepeats limits how often an iteration is repeated because some counter did
// not count all the time.
const maxRepeats = 3

// iterate runs a unit once: fresh copy, steps, measured command. Round n is a
// warm-up or yields a collection.
func (r *runner) iterate(ctx context.Context, u *unit, n int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	tc, warmups := u.result.TestCase, u.recipe.Warmups
	iteration := max(0, n+1-warmups)
	r.progress.Iteration, r.progress.Iterations = iteration, u.recipe.Iterations
	r.report(tc, u.result.Subject)
	what := fmt.Sprintf("%s %d/%d", r.label(tc, u.result.Subject), iteration, u.recipe.Iterations)
	if iteration == 0 {
		what = fmt.Sprintf("%s warm-up %d/%d", r.label(tc, u.result.Subject), n+1, warmups)
	}
	began := r.m.Now()
	var collection *Collection
	for attempt := 0; collection == nil; attempt++ {
		got, invalid, failure, err := r.attempt(ctx, u, what)
		if err != nil {
			return err
		}
		switch {
		case failure != nil:
			u.fail(failure)
		case len(invalid) == 0:
			collection = got
			continue
		case attempt < maxRepeats:
			fmt.Fprintf(r.log, "== %s: repeated: %s did not count all the time\n", what, counterNames(invalid))
			continue
		default:
			u.fail(&Failure{Kind: bench.FailJob, Message: fmt.Sprintf(
				"%s: %s counted only a part of the time in %d attempts; something else uses the CPU's counters: stop other profilers, or switch the NMI watchdog off (sysctl kernel.nmi_watchdog=0)",
				what, counterNames(invalid), attempt+1)})
		}
		return r.empty(u)
	}
	if iteration > 0 {
		collection.Iteration, collection.Duration = iteration, r.m.Now().Sub(began)
		u.result.Collections = append(u.result.Collections, *collection)
	}
	return r.empty(u)
}

// empty removes ${work} after an iteration.
func (r *runner) empty(u *unit) error {
	if err := removeTree(u.places.paths.Work); err != nil {
		return fmt.Errorf("emptying the work directory: %w", err)
	}
	return nil
}

// attempt tries an iteration once. If counters are invalid, the collection must
// not be used.
func (r *runner) attempt(ctx context.Context, u *unit, what string) (*Collection, []measure.InvalidCounter, *Failure, error) {
	if err := r.fresh(ctx, u); err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", what, err)
	}
	failure, err := r.steps(ctx, u.places, what+" before", u.recipe.Before, r.until(u.recipe.Timeout))
	if failure != nil || err != nil {
		return nil, nil, failure, err
	}
	m := u.recipe.Measure
	dir := m.Dir
	if dir == "" {
		dir = u.places.paths.Work
	}
	command := measure.Command{
		Argv: m.Run, Dir: dir, Env: mergeEnv(r.m.baseEnv(), m.Env), Timeout: u.recipe.Timeout, Counters: r.counters,
	}
	var stdout bytes.Buffer
	if m.Output == suite.OutputBenchfmt {
		command.Stdout = &stdout
	}
	collection := &Collection{StartedAt: r.m.Now()}
	sampler, loadErr := measure.StartLoad("/")
	sample, failure, err := r.execute(ctx, call{what, command})
	if loadErr == nil {
		if load, err := sampler.End(); err == nil {
			collection.Load = &load
		}
	}
	if failure != nil || err != nil {
		return nil, nil, failure, err
	}
	if len(sample.Invalid) > 0 {
		return nil, sample.Invalid, nil, nil
	}
	collection.Metrics, collection.LeftBehind = processMetrics(sample), sample.LeftBehind
	for _, lacking := range sample.Unenforced {
		collection.Unenforced = append(collection.Unenforced, lacking.Name)
	}
	if err := r.outputMetrics(u, stdout.Bytes(), collection.Metrics); err != nil {
		var end tail
		_, _ = end.Write(stdout.Bytes())
		kind := bench.FailJob
		if errors.Is(err, errOutside) {
			kind = bench.FailPermanent
		}
		return nil, nil, &Failure{Kind: kind, Message: fmt.Sprintf("%s: %v", what, err), Output: end.String()}, nil
	}
	return collection, nil, nil, nil
}

// processMetrics returns the metrics of the process itself; unknown ones are
// absent.
func processMetrics(s measure.Sample) map[bench.Metric]float64 {
	metrics := map[bench.Metric]float64{
		bench.WallTime:            s.Wall.Seconds(),
		bench.CPUTime:             (s.UserCPU + s.SystemCPU).Seconds(),
		bench.UserTime:            s.UserCPU.Seconds(),
		bench.SystemTime:          s.SystemCPU.Seconds(),
		bench.MinorFaults:         float64(s.MinorFaults),
		bench.MajorFaults:         float64(s.MajorFaults),
		bench.VoluntarySwitches:   float64(s.VoluntarySwitches),
		bench.InvoluntarySwitches: float64(s.InvoluntarySwitches),
	}
	if s.MaxRSSBytes > 0 {
		metrics[bench.MaxRSS] = float64(s.MaxRSSBytes)
	}
	for counter, value := range s.Counters {
		metrics[bench.Metric(counter)] = float64(value)
	}
	return metrics
}

// outputMetrics adds the metrics that the command has printed and the sizes of
// its files.
func (r *runner) outputMetrics(u *unit, stdout []byte, metrics map[bench.Metric]float64) error {
	m := u.recipe.Measure
	for metric, pattern := range m.Sizes {
		size, err := u.places.fileSize(pattern)
		if err != nil {
			return fmt.Errorf("metric %s: %w", metric, err)
		}
		metrics[metric] = size
	}
	if m.Output != suite.OutputBenchfmt {
		return nil
	}
	values, err := parseBenchfmt(stdout, m.Metrics)
	if err != nil {
		return err
	}
	for metric, value := range values {
		if _, taken := metrics[metric]; taken {
			return fmt.Errorf("the output's unit %s is also the name of a built-in metric", metric)
		}
		metrics[metric] = value
	}
	return nil
}

func counterNames(invalid []measure.InvalidCounter) string {
	names := make([]string, len(invalid))
	for i, c := range invalid {
		names[i] = string(c.Counter)
	}
	return strings.Join(names, ", ")
}
