// Package simulate runs the size-class analyzer on a model of a job: its
// durations by class, and the classes on which it runs out of memory.
//
// It must use only the analyzer's exported API, so that it shows what the
// service does. Time is simulated, and the random source is an argument.
package simulate

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

// Random is a source of random numbers; a *rand.Rand is one. A simulation calls it from one
// goroutine.
type Random interface {
	Float64() float64     // uniform in [0, 1)
	NormFloat64() float64 // normal, mean 0, standard deviation 1
}

// Outcomes of a run or an attempt, as in the record of runs.
const (
	Success     = "success"
	Timeout     = "timeout"
	OutOfMemory = "oom"
	Failure     = "failure"
)

// Attempt is one attempt at a run.
type Attempt struct {
	Class   bench.SizeClass
	Outcome string
	Seconds float64
	Probe   bool
	// Background attempts have a cost but cause no delay.
	Background bool
}

// Chooser makes the decisions for a model's runs: the analyzer, or a baseline. A simulation
// calls it for one run after another, from one goroutine; it is never nil.
type Chooser interface {
	// Run makes the attempts of one run, advancing the machine's time.
	Run(number int, m *Machine) []Attempt
}

// Machine simulates attempts.
type Machine struct {
	Input  Input
	Now    time.Time
	random Random
	number int
}

// Float64 draws from the simulation's random source.
func (m *Machine) Float64() float64 { return m.random.Float64() }

// Try simulates an attempt on a class, ended at the timeout.
func (m *Machine) Try(class bench.SizeClass, timeout time.Duration) Attempt {
	seconds, outcome := m.draw(class)
	if limit := timeout.Seconds(); seconds > limit {
		seconds, outcome = limit, Timeout
	}
	return Attempt{Class: class, Outcome: outcome, Seconds: seconds}
}

// draw returns the duration and outcome of an attempt that is not stopped.
func (m *Machine) draw(class bench.SizeClass) (seconds float64, outcome string) {
	shape := m.Input.Shape
	noise := math.Exp(shape.Noise * m.random.NormFloat64())
	if class < shape.FailsBelow {
		return time.Duration(shape.FailsAfter).Seconds(), OutOfMemory
	}
	seconds = shape.duration(class, m.number).Seconds() * noise
	seconds *= m.exception(shape.Tail) * m.exception(shape.Bimodal)
	if shape.FailureRate > 0 && m.random.Float64() < shape.FailureRate {
		return seconds, Failure
	}
	return seconds, Success
}

// exception returns the factor of an exceptional run, else 1.
func (m *Machine) exception(e Exception) float64 {
	if e.Probability > 0 && m.random.Float64() < e.Probability {
		return e.Factor
	}
	return 1
}

// start is the time of the first run.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Simulate simulates the runs of an input with the real analyzer.
func Simulate(in Input, random Random) (Result, error) {
	analyzer, err := sizeclass.New(in.Policy)
	if err != nil {
		return Result{}, fmt.Errorf("simulating size classes: %w", err)
	}
	return With(in, random, &learner{analyzer: analyzer}), nil
}

// With simulates the runs of an input with a chooser.
func With(in Input, random Random, chooser Chooser) Result {
	m := &Machine{Input: in, Now: start, random: random}
	runs, tries := make([]Run, 0, in.Runs), make([][]Attempt, 0, in.Runs)
	for m.number = 1; m.number <= in.Runs; m.number++ {
		attempts := chooser.Run(m.number, m)
		runs = append(runs, newRun(attempts))
		tries = append(tries, attempts)
	}
	return Result{Runs: runs, Summary: summarise(runs, tries), attempts: tries}
}

// learner is the analyzer with the statistics of the job.
type learner struct {
	analyzer   *sizeclass.Analyzer
	statistics sizeclass.Statistics
}

// Run handles a run like the service.
func (l *learner) Run(number int, m *Machine) []Attempt {
	job := strconv.Itoa(number)
	q := sizeclass.Question{
		Classes: m.Input.Classes, Original: time.Duration(m.Input.OriginalTimeout), Now: m.Now, Random: m.Float64(), Attempt: job + "/1",
	}
	selection, statistics, err := l.analyzer.Select(l.statistics, q)
	if err != nil {
		return nil // refused by Input.Check
	}
	l.statistics = statistics
	var attempts []Attempt
	for {
		attempt := m.Try(selection.Class, selection.Timeout)
		attempt.Probe = selection.Probe
		attempts = append(attempts, attempt)
		m.Now = m.Now.Add(time.Duration(attempt.Seconds * float64(time.Second)))
		l.learn(m, job+"/"+strconv.Itoa(len(attempts)), job, attempt, selection.Timeout)
		if attempt.Outcome == Success {
			return attempts
		}
		next, ok := l.analyzer.Escalate(l.statistics, q, selection.Class)
		if !ok {
			return attempts
		}
		selection = next
	}
}

var outcomes = map[string]sizeclass.Outcome{
	Success: sizeclass.Succeeded, Timeout: sizeclass.TimedOut, OutOfMemory: sizeclass.OutOfMemory, Failure: sizeclass.Failed,
}

// learn learns like the service: the job is a single test case, which has a
// result only if an attempt succeeds.
func (l *learner) learn(m *Machine, id, job string, attempt Attempt, timeout time.Duration) {
	outcome, work := outcomes[attempt.Outcome], sizeclass.Work{All: 1}
	if outcome == sizeclass.Succeeded {
		work.Done = 1
	}
	l.statistics = l.analyzer.Learn(l.statistics, sizeclass.Attempt{
		ID: id, Job: job, Class: attempt.Class, Outcome: outcome,
		Duration: time.Duration(attempt.Seconds * float64(time.Second)), Timeout: timeout, At: m.Now,
		Largest: attempt.Class == m.Input.Classes[len(m.Input.Classes)-1], Complete: work.Complete(outcome),
	})
}
