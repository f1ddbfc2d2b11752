// Package storetest gives tests a record of their own in a real Postgres.
//
// The first test of a process that asks starts a private cluster; each gets a
// database of its own, created from a migrated template. Nothing has to be set up
// or stopped by the tests: a small guard process stops the cluster and removes it
// when the test process ends, however it ends. The package must not know what a
// test does with its record.
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

// template is the migrated database that those of tests are copies of.
const template = "template_record"

// cluster is the process's own Postgres; started on first use.
var cluster struct {
	sync.Mutex
	dsn   func(database string) string // nil: not started
	copy  string                       // option of "create database" with which copying a template costs least
	err   error                        // why it could not be started
	tests int                          // databases so far
}

// New gives the test an empty record. Without an installed Postgres the test
// fails.
func New(t *testing.T) *store.Store {
	t.Helper()
	return Open(t, URL(t))
}

// Open opens the record at a URL of [URL] for as long as the test runs.
func Open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatalf("opening the test's record: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// URL gives the test an empty, migrated database and how to connect to it.
func URL(t *testing.T) string {
	t.Helper()
	return create(t, template)
}

// EmptyURL gives the test a database without any schema.
func EmptyURL(t *testing.T) string {
	t.Helper()
	return create(t, "template0")
}

// Dump returns what pg_dump writes of a database of [URL] or [EmptyURL], without the
// lines that differ from one dump to the next.
func Dump(t *testing.T, url string) string {
	t.Helper()
	text, err := dump(t.Context(), url)
	if err != nil {
		t.Fatalf("dumping the test's database: %v", err)
	}
	return restrictions.ReplaceAllString(text, "")
}

// restrictions are the lines in which pg_dump writes a random key.
var restrictions = regexp.MustCompile(`(?m)^\\(un)?restrict .*\n`)

func create(t *testing.T, from string) string {
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

// reserve names a database that no other test has, in the cluster, which it
// starts for the first one.
func reserve(t *testing.T) (name string) {
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

// begin starts the cluster and makes the template.
func begin() error {
	ctx := context.Background() // it outlives the test that asks first
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
	// Since version 15 files are copied only on request; without a disk to wait for
	// that takes half the CPU time of copying by way of the log.
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

// Planned are jobs that are to be recorded and that all collectors of their pools
// may take at once.
func Planned(jobs ...bench.Job) []bench.PlannedJob {
	planned := make([]bench.PlannedJob, len(jobs))
	for i, j := range jobs {
		j.JobState = bench.JobState{Status: bench.JobQueued}
		planned[i].Job = j
	}
	return planned
}
