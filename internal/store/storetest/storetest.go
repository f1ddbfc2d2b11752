// Package storetest gives each test an empty record in a real Postgres.
//
// The first test of a process that needs one starts a private cluster; each test gets its
// own database, copied from a migrated template. Tests set up and stop nothing: a small
// guard process stops and removes the cluster when the test process ends, however it
// ends. The package must not know what a test does with its record.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// template is the migrated database that is copied for each test.
const template = "template_record"

// cluster is the process's Postgres, started on first use.
var cluster struct {
	sync.Mutex
	dsn   func(database string) string // nil: not started
	copy  string                       // option of "create database" for the cheapest copy
	err   error                        // why it could not be started
	tests int                          // databases so far
}

// New returns an empty record for the test, which fails if Postgres is not installed.
func New(t testing.TB) *store.Store {
	t.Helper()
	return Open(t, URL(t))
}

// Open opens the record at a URL from [URL] until the test ends.
func Open(t testing.TB, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url+onePlan)
	if err != nil {
		t.Fatalf("opening the test's record: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// onePlan has each statement planned once for all parameters. Postgres would make five plans
// for given parameters first, and most statements run once or twice in a session of a test.
const onePlan = "&plan_cache_mode=force_generic_plan"

// URL returns the URL of an empty, migrated database for the test.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, template)
}

// EmptyURL returns the URL of a database without a schema.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return create(t, "template0")
}

// Dump returns the output of pg_dump for a database from [URL] or [EmptyURL], without the
// lines that differ between dumps.
func Dump(t testing.TB, url string) string {
	t.Helper()
	text, err := dump(t.Context(), url)
	if err != nil {
		t.Fatalf("dumping the test's database: %v", err)
	}
	return restrictions.ReplaceAllString(text, "")
}

// restrictions matches the lines with pg_dump's random key.
var restrictions = regexp.MustCompile(`(?m)^\\(un)?restrict .*\n`)

func create(t testing.TB, from string) string {
	t.Helper()
	name := reserve(t)
	admin, url := cluster.dsn("postgres"), cluster.dsn(name)
	if err := execute(t.Context(), admin, "create database "+name+" template "+from+cluster.copy); err != nil {
		t.Fatalf("creating the test's database: %v", err)
	}
	t.Cleanup(func() {
		if err := execute(context.Background(), admin, "drop database "+name+" with (force)"); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	return url
}

// reserve returns an unused database name, and starts the cluster if it is the first.
func reserve(t testing.TB) (name string) {
	t.Helper()
	cluster.Lock()
	defer cluster.Unlock()
	if cluster.dsn == nil && cluster.err == nil {
		cluster.err = begin()
	}
	if cluster.err != nil {
		t.Fatalf("starting Postgres for the tests: %v", cluster.err)
	}
	cluster.tests++
	return fmt.Sprintf("test_%d", cluster.tests)
}

// begin starts the cluster and creates the template.
func begin() error {
	ctx := context.Background() // the cluster outlives the test that asks first
	dsn, err := start(ctx)
	if err != nil {
		return err
	}
	if err := execute(ctx, dsn("postgres"), "create database "+template); err != nil {
		return fmt.Errorf("creating the template: %w", err)
	}
	if err := store.Migrate(ctx, dsn(template)); err != nil {
		return err
	}
	// Since version 15 files are copied only on request. Without a disk to wait for, that
	// takes half the CPU time of copying through the log.
	if cluster.copy, err = query(ctx, dsn("postgres"),
		"select case when current_setting('server_version_num')::int >= 150000 then ' strategy file_copy' else '' end"); err != nil {
		return err
	}
	cluster.dsn = dsn
	return nil
}

func query(ctx context.Context, url, statement string) (answer string, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", fmt.Errorf("connecting to Postgres: %w", err)
	}
	err = errors.Join(conn.QueryRow(ctx, statement).Scan(&answer), conn.Close(ctx))
	return answer, err
}

func execute(ctx context.Context, url, statement string) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting to Postgres: %w", err)
	}
	_, err = conn.Exec(ctx, statement)
	if closing := conn.Close(ctx); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(strings.Fields(statement)[:2], " "), err)
	}
	return nil
}

// Planned returns queued jobs that all collectors of their pools may take.
func Planned(jobs ...bench.Job) []bench.PlannedJob {
	planned := make([]bench.PlannedJob, len(jobs))
	for i, j := range jobs {
		j.JobState = bench.JobState{Status: bench.JobQueued}
		planned[i].Job = j
	}
	return planned
}
