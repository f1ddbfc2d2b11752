package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/inturns"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/revision"
	"github.com/benchloom/benchloom/internal/suite"
)

type benchFlags struct {
	selectionFlags
	comparisonFlags
	artifact, vs        string
	provider            string
	parameters, goroots []string
	cacheDir, cpus      string
	verbose             bool
	output              string
	maxTime             time.Duration
	// turns decides how long a comparison is measured; nil without --vs.
	turns *turns
}

func newBench() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:     "bench SUITE --artifact NEW [--vs OLD]",
		GroupID: groupLocal,
		Short:   "Measure or compare artifacts on this machine, without any service",
		Long: `Measures an artifact with the suite in the directory SUITE and prints median,
minimum and spread of each metric.

With --vs it compares the artifact NEW with the baseline OLD. Both are measured in
turns, in looks of 6, 8, 8, 12 and 12 pairs. After each look, every test case whose
metrics are all decided is left out. So each test case takes 12 to 92 iterations,
and its preparation 2 to 10 times; after the first look, the longest time to go is
shown. --max-time bounds it: what is open then is undecided. --iterations N measures
N pairs of each instead, and decides what they can decide.

Each metric is changed, has no difference, or is undecided, with the reason. Fewer
test cases are decided sooner: select them with --set, --benchmark and so on. The
metrics that decide are wall-time, cpu-time, max-rss, instructions:u, sizes, and
the units of benchmark outputs such as ns/op. --metric and --all choose what is
shown and change no verdict.

Artifacts are kept below the cache directory. Only one 'benchloom bench' may use a
cache directory at a time: two would disturb each other. Progress goes to standard
error. Ctrl-C ends the measurement; what is measured so far is judged and shown.

The exit code is 3 with --fail-on regression if a metric that is shown has changed
for the worse, else 1 if test cases fail or the measurement is ended.`,
		Example: `  benchloom bench suites/go --artifact 1.26.11 --vs 1.25.14 --set demo
  benchloom bench suites/go --artifact mine --goroot mine=$HOME/go --vs 1.26.11 --benchmark gin
  benchloom bench ./suite --artifact new --vs old --provider directory --param path=/builds/{tag}
  benchloom bench suites/go --artifact 1.26.11 -o benchfmt | benchstat -`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.artifact, "artifact", "", "artifact to measure, such as a version (required)")
	flags.StringVar(&f.vs, "vs", "", "baseline to compare with")
	f.selectionFlags.add(flags)
	f.comparisonFlags.add(cmd)
	flags.DurationVar(&f.maxTime, "max-time", 0, "with --vs: begin no look that would end later, such as 10m (default: no limit)")
	flags.StringVar(&f.provider, "provider", "", "artifact provider, instead of the suite's")
	flags.StringArrayVar(&f.parameters, "param", nil, "NAME=value for the provider (repeatable)")
	flags.StringArrayVar(&f.goroots, "goroot", nil, "TAG=DIR: use the Go toolchain in DIR as artifact TAG (repeatable)")
	flags.StringVar(&f.cacheDir, "cache-dir", "", "directory for artifacts and downloads (default: below the user's cache directory)")
	flags.StringVar(&f.cpus, "cpus", "", "CPUs to measure on, such as 2-3 (default: all)")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show the output of commands")
	outputFlag(cmd, &f.output, formatTable, formatJSON, formatBenchfmt, formatMarkdown)
	return cmd
}

func (f *benchFlags) run(cmd *cobra.Command, args []string) (err error) {
	options, err := f.options(cmd)
	if err != nil {
		return err
	}
	if options.SuiteDir, err = suiteDir(args); err != nil {
		return err
	}
	builds, cache, err := f.openCache(&options)
	if err != nil {
		return err
	}
	machine, sandbox, err := f.machine(cmd, cache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sandbox.Close()) }()
	options.Machine, builds.Machine = machine, machine
	progress := newBenchProgress(cmd.ErrOrStderr())
	options.Progress, options.Fetching = progress.measuring, progress.fetching
	if f.vs != "" {
		f.turns = &turns{pairs: options.Selection.Iterations, most: f.maxTime, progress: progress}
		options.Next = f.turns.next
	}
	measured, err := jobrun.Local(cmd.Context(), options)
	progress.end()
	nothing := measured == nil || len(measured.Results) == 0
	switch {
	case errors.Is(err, context.Canceled) && nothing:
		return errors.New("stopped before anything was measured")
	case errors.Is(err, context.Canceled):
		err = errors.New("stopped before the end; what is measured so far is shown")
	case err != nil && nothing:
		return suiteProblems(options.SuiteDir, err)
	}
	return errors.Join(err, f.report(cmd, measured))
}

func (f *benchFlags) options(cmd *cobra.Command) (jobrun.LocalOptions, error) {
	options := jobrun.LocalOptions{Provider: f.provider, Parameters: map[string]string{}}
	selection, err := f.read()
	if err != nil {
		return options, err
	}
	if err := f.check(cmd.Flags()); err != nil {
		return options, err
	}
	if f.artifact == "" {
		return options, usage(errors.New("no artifact: name one with --artifact, such as a version"))
	}
	if f.failOn != "" && f.vs == "" {
		return options, usage(errors.New("--fail-on needs a comparison: name the baseline with --vs"))
	}
	if cmd.Flags().Changed("max-time") && (f.maxTime <= 0 || f.vs == "" || selection.Iterations > 0) {
		return options, usage(errors.New("--max-time: use a duration above 0, with --vs and without --iterations"))
	}
	for _, p := range f.parameters {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return options, usage(fmt.Errorf("--param %q: write NAME=value", p))
		}
		if f.provider == "" {
			return options, usage(errors.New("--param belongs to --provider: name the provider, too"))
		}
		options.Parameters[name] = value
	}
	options.Selection = selection
	options.Tags = []string{f.artifact}
	if f.vs != "" {
		options.Tags = []string{f.vs, f.artifact} // the baseline first
	}
	if len(selection.Targets) == 0 {
		if options.Target, err = bench.HostTarget(runtime.GOOS, runtime.GOARCH); err != nil {
			return options, usage(err)
		}
	}
	return options, nil
}

// openCache opens the artifact cache and makes it the options' artifact source.
func (f *benchFlags) openCache(options *jobrun.LocalOptions) (builds *jobrun.LocalBuilds, dir string, err error) {
	dir = f.cacheDir
	if dir == "" {
		if dir, err = os.UserCacheDir(); err != nil {
			return nil, "", fmt.Errorf("finding the user's cache directory: %w; name one with --cache-dir", err)
		}
		dir = filepath.Join(dir, "benchloom")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, "", fmt.Errorf("--cache-dir: %w", err)
	}
	revisions := revision.New(filepath.Join(dir, "repositories"), os.Environ())
	revisions.Relative = true
	builds = &jobrun.LocalBuilds{Revisions: revisions}
	providers := append(artifact.DefaultProviders(), &artifact.Built{Source: builds})
	if builds.Cache, err = artifact.Open(artifact.Options{Dir: filepath.Join(dir, "artifacts"), Providers: providers, MaxEntries: maxCached}); err != nil {
		return nil, "", err
	}
	sources := artifactSources{cache: builds, goroots: map[string]string{}}
	for _, g := range f.goroots {
		tag, path, ok := strings.Cut(g, "=")
		if !ok || tag == "" || path == "" {
			return nil, "", usage(fmt.Errorf("--goroot %q: write TAG=DIR", g))
		}
		if sources.goroots[tag], err = filepath.Abs(path); err != nil {
			return nil, "", fmt.Errorf("--goroot %q: %w", g, err)
		}
	}
	options.Artifacts = sources
	return builds, dir, nil
}

// maxCached bounds the cached artifacts, of some 250 MB each.
const maxCached = 40

// artifactSources is an artifact cache in which goroots replace some artifacts.
type artifactSources struct {
	cache   jobrun.Artifacts
	goroots map[string]string
}

// Acquire returns an artifact, from the cache or from a directory of --goroot.
func (s artifactSources) Acquire(ctx context.Context, r artifact.Request, progress artifact.ProgressFunc) (*artifact.Handle, error) {
	if dir, ok := s.goroots[r.Tag]; ok {
		r.Provider, r.Parameters = artifact.GOROOT{}.Name(), map[string]string{"path": dir}
	}
	return s.cache.Acquire(ctx, r, progress)
}

// machine returns this machine and the sandbox in which it measures.
func (f *benchFlags) machine(cmd *cobra.Command, cacheDir string) (jobrun.Machine, *measure.Sandbox, error) {
	config := measure.SandboxConfig{Name: "bench", WorkDir: filepath.Join(cacheDir, "work"), Isolation: measure.Isolation{Off: true}}
	cpus := runtime.NumCPU()
	if f.cpus != "" {
		list, err := measure.ParseCPUList(f.cpus)
		if err != nil {
			return jobrun.Machine{}, nil, usage(fmt.Errorf("--cpus: %w", err))
		}
		config.CPUs, cpus = list, len(list)
	}
	sandbox, err := measure.NewSandbox(config)
	if errors.Is(err, measure.ErrSlotBusy) {
		return jobrun.Machine{}, nil, errors.New("another 'benchloom bench' is measuring; wait for it, or use another --cache-dir and other --cpus")
	}
	if err != nil {
		return jobrun.Machine{}, nil, err
	}
	if _, err := sandbox.Sweep(cmd.Context()); err != nil {
		return jobrun.Machine{}, nil, errors.Join(fmt.Errorf("stopping processes of an earlier run: %w", err), sandbox.Close())
	}
	m := jobrun.Machine{
		Sandbox: sandbox, Counters: measure.ProbeCounters(), CPUs: cpus, CacheDir: filepath.Join(cacheDir, "suites"),
		Environ: os.Environ(), Now: time.Now,
		Readings: machine.NewReader(machine.Config{Root: "/", CPUs: config.CPUs, Now: time.Now}),
	}
	if f.verbose {
		m.Log = visible(cmd.ErrOrStderr())
	}
	return m, sandbox, nil
}

func (f *benchFlags) report(cmd *cobra.Command, measured *jobrun.LocalResults) error {
	var verdicts *inturns.Judgement
	if f.turns != nil {
		verdicts = f.turns.judge(measured)
	}
	report, err := cli.NewLocalReport(measured, verdicts, f.metrics, f.all)
	var mistyped error
	if errors.Is(err, bench.ErrInvalid) {
		// A mistyped metric must not lose the measurements.
		mistyped = usage(err)
		report, err = cli.NewLocalReport(measured, verdicts, nil, f.all)
	}
	if err != nil {
		return err
	}
	if err := f.write(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	var failed, regressed error
	if n := report.Failed(); n > 0 {
		failed = fmt.Errorf("%s failed", cli.Plural(n, "test case"))
	}
	if report.Comparison != nil {
		regressed = f.verdict(cli.Verdicts(*report.Comparison))
	}
	return errors.Join(mistyped, regressed, failed)
}

func (f *benchFlags) write(out io.Writer, report cli.LocalReport) error {
	switch f.output {
	case formatJSON:
		return cli.WriteJSON(out, report)
	case formatBenchfmt:
		return report.WriteBenchfmt(out)
	case formatMarkdown:
		return report.WriteMarkdown(out, f.tableOptions(io.Discard))
	}
	return report.WriteText(out, f.tableOptions(out))
}

// benchProgress shows the progress of a local run: on a terminal one line, redrawn
// in place; elsewhere a line for each finished test case.
type benchProgress struct {
	w      io.Writer
	screen *cli.Screen
	last   string
	// look describes the current look of a comparison.
	look string
}

func newBenchProgress(w io.Writer) *benchProgress {
	p := &benchProgress{w: w}
	if terminalSize(w).Width > 0 {
		p.screen = cli.NewScreen(w)
	}
	return p
}

func (p *benchProgress) fetching(a artifact.Progress) {
	line := a.Step
	if p.screen != nil && a.Total > 0 {
		line = cli.Bar(int(a.Done>>10), int(a.Total>>10), 20) + " " + line
	}
	p.line(line)
}

func (p *benchProgress) measuring(m jobrun.Progress) {
	if p.screen == nil {
		if m.Phase != jobrun.Fetching {
			p.line(fmt.Sprintf("%d/%d test cases, %s %s", m.Done, m.Total, m.Phase, suite.VariantOf(m.TestCase).Benchmark))
		}
		return
	}
	line := fmt.Sprintf("%s %d/%d %s", cli.Bar(m.Done, m.Total, 20), m.Done, m.Total, m.Phase)
	if m.TestCase.Benchmark != "" {
		line += " " + m.TestCase.String()
	}
	if m.Subject != "" {
		line += ", " + m.Subject
	}
	if m.Iteration > 0 {
		line += fmt.Sprintf(", %d/%d", m.Iteration, m.Iterations)
	}
	if p.look != "" {
		line = p.look + " " + line
	}
	p.line(line)
}

// line writes text unless it repeats the last line. Write errors are ignored: they
// are no reason to stop measuring.
func (p *benchProgress) line(text string) {
	text = cli.Printable(text)
	if text == p.last {
		return
	}
	p.last = text
	if p.screen == nil {
		fmt.Fprintln(p.w, text)
		return
	}
	if width := terminalSize(p.w).Width; width > 0 && len([]rune(text)) > width {
		text = string([]rune(text)[:width])
	}
	_ = p.screen.Draw([]string{text})
}

// end clears the line.
func (p *benchProgress) end() {
	if p.screen != nil {
		_ = p.screen.Draw(nil)
	}
}
