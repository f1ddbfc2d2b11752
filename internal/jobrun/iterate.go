package jobrun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

// maxRepeats limits how often an iteration is repeated because some counter did
// not count all the time and, separately, because it was disturbed.
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
	invalid, disturbed := 0, 0
	for {
		tried := r.m.Now()
		got, err := r.attempt(ctx, u, n, what)
		if err != nil {
			return err
		}
		took := max(0, r.m.Now().Sub(tried))
		switch {
		case got.failure != nil && got.failure.again && r.script.left > 0:
			r.script.left--
			fmt.Fprintf(r.log, "== %s: run again: %s\n", what, got.failure.Message)
			continue
		case got.failure != nil:
			u.fail(got.failure)
			return r.empty(u)
		case len(got.invalid) > 0 && invalid < maxRepeats:
			invalid++
			fmt.Fprintf(r.log, "== %s: repeated: %s did not count all the time\n", what, counterNames(got.invalid))
			continue
		case len(got.invalid) > 0:
			u.fail(&Failure{Kind: bench.FailJob, Message: fmt.Sprintf(
				"%s: %s counted only a part of the time in %d attempts; something else uses the CPU's counters: stop other profilers, or switch the NMI watchdog off (sysctl kernel.nmi_watchdog=0)",
				what, counterNames(got.invalid), invalid+1)})
			return r.empty(u)
		case iteration == 0:
			r.spent += took
			return r.empty(u)
		}
		reasons := r.judge(u, got.collection)
		if len(reasons) > 0 && disturbed < maxRepeats && r.mayRepeat(took, u.rounds()-n) {
			disturbed++
			r.lost += took
			fmt.Fprintf(r.log, "== %s: repeated: disturbed by %s\n", what, machine.Text(reasons))
			continue
		}
		if len(reasons) > 0 {
			r.disturbed++
			fmt.Fprintf(r.log, "== %s: kept with the mark disturbed, by %s\n", what, machine.Text(reasons))
		}
		if failure, err := r.keepFiles(ctx, u, what); err != nil {
			return err
		} else if failure != nil {
			u.fail(failure)
			return r.empty(u)
		}
		r.iterations++
		r.spent += took
		got.collection.Iteration, got.collection.Duration = iteration, max(0, r.m.Now().Sub(began))
		u.keep(*got.collection, reasons)
		return r.empty(u)
	}
}

// empty removes ${work} after an iteration.
func (r *runner) empty(u *unit) error {
	if err := removeTree(u.places.paths.Work); err != nil {
		return fmt.Errorf("emptying the work directory: %w", err)
	}
	return nil
}

// attempted is the outcome of one attempt at an iteration: a failure, counters
// that invalidate it, or a collection.
type attempted struct {
	collection *Collection
	invalid    []measure.InvalidCounter
	failure    *Failure
}

// attempt tries round n once. An error is the machine's or the context's.
func (r *runner) attempt(ctx context.Context, u *unit, n int, what string) (attempted, error) {
	began := r.m.Now()
	if err := r.fresh(ctx, u); err != nil {
		return attempted{}, fmt.Errorf("%s: %w", what, err)
	}
	failure, err := r.steps(ctx, u.places, stepsOf{what + " before", false}, u.recipe.Before, r.until(cmp.Or(u.recipe.BeforeTimeout, u.recipe.Timeout)))
	if failure != nil || err != nil {
		return attempted{failure: failure}, err
	}
	m := u.recipe.Measure
	dir := m.Dir
	if dir == "" {
		dir = u.places.paths.Work
	}
	command := measure.Command{
		Argv: m.Run, Dir: dir, Env: mergeEnv(r.m.baseEnv(), m.Env), Timeout: u.recipe.Timeout, Counters: r.counters, Network: m.Network,
	}
	var stdout bytes.Buffer
	if m.Output == suite.OutputBenchfmt {
		command.Stdout = &stdout
	}
	collection := &Collection{StartedAt: r.m.Now()}
	r.timed(SettingUp, began)
	sample, during, failure, err := r.observe(ctx, call{what, command}, u.measured(n))
	if failure != nil || err != nil {
		return attempted{failure: failure}, err
	}
	if len(sample.Invalid) > 0 {
		return attempted{invalid: sample.Invalid}, nil
	}
	collection.Machine = during
	collection.Metrics, collection.LeftBehind = make(map[bench.Metric]float64), sample.LeftBehind
	if !m.OnlyOutput {
		collection.Metrics = processMetrics(sample)
	}
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
		return attempted{failure: &Failure{Kind: kind, Message: fmt.Sprintf("%s: %v", what, err), Output: end.String()}}, nil
	}
	return attempted{collection: collection}, nil
}

// measured identifies the command of round n.
func (u *unit) measured(n int) Measured {
	m := Measured{TestCase: u.result.TestCase, Subject: u.result.Subject}
	if n < u.recipe.Warmups {
		m.Warmup = n + 1
	} else {
		m.Iteration = n + 1 - u.recipe.Warmups
	}
	return m
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

// outputMetrics adds the metrics printed by the command and the sizes of its
// files.
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
	if before := u.result.Collections; len(before) > 0 {
		return sameLines(before[0].Metrics, metrics)
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
