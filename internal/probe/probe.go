// Package probe measures how noisy a machine is: it compares a small program with
// itself, in turns and look by look, as suspicions are decided. It also tries the programs
// of profilers.
//
// The package knows no suites and no service; the program, the readings of the
// machine and the clock come in as arguments.
package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Options are the arguments of [Measure].
type Options struct {
	// Duration is the time to measure for. No comparison is begun that would take longer, except the first. On a slow machine
	// the first ends when the time is over and it has enough pairs to see a change.
	Duration time.Duration
	// Run runs the program once.
	Run func(context.Context) (measure.Sample, error)
	// Read reads the machine.
	Read func() machine.Reading
	Now  func() time.Time
	// Progress is called after each pair.
	Progress func(Progress)
}

// Progress describes an unfinished measurement.
type Progress struct {
	// Comparison counts from 1 on.
	Comparison int
	// Pairs of the comparison have been measured, of Of.
	Pairs, Of int
	// Elapsed is the time since the measurement began.
	Elapsed time.Duration
}

// deciding are the metrics of a comparison.
func deciding() []bench.Metric {
	return []bench.Metric{bench.WallTime, bench.CPUTime, bench.Instructions}
}

// iteration is one run of the program.
type iteration struct {
	// values holds metrics; a missing one was not measured.
	values map[bench.Metric]float64
	delta  machine.Delta
}

// pair is one iteration of both sides, session the pairs of a look, comparison the
// sessions until the last look.
type (
	pair       [2]iteration
	session    []pair
	comparison []session
)

// Measure compares the program with itself until the time is over. It fails if the
// program does, or if the context ends.
func Measure(ctx context.Context, o Options) (Noise, error) {
	family, err := verdict.NewFamily(len(deciding()))
	if err != nil {
		return Noise{}, err
	}
	began := o.Now()
	var all []comparison
	for longest := time.Duration(0); len(all) == 0 || o.Now().Sub(began)+longest <= o.Duration; {
		start := o.Now()
		p := Progress{Comparison: len(all) + 1, Of: family.Looks[len(family.Looks)-1]}
		c, err := o.compare(ctx, family, func(pairs int) (more bool) {
			p.Pairs, p.Elapsed = pairs, o.Now().Sub(began)
			o.Progress(p)
			return len(all) > 0 || pairs < family.Confirms() || p.Elapsed < o.Duration
		})
		if err != nil {
			return Noise{}, err
		}
		all = append(all, c)
		longest = max(longest, o.Now().Sub(start))
	}
	return assess(family, all, o.Now().Sub(began)), nil
}

// compare measures the pairs of a comparison, after one iteration to warm up, until
// its last look or the end of one after which progress returns false.
func (o Options) compare(ctx context.Context, family verdict.Family, progress func(pairs int) (more bool)) (comparison, error) {
	if _, err := o.iterate(ctx); err != nil {
		return nil, err
	}
	var c comparison
	pairs, goOn := 0, true
	for more, ok := family.NextLook(0); ok && goOn; more, ok = family.NextLook(pairs) {
		s := make(session, more)
		for n := range s {
			for side := range s[n] {
				var err error
				if s[n][side], err = o.iterate(ctx); err != nil {
					return nil, err
				}
			}
			pairs++
			goOn = progress(pairs)
		}
		c = append(c, s)
	}
	return c, nil
}

func (o Options) iterate(ctx context.Context) (iteration, error) {
	if ctx.Err() != nil {
		return iteration{}, context.Cause(ctx)
	}
	begin := o.Read()
	sample, err := o.Run(ctx)
	own := sample.UserCPU + sample.SystemCPU
	i := iteration{delta: machine.Between(begin, o.Read(), own), values: map[bench.Metric]float64{}}
	switch {
	case err != nil:
		return i, fmt.Errorf("running the program that is measured: %w", err)
	case ctx.Err() != nil:
		return i, context.Cause(ctx)
	case !sample.Succeeded():
		return i, errors.New("the program that is measured ended with " + ending(sample))
	}
	i.values[bench.WallTime], i.values[bench.CPUTime] = sample.Wall.Seconds(), own.Seconds()
	// A counter that did not count all the time is in neither.
	for counter, value := range sample.Counters {
		i.values[bench.Metric(counter)] = float64(value)
	}
	return i, nil
}

func ending(s measure.Sample) string {
	switch {
	case s.Status != measure.StatusExited:
		return "status " + string(s.Status)
	case s.Signal != "":
		return s.Signal
	}
	return fmt.Sprintf("exit code %d", s.ExitCode)
}
