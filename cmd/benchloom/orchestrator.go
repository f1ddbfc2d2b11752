package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/commits"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/metrics"
	"github.com/benchloom/benchloom/internal/revision"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/up"
	"github.com/benchloom/benchloom/workers"
)

func newOrchestrator() *cobra.Command {
	var f processFlags
	var t temporalFlags
	var database, cache, builds, canaries string
	var keep map[string]string
	cmd := &cobra.Command{
		Use:     "orchestrator",
		GroupID: groupRun,
		Short:   "Run workflows and the activities around them",
		Long: `Runs the Temporal worker for workflows. Any number of orchestrators may run.
It needs TEMPORAL_ADDRESS (or Temporal's other environment configuration) and
DATABASE_URL, and creates the namespace and its search attributes if necessary.

It also reads the git repositories that projects name as commit sources, which
needs the git program. Paths of repositories refer to this machine.`,
		Example: `  TEMPORAL_ADDRESS=127.0.0.1:7233 DATABASE_URL=postgres:///benchloom benchloom orchestrator`,
		Args:    exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			log, err := f.logger(cmd)
			if err != nil {
				return err
			}
			if database == "" {
				return usage(errors.New("no database: set DATABASE_URL or --database-url"))
			}
			if canaries != "on" && canaries != "off" {
				return usage(fmt.Errorf("canaries %q: set BENCHLOOM_CANARIES or --canaries to on or off", canaries))
			}
			budget, err := size("--build-store-size", builds)
			if err != nil {
				return usage(err)
			}
			kept, err := keeping(keep, os.Getenv("BENCHLOOM_KEEP"))
			if err != nil {
				return usage(err)
			}
			m, err := metrics.New("orchestrator", version)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, m.Close()) }()
			if err := f.serveMetrics(ctx, m, log); err != nil {
				return err
			}
			records, err := store.Open(ctx, database)
			if err != nil {
				return err
			}
			defer records.Close()
			if err := records.AwaitSchema(ctx, log); err != nil {
				return err
			}
			ctx, guarded := guardSchema(ctx, records, log)
			defer func() { err = guarded(err) }()
			temporal, err := t.dial(ctx, "orchestrator", m, log)
			if err != nil {
				return err
			}
			defer temporal.Close()
			if err := devstack.EnsureNamespace(ctx, temporal, up.Namespace(t.namespace)); err != nil {
				return err
			}
			revisions := revision.New(filepath.Join(cache, "repositories"), os.Environ())
			revisions.Background = true // nothing is measured here
			return workers.Orchestrator{
				Temporal: temporal, Namespace: t.namespace, Store: records, Version: version, Log: log, Scope: m.Scope, Points: failpoint.FromEnvironment(os.Getenv), OnReady: f.isReady,
				Commits:   commits.Opener{CacheDir: filepath.Join(cache, "mirrors"), Environ: os.Environ()},
				Revisions: revisions, BuildBudget: budget, Canaries: canaries == "on", Keep: kept,
			}.Run(ctx)
		},
	}
	f.add(cmd.Flags())
	f.addMetrics(cmd.Flags())
	cmd.Flags().StringVar(&database, "database-url", os.Getenv("DATABASE_URL"), "Postgres (default $DATABASE_URL)")
	t.addTemporal(cmd.Flags())
	cmd.Flags().StringVar(&cache, "cache-dir", cacheDir(), "directory for copies of repositories that projects name by URL; may be deleted")
	cmd.Flags().StringVar(&builds, "build-store-size", "20GiB", "maximum size of all stored builds; builds that an open request needs are kept beyond it")
	cmd.Flags().StringToStringVar(&keep, "keep", nil, "how long a kind of data is kept, such as output=30d,try=forever; see docs/retention.md (default: $BENCHLOOM_KEEP, else as documented)")
	cmd.Flags().StringVar(&canaries, "canaries", env("BENCHLOOM_CANARIES", "on"), "on: each collector measures an artifact in turns with itself once a day; or off")
	return cmd
}

// cacheDir returns the directory for files that an orchestrator can fetch again.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "benchloom")
}

// identity names a process in Temporal.
func identity(role string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%s/%d", role, host, os.Getpid())
}
