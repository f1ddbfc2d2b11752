package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/metrics"
	"github.com/benchloom/benchloom/starter"
	"github.com/benchloom/benchloom/workers"
)

func newCollectorGroup() *cobra.Command {
	cmd := newCollector()
	cmd.AddCommand(collectorClientCommands()...)
	return cmd
}

type collectorFlags struct {
	processFlags
	name, target, pool, cpus  string
	memory, disk              string
	class                     int
	stateDir, artifactDir     string
	artifactSize              string
	artifactCount             int
	api, tokenFile, namespace string
	require                   []string
	coLocated                 bool
}

func newCollector() *cobra.Command {
	var f collectorFlags
	cmd := &cobra.Command{
		Use:     "collector",
		GroupID: groupRun,
		Short:   "Run benchmarks on this machine, or list collectors",
		Long: `Registers this machine, or a slot of it, as a collector and takes jobs from its
pool's task queue, one at a time. It needs TEMPORAL_ADDRESS, the address of the
API and a collector's token. Benchmarks see none of these.`,
		Example: `  benchloom collector --name bench-1 --size-class 8 --api http://bench.example.com:7480 --token-file /etc/benchloom/token
  benchloom collector list`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	f.add(flags)
	f.addMetrics(flags)
	flags.StringVar(&f.name, "name", "", "name, unique among all collectors (required)")
	flags.StringVar(&f.target, "target", hostTarget(), "target tuple that it measures")
	flags.IntVar(&f.class, "size-class", 0, "size class (default: its number of CPUs)")
	flags.StringVar(&f.pool, "pool", "default", "pool of interchangeable collectors")
	flags.StringVar(&f.cpus, "cpus", "", "CPUs that benchmarks may use, such as 2-5,8 (default: all)")
	flags.StringVar(&f.memory, "memory", "", "memory that a benchmark may use, such as 8GiB (default: no limit)")
	flags.StringVar(&f.disk, "disk", "", "disk that a benchmark may fill, such as 20GiB (default: no limit)")
	flags.StringVar(&f.stateDir, "state-dir", "", "where its spool, work directory and caches are (required)")
	flags.StringVar(&f.artifactDir, "artifact-dir", "", "artifact cache, shared by the collectors of a machine (default: below the state directory)")
	flags.StringVar(&f.artifactSize, "artifact-cache-size", "50GiB", "bound of the artifact cache")
	flags.IntVar(&f.artifactCount, "artifact-cache-count", 100, "bound of the number of cached artifacts")
	flags.StringVar(&f.api, "api", env("BENCHLOOM_URL", "http://127.0.0.1:7480"), "address of the API")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the collector's token (default: $BENCHLOOM_TOKEN)")
	flags.StringVar(&f.namespace, "namespace", env("TEMPORAL_NAMESPACE", starter.DefaultNamespace), "Temporal namespace")
	flags.StringSliceVar(&f.require, "require", nil, "counters without which it exits, such as instructions:u")
	flags.BoolVar(&f.coLocated, "co-located", false, "others run beside it on this machine: its results compare only with their like")
	return cmd
}

func (f *collectorFlags) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	log, err := f.logger(cmd)
	if err != nil {
		return err
	}
	sandboxConfig, err := f.sandbox()
	if err != nil {
		return usage(err)
	}
	token, err := secret(f.tokenFile, "BENCHLOOM_TOKEN")
	if err != nil {
		return err
	}
	m, err := metrics.New("collector", version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := f.serveMetrics(ctx, m, log); err != nil {
		return err
	}
	if err := os.MkdirAll(f.stateDir, 0o755); err != nil {
		return fmt.Errorf("state directory %s of collector %s cannot be used: %w; make it writable for this user, or name another with --state-dir", f.stateDir, f.name, err)
	}
	// What a killed predecessor left running would disturb every measurement:
	// nothing starts before it is dead.
	machine, err := workers.OpenMachine(ctx, workers.MachineConfig{Sandbox: sandboxConfig, Require: counters(f.require), Environ: os.Environ(), Log: log})
	if _, lacking := errors.AsType[*measure.MissingCountersError](err); lacking {
		return fmt.Errorf("collector %s cannot count what --require names: %w; mend that, use a machine that has them, or require less", f.name, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, machine.Close()) }()
	jobs, err := f.jobs(machine)
	if err != nil {
		return err
	}
	api, err := apiclient.New(f.api, token, &http.Client{})
	if err != nil {
		return usage(err)
	}
	jobs.Name, jobs.API, jobs.Log = f.name, api, log
	registration, err := f.registration(machine)
	if err != nil {
		return err
	}
	temporal, err := starter.Dial(ctx, starter.Connection{Namespace: f.namespace, Identity: f.name, Log: log, Metrics: m.SDK})
	if err != nil {
		return &exitError{exitUnreached, err}
	}
	defer temporal.Close()
	return workers.Collector{Temporal: temporal, API: api, Registration: registration, Jobs: jobs, Log: log, OnReady: f.isReady}.Run(ctx)
}

// sandbox checks the flags that say what the slot owns.
func (f *collectorFlags) sandbox() (measure.SandboxConfig, error) {
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
	config := measure.SandboxConfig{Name: f.name, WorkDir: filepath.Join(dir, "work")}
	if f.cpus != "" {
		if config.CPUs, err = measure.ParseCPUList(f.cpus); err != nil {
			return config, fmt.Errorf("--cpus: %w", err)
		}
	}
	if config.MemoryBytes, err = size("--memory", f.memory); err != nil {
		return config, err
	}
	config.DiskBytes, err = size("--disk", f.disk)
	return config, err
}

// size reads a number of bytes such as 8GiB; empty is none.
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

func counters(names []string) []measure.Counter {
	out := make([]measure.Counter, len(names))
	for i, n := range names {
		out[i] = measure.Counter(n)
	}
	return out
}

// jobs makes what carries jobs out, with all its directories.
func (f *collectorFlags) jobs(machine *workers.Machine) (*collection.Collector, error) {
	if f.artifactDir == "" {
		f.artifactDir = filepath.Join(f.stateDir, "artifacts")
	}
	bound, err := size("--artifact-cache-size", f.artifactSize)
	if err != nil {
		return nil, usage(err)
	}
	artifacts, err := artifact.Open(artifact.Options{Dir: f.artifactDir, Providers: artifact.DefaultProviders(), MaxBytes: bound, MaxEntries: f.artifactCount})
	if err != nil {
		return nil, err
	}
	spool, err := collection.OpenSpool(filepath.Join(f.stateDir, "spool"))
	if err != nil {
		return nil, err
	}
	suites, err := collection.OpenSuiteCache(filepath.Join(f.stateDir, "suites"))
	if err != nil {
		return nil, err
	}
	return &collection.Collector{
		Artifacts: artifacts, Suites: suites, Spool: spool, Machine: machine.Jobs, CacheDir: filepath.Join(f.stateDir, "cache"),
		Upload: apiclient.RetryPolicy{For: 10 * time.Minute}, Points: failpoint.FromEnvironment(os.Getenv),
	}, nil
}

func (f *collectorFlags) registration(machine *workers.Machine) (apiclient.Registration, error) {
	target, err := bench.ParseTarget(f.target)
	if err != nil {
		return apiclient.Registration{}, usage(fmt.Errorf("--target: %w", err))
	}
	if f.class == 0 {
		f.class = machine.Jobs.CPUs
	}
	class, err := bench.NewSizeClass(f.class)
	if err != nil {
		return apiclient.Registration{}, usage(fmt.Errorf("--size-class: %w", err))
	}
	if err := bench.CheckName("pool", f.pool); err != nil {
		return apiclient.Registration{}, usage(fmt.Errorf("--pool: %w", err))
	}
	id, err := workers.MachineID(f.stateDir)
	if err != nil {
		return apiclient.Registration{}, err
	}
	facts, err := json.Marshal(machine.Facts)
	if err != nil {
		return apiclient.Registration{}, fmt.Errorf("encoding the machine's facts: %w", err)
	}
	r := apiclient.Registration{
		Name: f.name, Target: target, SizeClass: class, Pool: f.pool, MachineID: id, Version: version,
		HardwareID: machine.Facts.HardwareID(), Facts: facts, CoLocated: f.coLocated,
	}
	for _, u := range machine.Unenforced {
		r.Unenforced = append(r.Unenforced, apiclient.Unenforced{Name: string(u.Name), Reason: u.Reason})
	}
	return r, nil
}
