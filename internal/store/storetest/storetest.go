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
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/store"
)

// template is the migrated database that those of tests are copies of.
const template = "template_record"

// cluster is the process's own Postgres; started on first use.
var cluster struct {
	sync.Mutex
	dsn   func(database string) string // nil: not started
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

func create(t *testing.T, from string) string {
	t.Helper()
	cluster.Lock()
	defer cluster.Unlock()
	if cluster.dsn == nil && cluster.err == nil {
		cluster.dsn, cluster.err = begin()
	}
	if cluster.err != nil {
		t.Fatalf("starting Postgres for the tests: %v", cluster.err)
	}
	cluster.tests++
	name := fmt.Sprintf("test_%d", cluster.tests)
	if err := execute(t.Context(), cluster.dsn("postgres"), "create database "+name+" template "+from); err != nil {
		t.Fatalf("creating the test's database: %v", err)
	}
	url := cluster.dsn(name)
	admin := cluster.dsn("postgres")
	t.Cleanup(func() {
		if err := execute(context.Background(), admin, "drop database "+name+" with (force)"); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	return url
}

// begin starts the cluster and makes the template.
func begin() (dsn func(string) string, err error) {
	ctx := context.Background() // it outlives the test that asks first
	if dsn, err = start(ctx); err != nil {
		return nil, err
	}
	if err := execute(ctx, dsn("postgres"), "create database "+template); err != nil {
		return nil, fmt.Errorf("creating the template: %w", err)
	}
	if err := store.Migrate(ctx, dsn(template)); err != nil {
		return nil, err
	}
	return dsn, nil
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
