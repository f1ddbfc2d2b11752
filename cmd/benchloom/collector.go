package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/accounts"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/metrics"
	"github.com/benchloom/benchloom/internal/probe"
	"github.com/benchloom/benchloom/internal/revision"
	"github.com/benchloom/benchloom/internal/tune"
	"github.com/benchloom/benchloom/starter"
	"github.com/benchloom/benchloom/workers"
)

// newCollectorGroup returns the command that runs a collector, also available as
// its subcommand run, with the commands about collectors below it.
func newCollectorGroup() *cobra.Command {
	cmd, run := newCollector(), newCollector()
	run.Use, run.GroupID, run.Short = "run", "", "Run benchmarks on this machine"
	run.Example = `  benchloom collector run
  benchloom collector run --state-dir /var/lib/benchloom-collector --cpus 1-8`
	cmd.AddCommand(run)
	cmd.AddCommand(collectorClientCommands()...)
	return cmd
}

type collectorFlags struct {
	*processFlags
	name, target, pool, cpus  string
	bounds                    boundFlags
	isolation                 isolationFlags
	class                     int
	stateDir, artifactDir     string
	artifactSize              string
	artifactCount             int
	api, tokenFile, namespace string
	require                   []string
	labels                    map[string]string
	benchmarkSets             []string
	coLocated, exitWhenIdle   bool
	shared                    sharedFlags
	machine                   machineFlags
	cacheRoot, keepCaches     string
	cacheSize                 string
	passEnv                   []string
	transport                 transportFlags

	enrolled *enrolment // nil if not enrolled
	temporal string     // address of Temporal; if empty, the environment's
	// elsewhere is set once this process keeps off the CPUs of benchmarks.
	elsewhere bool
}

func newCollector() *cobra.Command {
	f := collectorFlags{processFlags: new(processFlags)}
	cmd := &cobra.Command{
		Use:     "collector",
		GroupID: groupRun,
		Short:   "Run a collector on this machine, or manage collectors",
		Long: `Registers this machine, or a slot of it, as a collector and takes jobs from its
pool's task queue, one at a time. An enrolled machine ('benchloom collector enroll')
needs no flags: the API has its configuration. Any other machine needs
TEMPORAL_ADDRESS, the address of the API, a name and the token that collectors
share, for which it gets its own; that one is kept in the state directory. None of
these is visible to benchmarks.

With --classes, the machine is a shared host with slots NAME-c<class>-<n>, as many
of each class as fit into --memory. The slots run jobs side by side within that
memory. Their results are co-located: they are compared only with other co-located
results.

The exit code is 6 if the API refuses the collector, and 75 if the collector must
run another version, which is then named in the file wanted-version of the state
directory.`,
		Example: `  benchloom collector --name bench-1 --size-class 8 --api https://bench.example.com:7480 --token-file /etc/benchloom/token
  benchloom collector --name big-1 --memory 20g --classes 1,2,4
  benchloom collector list`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	f.add(flags)
	f.addMetrics(flags)
	flags.StringVar(&f.name, "name", "", "name, unique among all collectors (default: the enrolled name)")
	flags.StringVar(&f.target, "target", hostTarget(), "target tuple to measure")
	flags.IntVar(&f.class, "size-class", 0, "size class (default: number of CPUs)")
	flags.StringVar(&f.pool, "pool", "default", "pool of interchangeable collectors")
	flags.StringVar(&f.cpus, "cpus", "", "CPUs for benchmarks, such as 2-5,8 (default: all)")
	f.bounds.add(flags)
	f.isolation.add(flags)
	flags.StringVar(&f.stateDir, "state-dir", env("BENCHLOOM_COLLECTOR_DIR", defaultCollectorDir), "directory for enrolment, spool, work files and caches")
	flags.StringVar(&f.artifactDir, "artifact-dir", "", "artifact cache, shared by the collectors of a machine (default: below the state directory)")
	flags.StringVar(&f.artifactSize, "artifact-cache-size", "50GiB", "maximum size of the artifact cache")
	flags.IntVar(&f.artifactCount, "artifact-cache-count", 100, "maximum number of cached artifacts")
	flags.StringVar(&f.api, "api", env("BENCHLOOM_URL", "http://127.0.0.1:7480"), "address of the API")
	f.transport.add(flags)
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the collector's token, or the one that collectors share to get their own (default: $BENCHLOOM_TOKEN)")
	flags.StringVar(&f.namespace, "namespace", env("TEMPORAL_NAMESPACE", starter.DefaultNamespace), "Temporal namespace")
	flags.StringSliceVar(&f.require, "require", nil, "counters that the machine must have, such as instructions:u")
	flags.BoolVar(&f.coLocated, "co-located", false, "other work runs on this machine: compare results only with co-located ones, and repeat no disturbed iteration")
	labelFlag(flags, &f.labels, "label", "label of the machine, such as rack=2, unless invited (repeatable)")
	flags.StringSliceVar(&f.benchmarkSets, "benchmark-set", nil, "benchmark sets that the machine is meant for, unless invited; for display only: projects bind sets to pools")
	f.shared.add(flags)
	f.machine.add(flags, ", unless invited")
	flags.StringVar(&f.cacheRoot, "cache-root", "", "directory whose subdirectories, two levels deep, are reported as caches (default: the directory caches below the state directory, by project and suite)")
	flags.StringVar(&f.keepCaches, "keep-caches", "30d", "how long cache directories of suites that no job uses are kept: days, or forever")
	flags.StringSliceVar(&f.passEnv, "pass-env", passEnvDefault(), "variable of this collector's environment that suites may read when they prepare and build (pass_env), besides PATH, HOME, GO*, SSL_CERT_*, SSH_AUTH_SOCK and those of proxies; NAME* is all that begin so (repeatable; default: $BENCHLOOM_PASS_ENV, separated by commas)")
	flags.StringVar(&f.cacheSize, "cache-size", "", "what suites may keep on this collector together, such as 10GiB, or none: beyond it, what is unused for longest is removed (default: half of --disk, and of --files)")
	flags.BoolVar(&f.exitWhenIdle, "exit-when-idle", false, "exit with code 0 once no job is waiting")
	return cmd
}

func (f *collectorFlags) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	log, err := f.logger(cmd)
	if err != nil {
		return err
	}
	if err := f.takeEnrolment(cmd.Flags().Changed); err != nil {
		return err
	}
	slots, err := f.slots()
	if err != nil {
		return usage(err)
	}
	reserve := f.reserve()
	f.short = func() error { return reserve.Look(f.stateDir) }
	m, err := metrics.New("collector", version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := f.serveMetrics(ctx, m, log); err != nil {
		return err
	}
	api, err := f.connect(ctx, slots)
	if err != nil {
		return f.end(err)
	}
	restoreInterrupted(ctx, newTuner(tune.Machine{Root: "/"}), log)
	elsewhere, err := f.keepOff(ctx, log)
	if err != nil {
		return err
	}
	collectors := make([]workers.Collector, len(slots))
	for i, slot := range slots {
		slot.elsewhere = elsewhere
		c, machine, err := slot.open(ctx, api, m, log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, machine.Close()) }()
		collectors[i] = c
	}
	f.stuck = func() error { return stuckOf(collectors) }
	if !f.shared.on() {
		collectors[0].OnReady = f.isReady
		return f.end(collectors[0].Run(ctx))
	}
	if err := share(collectors, slots); err != nil {
		return err
	}
	return f.end(workers.Host{Slots: collectors, OnReady: f.isReady}.Run(ctx))
}

var errNoOtherCPU = errors.New("it may use no other")

// keepOff keeps this process off the CPUs of its benchmarks, all of which have those of --cpus, and reports whether it did.
func (f *collectorFlags) keepOff(ctx context.Context, log *slog.Logger) (bool, error) {
	config, err := f.sandbox()
	if err != nil {
		return false, usage(err)
	}
	kept, err := measure.Avoid(config.CPUs)
	if !kept && len(config.CPUs) > 0 {
		log.WarnContext(ctx, "this process shares the CPUs of benchmarks", "cpus", config.CPUs, "reason", cmp.Or(err, errNoOtherCPU))
	}
	return kept, nil
}

// passEnvDefault returns the variables that $BENCHLOOM_PASS_ENV releases: collectors of 'benchloom up' get it from there.
func passEnvDefault() []string {
	return strings.FieldsFunc(os.Getenv("BENCHLOOM_PASS_ENV"), func(r rune) bool { return r == ',' || r == ' ' })
}

// stuckOf returns why a collector of this process takes no jobs any more.
func stuckOf(collectors []workers.Collector) error {
	for _, c := range collectors {
		if why := c.Jobs.Stuck(); why != "" {
			return fmt.Errorf("collector %s takes no jobs: %s; end what survives, or restart the machine, and start the collector again", c.Registration.Name, why)
		}
	}
	return nil
}

// slots returns the flags of each collector of this process: one per slot of a
// shared host, else f itself. It checks them without touching the machine.
func (f *collectorFlags) slots() ([]*collectorFlags, error) {
	if _, err := f.sandbox(); err != nil {
		return nil, err
	}
	if f.shared.on() {
		return f.shared.slots(f)
	}
	if f.shared.classMemory != "" {
		return nil, errors.New("--class-memory is for shared hosts: name their size classes with --classes")
	}
	return []*collectorFlags{f}, nil
}

// open locks the slot and returns its collector. The caller closes the machine.
func (f *collectorFlags) open(ctx context.Context, api *apiclient.Client, m *metrics.Metrics, log *slog.Logger) (_ workers.Collector, _ *workers.Machine, err error) {
	var c workers.Collector
	config, err := f.sandbox()
	if err != nil {
		return c, nil, usage(err)
	}
	lease, err := f.lease(ctx, log)
	if err != nil {
		return c, nil, err
	}
	var account *accounts.Account
	if lease != nil { // held as long as this process lives
		account = &lease.Account
		config.User = &measure.User{UID: account.UID, GID: account.GID}
	}
	if err := f.directories(account, config.WorkDir); err != nil {
		return c, nil, fmt.Errorf("state directory %s of collector %s cannot be used: %w; make it writable for this user, or name another with --state-dir", f.stateDir, f.name, err)
	}
	if err := f.view(&config, account); err != nil {
		return c, nil, err
	}
	config.Lend = f.elsewhere && !f.shared.on() // else other slots of this process use these CPUs
	// Processes left by a killed predecessor would disturb every measurement:
	// nothing starts before they are dead.
	machine, err := workers.OpenMachine(ctx, workers.MachineConfig{
		Sandbox: config, CoLocated: f.coLocated, Elsewhere: f.elsewhere, Require: counters(f.require), Environ: os.Environ(), PassEnv: append(jobrun.DefaultPassEnv(), f.passEnv...), Log: log, Reserve: f.reserve(),
	})
	if _, lacking := errors.AsType[*measure.MissingCountersError](err); lacking {
		return c, nil, fmt.Errorf("collector %s lacks counters that --require names: %w; make them available, use a machine that has them, or require fewer", f.name, err)
	}
	if err != nil {
		return c, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, machine.Close())
		}
	}()
	log.InfoContext(ctx, "limits of benchmarks", "collector", f.name, "isolation", machine.Facts.Isolation, "limits", boundsText(config))
	kept, err := bench.ParseKept(f.keepCaches)
	if err != nil {
		return c, nil, usage(fmt.Errorf("--keep-caches: %w", err))
	}
	jobs, err := f.jobs(machine, api, log)
	if err != nil {
		return c, nil, err
	}
	if jobs.CacheLimit, err = f.cacheLimit(config); err != nil {
		return c, nil, usage(err)
	}
	jobs.Name, jobs.API, jobs.Log = f.name, api, log
	if err := f.reachable(account, machine.Unenforced, config.WorkDir, f.artifactDir, filepath.Join(f.stateDir, "suites")); err != nil {
		return c, nil, err
	}
	programs, err := machine.Programs(ctx)
	if err != nil {
		return c, nil, fmt.Errorf("trying the programs of profilers: %w", err)
	}
	for _, p := range programs {
		if !p.Works() {
			log.InfoContext(ctx, "a profiler cannot be used here", "program", p.Name, "reason", p.Reason, "remedy", p.Remedy)
		}
	}
	registration, err := f.registration(machine, programs)
	if err != nil {
		return c, nil, err
	}
	dial := func(ctx context.Context, withToken bool) (client.Client, error) {
		connection := starter.Connection{
			Address: f.temporal, Namespace: f.namespace, Identity: f.name, Log: workers.Warnings(log), Metrics: m.SDK,
			GRPC: []grpc.DialOption{workers.PatientHeartbeats(log)},
		}
		if withToken {
			connection.Token = api.Token()
		}
		temporal, err := starter.Dial(ctx, connection)
		if err != nil {
			return nil, &exitError{exitUnreached, err}
		}
		return temporal, nil
	}
	return workers.Collector{Dial: dial, API: api, Registration: registration, Jobs: jobs, Log: log, ExitWhenIdle: f.exitWhenIdle, CacheRoot: f.cacheRoot, KeepCaches: kept}, machine, nil
}

// takeEnrolment fills in flags from the state directory's enrolment. Flags that
// were given take precedence.
func (f *collectorFlags) takeEnrolment(given func(flag string) bool) error {
	e, err := readEnrolment(f.stateDir)
	if e == nil || err != nil {
		return err
	}
	f.enrolled = e
	for flag, is := range map[string]struct {
		value *string
		is    string
	}{
		"name": {&f.name, e.Name}, "api": {&f.api, e.API}, "token-file": {&f.tokenFile, filepath.Join(f.stateDir, ownTokenFile)},
		// Configured at the API, unless a flag is given.
		"target": {&f.target, ""}, "pool": {&f.pool, ""},
	} {
		if !given(flag) {
			*is.value = is.is
		}
	}
	f.transport.take(e)
	if os.Getenv("TEMPORAL_ADDRESS") == "" {
		f.temporal = e.Temporal
	}
	if !given("namespace") && os.Getenv("TEMPORAL_NAMESPACE") == "" {
		f.namespace = e.Namespace
	}
	return nil
}

// end returns err with its exit code. It records the wanted version for the
// wrapper.
func (f *collectorFlags) end(err error) error {
	if outdated, ok := errors.AsType[*workers.OutdatedError](err); ok {
		if err := replaceFile(filepath.Join(f.stateDir, wantedFile), []byte(outdated.Wanted+"\n")); err != nil {
			return err
		}
		return &exitError{exitOutdated, err}
	}
	if _, ok := errors.AsType[*workers.RefusedError](err); ok {
		return &exitError{exitRefused, err}
	}
	return err
}

// sandbox checks the flags for the slot and returns the sandbox's configuration.
func (f *collectorFlags) sandbox() (measure.SandboxConfig, error) {
	if f.name == "" {
		return measure.SandboxConfig{}, fmt.Errorf("this collector has no name: %s is not enrolled; enrol this machine with 'benchloom collector enroll', or name it with --name", f.stateDir)
	}
	if err := bench.CheckName("collector name", f.name); err != nil {
		return measure.SandboxConfig{}, fmt.Errorf("--name: %w", err)
	}
	if f.stateDir == "" {
		return measure.SandboxConfig{}, errors.New("no state directory: name one with --state-dir")
	}
	dir, err := filepath.Abs(f.stateDir)
	if err != nil {
		return measure.SandboxConfig{}, fmt.Errorf("--state-dir: %w", err)
	}
	f.stateDir = dir
	if f.artifactDir == "" {
		f.artifactDir = filepath.Join(dir, "artifacts")
	}
	if f.artifactDir, err = filepath.Abs(f.artifactDir); err != nil {
		return measure.SandboxConfig{}, fmt.Errorf("--artifact-dir: %w", err)
	}
	config := measure.SandboxConfig{Name: f.name, WorkDir: filepath.Join(dir, "work")}
	if f.cpus != "" {
		if config.CPUs, err = measure.ParseCPUList(f.cpus); err != nil {
			return config, fmt.Errorf("--cpus: %w", err)
		}
	}
	if err := f.isolation.check(); err != nil {
		return config, err
	}
	whole := thisMachine(dir)
	return config, f.bounds.apply(&config, machine.DefaultBounds(whole, f.share(config.CPUs, whole)))
}

// reserve returns the room that benchmarks leave to the service.
func (f *collectorFlags) reserve() diskspace.Reserve {
	reserve, _ := parseReserve(f.bounds.reserve) // sandbox has checked it
	return reserve
}

// size parses a number of bytes, such as 8GiB; 0 if text is empty.
func size(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > 1<<60 {
		return 0, fmt.Errorf("%s %q: write a size such as 512MiB or 8GiB", flag, text)
	}
	return int64(n), nil
}

// cacheLimit returns the limit of suites' caches: by default half of what a job may use, so that each has the other half.
func (f *collectorFlags) cacheLimit(config measure.SandboxConfig) (diskspace.Usage, error) {
	limit := diskspace.Usage{Bytes: config.DiskBytes / 2, Files: config.Inodes / 2}
	switch f.cacheSize {
	case "":
		return limit, nil
	case unbounded:
		return diskspace.Usage{}, nil
	}
	var err error
	limit.Bytes, err = size("--cache-size", f.cacheSize)
	return limit, err
}

// memorySize parses an amount of memory, such as 8g; 0 if text is empty.
func memorySize(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	bytes, err := bench.ParseMemory(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", flag, err)
	}
	return bytes, nil
}

func counters(names []string) []measure.Counter {
	out := make([]measure.Counter, len(names))
	for i, n := range names {
		out[i] = measure.Counter(n)
	}
	return out
}

// diskPatience is the time for which a run waits for space on a full disk.
const diskPatience = 5 * time.Minute

// jobs returns the part of a collector that runs jobs, and creates its directories.
func (f *collectorFlags) jobs(machine *workers.Machine, api *apiclient.Client, log *slog.Logger) (*collection.Collector, error) {
	bound, err := size("--artifact-cache-size", f.artifactSize)
	if err != nil {
		return nil, usage(err)
	}
	failing := func(err error) { log.Warn("calling the API failed; it is tried again", "error", err) }
	// A run that has begun waits for the API as long as it takes: its measurements count.
	begin, upload := apiclient.RetryPolicy{For: 10 * time.Minute, Failing: failing}, apiclient.RetryPolicy{Failing: failing}
	points := failpoint.FromEnvironment(os.Getenv)
	providers := append(artifact.DefaultProviders(), &artifact.Built{Source: collection.StoredBuilds{API: api, Retry: upload}})
	artifacts, err := artifact.Open(artifact.Options{Dir: f.artifactDir, Providers: providers, MaxBytes: bound, MaxEntries: f.artifactCount})
	if err != nil {
		return nil, err
	}
	spool, err := collection.OpenSpool(filepath.Join(f.stateDir, spoolDir))
	if err != nil {
		return nil, err
	}
	spool.Points = points
	suites, err := collection.OpenSuiteCache(filepath.Join(f.stateDir, "suites"))
	if err != nil {
		return nil, err
	}
	return &collection.Collector{
		Artifacts: artifacts, Suites: suites, Spool: spool, Machine: machine.Jobs, CacheDir: filepath.Join(f.stateDir, cachesDir),
		Revisions: revision.New(filepath.Join(f.stateDir, "repositories"), os.Environ()), Begin: begin, Upload: upload, Points: points,
		Facts: func() (json.RawMessage, error) { return presentFacts(machine.Facts.Isolation) }, DiskPatience: diskPatience,
		Profiling: machine.Profiling(),
	}, nil
}

// asked returns the pool that the flags name. For an enrolled collector, the API
// supplies the rest.
func (f *collectorFlags) asked(machine *workers.Machine) (bench.Pool, error) {
	pool := bench.Pool{Target: bench.Target(f.target), SizeClass: bench.SizeClass(f.class), Name: f.pool}
	if f.class == 0 && f.enrolled == nil {
		pool.SizeClass = bench.SizeClass(machine.Jobs.CPUs)
	}
	if _, err := bench.ParseTarget(f.target); err != nil && (f.target != "" || f.enrolled == nil) {
		return pool, fmt.Errorf("--target: %w", err)
	}
	if _, err := bench.NewSizeClass(int(pool.SizeClass)); err != nil && (f.class != 0 || f.enrolled == nil) {
		return pool, fmt.Errorf("--size-class: %w", err)
	}
	if err := bench.CheckName("pool", f.pool); err != nil && (f.pool != "" || f.enrolled == nil) {
		return pool, fmt.Errorf("--pool: %w", err)
	}
	return pool, nil
}

// presentFacts reads the facts of this machine: a person may have changed a setting
// since the collector registered.
func presentFacts(isolation string) (json.RawMessage, error) {
	facts, err := measure.ReadFacts("/")
	if err != nil {
		return nil, err
	}
	facts.Isolation = isolation
	return encoded(facts)
}

func encoded(facts measure.Facts) (json.RawMessage, error) {
	text, err := json.Marshal(facts)
	if err != nil {
		return nil, fmt.Errorf("encoding the machine's facts: %w", err)
	}
	return text, nil
}

func (f *collectorFlags) registration(machine *workers.Machine, programs []probe.Tried) (apiclient.Registration, error) {
	pool, err := f.asked(machine)
	if err != nil {
		return apiclient.Registration{}, usage(err)
	}
	id, err := workers.MachineID(f.stateDir)
	if err != nil {
		return apiclient.Registration{}, err
	}
	facts, err := encoded(machine.Facts)
	if err != nil {
		return apiclient.Registration{}, err
	}
	r := apiclient.Registration{
		Name: f.name, Target: pool.Target, SizeClass: pool.SizeClass, Pool: pool.Name, Host: bench.Target(hostTarget()), MachineID: id, Version: version,
		HardwareID: machine.Facts.HardwareID(), Facts: facts, CoLocated: f.coLocated,
		Labels: f.labels, BenchmarkSets: f.benchmarkSets, SharedHost: f.shared.host,
	}
	if f.cacheRoot == "" {
		f.cacheRoot = filepath.Join(f.stateDir, cachesDir)
	}
	var limit int64 // by default, jobs may ask for the machine's memory
	if f.bounds.memory != unbounded {
		if limit, err = memorySize("--memory", f.bounds.memory); err != nil {
			return r, usage(err)
		}
	}
	if err := f.machine.describe(&r, machine, programs, limit, f.cacheRoot); err != nil {
		return r, err
	}
	for _, u := range machine.Unenforced {
		r.Unenforced = append(r.Unenforced, apiclient.Unenforced{Name: string(u.Name), Reason: u.Reason})
	}
	return r, nil
}
