package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

// selectionFlags select a part of a suite.
type selectionFlags struct {
	selection bench.Selection
	targets   []string
	// changed reports whether a flag is given; nil if only addNames was called.
	changed func(flag string) bool
}

func (f *selectionFlags) add(flags *pflag.FlagSet) {
	f.changed = flags.Changed
	flags.StringVar(&f.selection.Set, "set", "", "named set of the suite; the other flags narrow or override it")
	flags.IntVar(&f.selection.Iterations, "iterations", 0, "iterations of each test case (default: the suite's)")
	f.addNames(flags)
}

// addNames adds the flags that narrow test cases by their parts.
func (f *selectionFlags) addNames(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.selection.Benchmarks, "benchmark", nil, "only these benchmarks")
	flags.StringSliceVar(&f.selection.Profiles, "profile", nil, "only these profiles")
	flags.StringSliceVar(&f.selection.Scenarios, "scenario", nil, "only these scenarios")
	flags.StringSliceVar(&f.selection.Backends, "backend", nil, "only these backends")
	flags.StringSliceVar(&f.targets, "target", nil, "only these targets")
}

func (f *selectionFlags) read() (bench.Selection, error) {
	s := f.selection
	if s.Iterations < 0 || s.Iterations == 0 && f.changed != nil && f.changed("iterations") {
		return s, usage(fmt.Errorf("--iterations %d: use a number above 0", s.Iterations))
	}
	for _, name := range f.targets {
		target, err := bench.ParseTarget(name)
		if err != nil {
			return s, usage(err)
		}
		s.Targets = append(s.Targets, target)
	}
	return s, nil
}

type submitFlags struct {
	serviceFlags
	selectionFlags
	adhoc, ready       bool
	file               string
	requestType        string
	parent             string
	pr                 int
	project, date, key string
	reason             string
	sizeClass          int
	queue, branch      string
	shape              string
	timeout            time.Duration
	timeoutGiven       bool
	environ            []string
	versus             string
	comparison         comparisonFlags
	where              constraintFlags
	profiling          bool
	wait, quiet        bool
	output             string

	// jobs are the jobs of the file, completed by defaults.
	jobs     []apiclient.NewJob
	defaults apiclient.Command
}

func newSubmit() *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:     "submit PROJECT [TAG] | --adhoc -- COMMAND [ARG...] | --file FILE",
		GroupID: groupUse,
		Short:   "Submit an artifact or a command to be benchmarked",
		Long: `Requests that the artifact TAG of a project, usually a release, be benchmarked, and
prints the ID of the request. Submitting the same artifact again returns the same
request.

--type master submits a merged commit, which is measured after its parent, and
--type try a build of proposed changes. A try build waits until its CI system
reports that its artifacts are ready ('benchloom request artifacts-ready'), and need
not have a TAG until then. --ready says that the artifacts exist already.

With --adhoc, the work is your own: it needs no admission and, without --vs, is
compared with nothing. It is either a command after '--', which runs in an empty
directory without a shell, or, with PROJECT and TAG, a part of the project's suite.

With --file, it is a batch of up to 100000 commands: one JSON object per line, with
argv and optionally name, env, timeout, iterations, target, size_class, queue,
shape and constraints (machines, groups, type, devices, labels, memory, cpus,
cache_dirs). Flags supply what a line omits. The commands become the jobs of one
request: all of them are accepted, or none.

With --vs BASELINE, each test case of both artifacts is measured in turns,
iteration by iteration, on one machine in one run, even if results are stored:
artifacts measured one after the other also differ by what else happens on a
shared machine. With --wait, the comparison is shown at the end, and --fail-on
regression exits with code 3 if there is one.

--wait shows progress until the request ends; the exit code is 4 if its outcome is
not success. Ctrl-C stops the waiting, not the request.`,
		Example: `  benchloom submit go 1.26.0
  benchloom submit go 1.26.0 --set demo --wait
  benchloom submit go 1.26.0 --benchmark gin,lo --profile build --iterations 10
  benchloom submit go 5f1c0de --type master --parent 4e0b9cd
  benchloom submit go --type try --pr 1234
  benchloom submit --adhoc go 1.26.0 --vs 1.25.14 --benchmark gin --wait
  benchloom submit --adhoc --memory 8g --require-label gpu=a100 -- ./train.sh
  benchloom submit --adhoc --size-class 4 --timeout 5m --env MODE=fast -- ./measure.sh --quick
  benchloom submit --file jobs.jsonl --timeout 5m --key nightly-2026-05-01
  echo '{"name":"quick","argv":["./x","--quick"]}' | benchloom submit --file -`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	f.serviceFlags.add(flags)
	f.selectionFlags.add(flags)
	flags.BoolVar(&f.adhoc, "adhoc", false, "your own work, such as a single command after '--'")
	flags.StringVarP(&f.file, "file", "f", "", "file of commands, one JSON object per line; - for standard input")
	flags.StringVar(&f.versus, "vs", "", "with --adhoc, PROJECT and TAG: baseline to measure in turns with TAG and compare with it")
	f.comparison.addFailOn(cmd)
	flags.StringVar(&f.project, "project", "", "project of a command (default "+apiclient.AdHocProject+")")
	flags.StringVar(&f.requestType, "type", "", "type of request: release (default), master or try")
	flags.StringVar(&f.parent, "parent", "", "tag of the commit that a master or try artifact was built from (default: from the commit source)")
	flags.IntVar(&f.pr, "pr", 0, "pull request of a master or try artifact")
	flags.BoolVar(&f.ready, "ready", false, "the artifacts of a try build exist already")
	flags.StringVar(&f.date, "date", "", "date of the release or commit, YYYY-MM-DD")
	flags.StringVar(&f.key, "key", "", "idempotency key: the same key gives the same request")
	flags.StringVar(&f.reason, "reason", "", "why, for the audit")
	flags.StringVar(&f.queue, "queue", "", "queue for the jobs (default: your own; for releases and commits, their project's)")
	flags.StringVar(&f.branch, "branch", "", "branch that the work belongs to, for account limits by branch")
	flags.StringVar(&f.shape, "shape", "", "shape; commands of one shape share learned sizes (default: those with the same command line)")
	flags.IntVar(&f.sizeClass, "size-class", 0, "size class of ad-hoc work (default: the project's)")
	f.where.add(flags)
	flags.DurationVar(&f.timeout, "timeout", 0, "time limit of one iteration of a command (default: the project's, 30m unless configured)")
	flags.StringArrayVar(&f.environ, "env", nil, "NAME=value for a command (repeatable)")
	flags.BoolVar(&f.profiling, "profiling", true, "record the machine and the job beside each run, or --profiling=false (default: the project's, true unless configured)")
	flags.BoolVar(&f.wait, "wait", false, "wait until the request ends and show progress")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only the ID")
	outputFlag(cmd, &f.output, formatTable, formatJSON)
	return cmd
}

func (f *submitFlags) run(cmd *cobra.Command, args []string) error {
	wanted, err := f.request(cmd, args)
	if err != nil {
		return err
	}
	if f.file != "" {
		if f.jobs, err = f.readJobs(cmd.InOrStdin()); err != nil {
			return err
		}
	}
	api, err := f.connect()
	if err != nil {
		return err
	}
	created, err := f.create(cmd, api, wanted)
	if err != nil {
		return reached(err)
	}
	out := cmd.OutOrStdout()
	for _, w := range created.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", cli.Printable(w))
	}
	switch {
	case f.quiet:
		fmt.Fprintln(out, created.ID)
	case f.output == formatJSON && !f.wait:
		return cli.WriteJSON(out, created)
	case f.output == formatJSON:
	case created.Created:
		fmt.Fprintf(out, "request %s: %s\n", created.ID, cli.Printable(cli.Subject(created)))
	default:
		fmt.Fprintf(out, "request %s: %s was submitted before; it is %s\n", created.ID, cli.Printable(cli.Subject(created)), cli.Standing(created))
	}
	if !f.wait {
		if !f.quiet {
			fmt.Fprintf(out, "watch it with 'benchloom status %s --watch'\n", created.ID)
		}
		return nil
	}
	w := &watcher{api: api, refs: []string{string(created.ID)}, quiet: f.quiet, out: cmd.ErrOrStderr()}
	ended, err := w.run(cmd.Context())
	if err != nil {
		return f.interrupted(cmd, created, err)
	}
	if f.output == formatJSON {
		if err := cli.WriteJSON(out, ended[0]); err != nil {
			return err
		}
	}
	if f.versus == "" {
		return outcomes(ended)
	}
	return errors.Join(outcomes(ended), f.compare(cmd, api, ended[0]))
}

// compare shows the comparison of artifacts measured in turns. A request that ended
// before any measurement has no baseline and nothing to show.
func (f *submitFlags) compare(cmd *cobra.Command, api *apiclient.Client, d apiclient.RequestDetail) error {
	if d.Baseline == "" {
		return nil
	}
	query := apiclient.CompareQuery{
		Project: d.Project, A: d.Baseline, B: d.Tag, OnlyInTurns: true, OnlySignificant: true, Benchmarks: d.Selection.Benchmarks,
		Profiles: d.Selection.Profiles, Scenarios: d.Selection.Scenarios, Backends: d.Selection.Backends, Targets: d.Selection.Targets,
	}
	if f.output == formatJSON || f.quiet { // only the verdict matters
		return silentCompare(cmd.Context(), api, query, &f.comparison)
	}
	fmt.Fprintln(cmd.OutOrStdout())
	return runCompare(cmd, api, query, &f.comparison, formatTable)
}

// interrupted returns the error of a wait that ended before the request.
func (f *submitFlags) interrupted(cmd *cobra.Command, r apiclient.Request, err error) error {
	if cmd.Context().Err() == nil {
		return reached(err)
	}
	return fmt.Errorf("stopped waiting for request %s, which continues; 'benchloom request cancel %s --reason …' ends it", r.ID, r.ID)
}

// request returns the request described by the flags.
func (f *submitFlags) request(cmd *cobra.Command, args []string) (apiclient.NewRequest, error) {
	selection, err := f.read()
	if err != nil {
		return apiclient.NewRequest{}, err
	}
	class := bench.SizeClass(0)
	if cmd.Flags().Changed("size-class") {
		if class, err = bench.NewSizeClass(f.sizeClass); err != nil {
			return apiclient.NewRequest{}, usage(fmt.Errorf("--size-class: %w", err))
		}
	}
	if err := f.checkQueue(); err != nil {
		return apiclient.NewRequest{}, err
	}
	f.timeoutGiven = cmd.Flags().Changed("timeout")
	wanted := apiclient.NewRequest{
		IdempotencyKey: f.key, Branch: f.branch, Reason: f.reason, PlacementWish: apiclient.PlacementWish{SizeClass: class, Queue: f.queue, Shape: f.shape},
	}
	if cmd.Flags().Changed("profiling") {
		wanted.Profiling.Enabled = &f.profiling
	}
	if f.where.given(cmd.Flags().Changed) && !f.adhoc && f.file == "" {
		return wanted, usage(errors.New("constraints apply to --adhoc and --file only; those of a project's requests are in its configuration"))
	}
	if _, err := bench.ParseSizedType(f.requestType); err == nil {
		return wanted, usage(fmt.Errorf("--type %s: this is a machine type; name it with --machine-type", f.requestType))
	}
	if err := f.where.complete(&wanted, cmd.Flags().Changed); err != nil {
		return wanted, err
	}
	switch dash := cmd.ArgsLenAtDash(); {
	case f.versus != "" && (!f.adhoc || dash >= 0 || f.file != ""):
		return wanted, usage(errors.New("--vs belongs to the ad-hoc measurement of an artifact: benchloom submit --adhoc PROJECT TAG --vs BASELINE"))
	case f.comparison.failOn != "" && (f.versus == "" || !f.wait):
		return wanted, usage(errors.New("--fail-on needs a comparison: add --vs BASELINE and --wait"))
	case f.file != "" && len(args) > 0:
		return wanted, usage(errors.New("--file holds the commands, so there are no other arguments: benchloom submit --file FILE"))
	case f.file != "":
		return f.command(wanted, selection, nil)
	case f.adhoc && dash == 0 && len(args) > 0:
		return f.command(wanted, selection, args)
	case dash >= 0:
		return wanted, usage(errors.New("a command after '--' needs --adhoc and no other arguments: benchloom submit --adhoc -- COMMAND [ARG...]"))
	case f.adhoc && len(args) == 0:
		return wanted, usage(errors.New("--adhoc needs a command after '--', or a project and a tag"))
	}
	wanted.Type = bench.Release
	if f.requestType != "" {
		if wanted.Type, err = bench.ParseRequestType(f.requestType); err != nil {
			return wanted, usage(fmt.Errorf("--type: %w", err))
		}
	}
	if f.adhoc {
		if f.requestType != "" && wanted.Type != bench.AdHoc {
			return wanted, usage(fmt.Errorf("--adhoc and --type %s exclude each other: leave one of them out", f.requestType))
		}
		wanted.Type = bench.AdHoc
	}
	if wanted.Type == bench.Try && len(args) == 1 {
		args = append(args, "")
	}
	if err := exactArgs(2)(cmd, args); err != nil {
		return wanted, err
	}
	for flag, given := range map[string]bool{"--project": f.project != "", "--timeout": f.timeout != 0, "--env": len(f.environ) > 0, "--shape": f.shape != ""} {
		if given {
			return wanted, usage(fmt.Errorf("%s belongs to a command: benchloom submit --adhoc -- COMMAND [ARG...]", flag))
		}
	}
	if class != 0 && !f.adhoc {
		return wanted, usage(errors.New("--size-class belongs to --adhoc; the size class of a project's requests is in its configuration"))
	}
	wanted.Project, wanted.Tag, wanted.Selection = args[0], args[1], selection
	wanted.Parent, wanted.PR, wanted.ArtifactsReady, wanted.Versus = f.parent, f.pr, f.ready, f.versus
	errs := []error{bench.CheckName("project", wanted.Project)}
	for _, tag := range []string{wanted.Tag, wanted.Parent, wanted.Versus} {
		if tag != "" {
			errs = append(errs, bench.CheckTag(tag))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return wanted, usage(err)
	}
	if f.date != "" {
		date, err := time.Parse(time.DateOnly, f.date)
		if err != nil {
			return wanted, usage(fmt.Errorf("--date %q: write it as YYYY-MM-DD", f.date))
		}
		wanted.CommitDate = &date
	}
	return wanted, nil
}

// command completes the request for a command or a file of commands.
func (f *submitFlags) command(wanted apiclient.NewRequest, selection bench.Selection, argv []string) (apiclient.NewRequest, error) {
	if selection.Set != "" || len(selection.Benchmarks)+len(selection.Profiles)+len(selection.Scenarios)+len(selection.Backends) > 0 || f.date != "" {
		return wanted, usage(errors.New("a command has no set, benchmarks, profiles, scenarios, backends or date: leave these flags out"))
	}
	if f.requestType != "" || f.parent != "" || f.pr != 0 || f.ready {
		return wanted, usage(errors.New("a command has no type, parent, pull request or artifacts: leave these flags out"))
	}
	if len(selection.Targets) > 1 {
		return wanted, usage(errors.New("a command runs on one target: name one"))
	}
	if len(selection.Targets) == 1 {
		wanted.Target = selection.Targets[0]
	}
	if f.timeout < 0 || f.timeout%time.Second != 0 || f.timeout == 0 && f.timeoutGiven {
		return wanted, usage(fmt.Errorf("--timeout %s: use whole seconds above zero, such as 90s or 5m", f.timeout))
	}
	wanted.Project, wanted.Type = f.project, bench.AdHoc
	command := apiclient.Command{Argv: argv, TimeoutSeconds: int(f.timeout / time.Second), Iterations: selection.Iterations}
	for _, e := range f.environ {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return wanted, usage(fmt.Errorf("--env %q: write NAME=value", e))
		}
		if command.Env == nil {
			command.Env = map[string]string{}
		}
		command.Env[name] = value
	}
	if f.file != "" {
		f.defaults = command // for each line
		command.Argv = []string{"any"}
	} else {
		wanted.Command = &command
	}
	if err := command.Check(); err != nil {
		return wanted, usage(err)
	}
	return wanted, nil
}

// shownFailures bounds the failed jobs that are named.
const shownFailures = 20

// outcomes returns an error if a request did not succeed.
func outcomes(ended []apiclient.RequestDetail) error {
	var errs []error
	for _, d := range ended {
		if d.Outcome == bench.Success {
			continue
		}
		text := fmt.Sprintf("request %s (%s) ended with %s", d.ID, cli.Printable(cli.Subject(d.Request)), d.Outcome)
		if d.Message != "" {
			text += ": " + cli.Printable(d.Message)
		}
		if hint := fmt.Sprintf("'benchloom status %s'", d.ID); !strings.Contains(text, hint) {
			text += "; " + hint + " shows more"
		}
		shown := 0
		for _, j := range d.Jobs {
			if j.Status == bench.JobFailure && j.Message != "" && shown < shownFailures {
				text += fmt.Sprintf("\n  job %s: %s", strings.TrimSpace(string(j.Key)+" "+cli.Printable(j.Name)), cli.Printable(j.Message))
				shown++
			}
		}
		if more := d.Progress.JobsFailed - shown; shown == shownFailures && more > 0 {
			text += fmt.Sprintf("\n  and %d more: 'benchloom request jobs %s --status failure'", more, d.ID)
		}
		errs = append(errs, errors.New(text))
	}
	if len(errs) > 0 {
		return &exitError{exitOutcome, errors.Join(errs...)}
	}
	return nil
}
