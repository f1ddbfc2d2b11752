// Selfbench measures Benchloom's own overhead and prints Go's benchmark format: the time
// from submitting a job to its start on a collector, the overhead of the wrapper around a
// benchmark's command and of a profiling agent beside it, the resources of idle processes, the makespan of a pool that loses
// a collector, the cost of very many waiting jobs, the accuracy of comparisons with known
// differences, that of verdicts on simulated requests, the latency of web pages, and that
// of pages of results of a large project.
//
// With -check it fails when the median of the repetitions exceeds a limit in limits.go.
// It uses the service from outside only: the built binaries, the HTTP API, Temporal's
// histories, the record and /proc; package year writes a record beforehand. See docs/benchmarks.md for method and figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/e2e/selfbench/year"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/sandboxinit"
)

func main() {
	measure.InitMain()
	measure.UseInit(sandboxinit.Program)
	os.Exit(command())
}

func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "selfbench:", err)
		return 1
	}
	return 0
}

// Parts that can be measured alone.
const (
	partStack     = "stack"
	partRate      = "rate"
	partGraphs    = "graphs"
	partWrapper   = "wrapper"
	partIsolation = "isolation"
	partProfile   = "profile"
	partMakespan  = "makespan"
	partQueues    = "queues"
	partAccuracy  = "accuracy"
	partVerdicts  = "verdicts"
	partPages     = "pages"
	partResults   = "results"
)

type options struct {
	check       bool
	only        string
	repetitions int
	submissions int
	pairs       int
	rate        ratePlan
	graphs      graphsPlan
	isolation   isolationPlan
	profile     profilePlan
	makespan    makespanPlan
	queues      queuesPlan
	accuracy    accuracyPlan
	verdicts    verdictsPlan
	pages       pagesPlan
	results     resultsPlan
	idle        time.Duration
	program     string
	temporal    string
}

func (o options) programs() livestack.Programs {
	return livestack.Programs{Benchloom: o.program, Temporal: o.temporal}
}

func (o options) measures(part string) bool {
	if o.only == "" {
		return !o.check || part != partGraphs // which takes an hour: see docs/benchmarks.md
	}
	return o.only == part
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("selfbench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.check, "check", false, "fail when a median exceeds its limit")
	flags.StringVar(&o.only, "only", "", "measure only this part: stack, rate, graphs, wrapper, isolation, profile, makespan, queues, accuracy, verdicts, pages or results")
	flags.IntVar(&o.repetitions, "repetitions", 5, "repetitions of the parts stack and wrapper"+shorter(checkRepetitions))
	flags.IntVar(&o.submissions, "submissions", 300, "jobs and bare workflows per repetition"+shorter(checkSubmissions))
	flags.IntVar(&o.pairs, "pairs", 10, "pairs of a wrapped and a bare CPU loop per repetition; twenty times as many pairs of true")
	flags.IntVar(&o.rate.jobs, "rate-jobs", 400, "trivial commands, and bare workflows, for each number of collectors of the part rate, once and not per repetition")
	flags.IntVar(&o.rate.turns, "rate-turns", 3, "turns of the part rate, for each number of collectors, of which the median counts")
	flags.StringVar(&o.rate.before.Benchloom, "before", "", "path of the benchloom binary of an earlier state, which takes turns in the part rate")
	flags.StringVar(&o.rate.before.Temporal, "before-temporal", environment("BENCHLOOM_TEMPORAL_DEV", filepath.Join("bin", "temporal-dev")), "path of the earlier state's embedded Temporal")
	o.graphs = graphsPlan{width: 50, portion: checkPortion}
	flags.IntVar(&o.graphs.layers, "graph-layers", 100, "layers of 50 trivial commands each in the graph of the part graphs, once and not per repetition")
	flags.IntVar(&o.graphs.turns, "graph-turns", 3, "turns of that graph with the same commands without edges")
	flags.IntVar(&o.graphs.crowd, "graph-crowd", 0, "collectors that are registered beside the one that runs that graph, and take no job")
	flags.IntVar(&o.isolation.pairs, "isolation-pairs", 800, "pairs of an isolated and an open command, for a CPU loop and a fork-heavy one, once and not per repetition")
	flags.IntVar(&o.profile.pairs, "profile-pairs", mostProfilePairs, "pairs of a CPU loop with a profiling agent beside it and without, once and not per repetition")
	flags.DurationVar(&o.profile.alone, "profile-time", time.Minute, "time for which the cost of a profiling agent is measured")
	flags.IntVar(&o.makespan.seeds, "seeds", 20, "makespans for each number of slots, once and not per repetition"+shorter(checkSeeds))
	flags.DurationVar(&o.makespan.unit, "unit", 200*time.Millisecond, "shortest job of the makespan; the longest takes ten times as long")
	o.queues = queuesPlan{gaps: 300, pairs: 100}
	flags.IntVar(&o.queues.much, "much", muchWaiting, "jobs in the smaller of the two large files of the part queues, once and not per repetition")
	flags.IntVar(&o.queues.most, "most", mostWaiting, "jobs in the largest file of the part queues")
	o.accuracy.iterations = 24
	flags.StringVar(&o.accuracy.suite, "suite", filepath.Join("suites", "go"), "directory of the suite of Go toolchains, for the part accuracy")
	flags.IntVar(&o.accuracy.comparisons, "comparisons", 3, "comparisons of each pair of toolchains, once and not per repetition")
	flags.IntVar(&o.verdicts.requests, "requests", 1000, "simulated requests for each noise of the part verdicts, once and not per repetition")
	flags.StringVar(&o.verdicts.noise, "noise", "", "simulate only this noise: "+noiseIDs())
	o.pages.clients = 200
	flags.IntVar(&o.pages.jobs, "page-jobs", mostWaiting, "jobs that wait while pages are asked for in the part pages, once and not per repetition")
	flags.DurationVar(&o.pages.during, "page-time", time.Minute, "time for which pages are asked for, 20 a second")
	o.results = resultsPlan{size: year.Full(), paints: 11}
	flags.IntVar(&o.results.size.Artifacts, "artifacts", o.results.size.Artifacts, "artifacts of the year whose pages of results are asked for in the part results, once and not per repetition")
	flags.IntVar(&o.results.size.Benchmarks, "benchmarks", o.results.size.Benchmarks, "benchmarks of that year, with five test cases of eight metrics each")
	flags.IntVar(&o.results.size.Rows, "rows", o.results.size.Rows, "newest artifacts of that year that have the rows of their results, and not only what is packed of them")
	flags.StringVar(&o.results.keep, "years", keptYears(), "directory in which years are kept")
	flags.DurationVar(&o.results.during, "result-time", time.Minute, "time for which pages of results are asked for in each state, 20 a second")
	flags.DurationVar(&o.idle, "idle", 10*time.Second, "time for which the idle stack is watched")
	flags.StringVar(&o.program, "program", environment("BENCHLOOM_BIN", filepath.Join("bin", "benchloom")), "path of the benchloom binary")
	flags.StringVar(&o.temporal, "temporal-program", environment("BENCHLOOM_TEMPORAL_DEV", filepath.Join("bin", "temporal-dev")), "path of the embedded Temporal")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.check {
		o.shorten(flags)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.repetitions < 1 || o.submissions < 1 || o.pairs < 1 || o.isolation.pairs < 1 || o.idle < time.Second:
		return o, errors.New("-repetitions, -submissions, -pairs and -isolation-pairs must be positive, -idle at least 1s")
	case o.profile.pairs < 1 || o.profile.pairs > mostProfilePairs || o.profile.alone < time.Second:
		return o, fmt.Errorf("-profile-pairs must be 1 to %d, -profile-time at least 1s", mostProfilePairs)
	case o.rate.jobs < 100 || o.rate.turns < 1:
		return o, errors.New("-rate-jobs must be at least 100, -rate-turns positive")
	case o.graphs.layers < 1 || o.graphs.layers > 200 || o.graphs.turns < 1 || o.graphs.crowd < 0 || o.graphs.crowd > mostCrowd:
		return o, fmt.Errorf("-graph-layers must be 1 to 200, -graph-turns positive, -graph-crowd 0 to %d", mostCrowd)
	case o.makespan.seeds < 1 || o.makespan.unit < time.Millisecond:
		return o, errors.New("-seeds must be positive, -unit at least 1ms")
	case o.accuracy.comparisons < 1:
		return o, errors.New("-comparisons must be positive")
	case o.verdicts.requests < 1:
		return o, errors.New("-requests must be positive")
	case len(o.verdicts.noises()) == 0:
		return o, fmt.Errorf("-noise %q: write one of %s", o.verdicts.noise, noiseIDs())
	case o.only != "" && !slices.Contains([]string{partStack, partRate, partGraphs, partWrapper, partIsolation, partProfile, partMakespan, partQueues, partAccuracy, partVerdicts, partPages, partResults}, o.only):
		return o, fmt.Errorf("-only %q: write stack, rate, graphs, wrapper, isolation, profile, makespan, queues, accuracy, verdicts, pages or results", o.only)
	case o.pages.jobs < 1 || o.pages.during < time.Second:
		return o, errors.New("-page-jobs must be positive, -page-time at least 1s")
	case o.results.size.Check() != nil:
		return o, fmt.Errorf("-artifacts, -benchmarks and -rows: %w", o.results.size.Check())
	case o.results.during < time.Second:
		return o, errors.New("-result-time must be at least 1s")
	case o.queues.much <= fewWaiting+o.queues.gaps || o.queues.most < o.queues.much:
		return o, fmt.Errorf("-much must be more than %d, -most at least as many", fewWaiting+o.queues.gaps)
	}
	return o, nil
}

// Defaults of a check, which takes almost an hour with them. See docs/benchmarks.md for what they leave of the limits.
const (
	checkRepetitions = 3
	checkSubmissions = 200
	checkSeeds       = 5
)

func shorter(value int) string { return fmt.Sprintf("; %d with -check", value) }

// shorten sets the defaults of a check where the command line has no value.
func (o *options) shorten(flags *flag.FlagSet) {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, shorter := range map[string]struct {
		option *int
		value  int
	}{
		"repetitions": {&o.repetitions, checkRepetitions},
		"submissions": {&o.submissions, checkSubmissions},
		"seeds":       {&o.makespan.seeds, checkSeeds},
	} {
		if !given[name] {
			*shorter.option = shorter.value
		}
	}
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// run measures the parts that the options select.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 2 && args[0] == loopCommand {
		return loop(args[1])
	}
	if len(args) == 2 && args[0] == profileCommand {
		return runAgents(ctx, args[1], os.Stdin, stdout)
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	report := newReport(stdout, machine())
	progress := func(format string, args ...any) {
		fmt.Fprintf(stderr, "%s selfbench: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	}
	loops := 0
	if o.measures(partWrapper) || o.measures(partIsolation) || o.measures(partProfile) {
		if loops, err = calibrate(ctx); err != nil {
			return err
		}
		progress("the CPU loop has %d rounds", loops)
	}
	for n := range o.repetitions {
		if o.measures(partStack) {
			progress("repetition %d of %d: the stack", n+1, o.repetitions)
			if err := measureStack(ctx, o, report); err != nil {
				return err
			}
		}
		if o.measures(partWrapper) {
			progress("repetition %d of %d: the wrapper", n+1, o.repetitions)
			if err := measureWrapper(ctx, wrapperPlan{loops: loops, pairs: o.pairs, shortPairs: 20 * o.pairs}, report); err != nil {
				return err
			}
		}
	}
	if o.measures(partRate) {
		progress("the rate: %d turns of %d trivial commands", o.rate.turns, o.rate.jobs)
		if err := measureRate(ctx, o, o.rate, report, progress); err != nil {
			return err
		}
	}
	if o.measures(partGraphs) {
		progress("the graphs: %d trivial commands, with edges and without", o.graphs.nodes())
		if err := measureGraphs(ctx, o, o.graphs, report, progress); err != nil {
			return err
		}
	}
	if o.measures(partIsolation) {
		progress("the isolation: %d pairs of two commands", o.isolation.pairs)
		// An eighth of a second and a fifth, about.
		o.isolation.loops, o.isolation.forks = loops/8, 400
		if err := measureIsolation(ctx, o.isolation, report); err != nil {
			return err
		}
	}
	if o.measures(partProfile) {
		progress("the profiling agent: %s alone, %d pairs of a loop", o.profile.alone, o.profile.pairs)
		o.profile.loops = loops / 2
		if err := measureProfile(ctx, o.profile, report); err != nil {
			return err
		}
	}
	if o.measures(partMakespan) {
		if err := measureMakespan(ctx, o, o.makespan, report, progress); err != nil {
			return err
		}
	}
	if o.measures(partQueues) {
		if err := measureQueues(ctx, o, o.queues, report, progress); err != nil {
			return err
		}
	}
	if o.measures(partAccuracy) {
		if err := measureAccuracy(ctx, o, report, progress); err != nil {
			return err
		}
	}
	if o.measures(partVerdicts) {
		if err := measureVerdicts(ctx, o.verdicts, report, progress); err != nil {
			return err
		}
	}
	if o.measures(partPages) {
		if err := measurePages(ctx, o, o.pages, report, progress); err != nil {
			return err
		}
	}
	if o.measures(partResults) {
		if err := measureResults(ctx, o, o.results, report, progress); err != nil {
			return err
		}
	}
	if !o.check {
		return nil
	}
	if cores := disturbance(report.figures); cores > quietEnough {
		fmt.Fprintf(stderr, "note  other programs used %.2g cores meanwhile, so these are not the figures of an idle machine\n", cores)
	}
	broken := 0
	for _, v := range judge(append(limits(), verdictLimits(o.verdicts)...), report.figures) {
		if !o.measures(v.part) {
			continue
		}
		if !v.kept() {
			broken++
		}
		fmt.Fprintln(stderr, v)
	}
	if broken > 0 {
		return fmt.Errorf("%d limits of docs/benchmarks.md are broken", broken)
	}
	return nil
}

// measureStack measures a fresh stack: its resources when idle, the dispatch of jobs,
// and its resources when idle again.
func measureStack(ctx context.Context, o options, report *report) (err error) {
	s, err := livestack.Start(ctx, o.programs())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(err == nil)) }()
	if err := measureIdle(ctx, s, "fresh", o.idle, report); err != nil {
		return err
	}
	if err := measureDispatch(ctx, s, o.submissions, report); err != nil {
		return err
	}
	return measureIdle(ctx, s, "used", o.idle, report)
}

// machine describes this machine as keys of the benchmark format.
func machine() [][2]string {
	config := [][2]string{
		{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH},
		{"pkg", "github.com/benchloom/benchloom/internal/e2e/selfbench"},
		{"cores", fmt.Sprint(runtime.NumCPU())},
	}
	if facts, err := measure.ReadFacts("/"); err == nil {
		config = append(config, [2]string{"cpu", facts.CPUModel}, [2]string{"kernel", facts.Kernel}, [2]string{"virtual", fmt.Sprint(facts.Virtualised)})
	}
	return config
}
