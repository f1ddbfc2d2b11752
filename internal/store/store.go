package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/lately"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/spare"
)

// maxConnections bounds the connections of a process, unless its URL sets pool_max_conns:
// several processes share a small server. A third of the number comes on top for reports.
const maxConnections = 10

// Store gives access to the record. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	// reports has connections for reading many results, which may take long. However many
	// callers read them, heartbeats and the like find a connection in pool.
	reports *pgxpool.Pool
	// foreseen and past hold the jobs on which estimates are based, by the names of projects.
	foreseen *lately.Cache[string, foreseen]
	past     *lately.Cache[string, []admission.PastJob]
	// series holds the names of series that were read.
	series seriesNames
	// cases holds the names of test cases that were read.
	cases *ttlcache.Cache[int64, bench.TestCase]
	// artifacts holds the IDs of artifacts by their names.
	artifacts *ttlcache.Cache[artifactName, int64]
	// lists holds the lists of histories that were read.
	lists historyLists
	// samples, origins and stale hold what was read of artifacts, each with its version.
	samples *ttlcache.Cache[int64, versionedSamples]
	origins *ttlcache.Cache[int64, versionedOrigins]
	stale   *ttlcache.Cache[int64, staleSheets]
	// orders has the order of the samples of artifacts that were measured alike.
	orders *ttlcache.Cache[sampleOrderID, sampleOrder]
	// unpacked holds sheets that are no longer read, so that their memory is reused.
	unpacked spare.Memory[packed.Sheet]
	// read holds the memory of readings of packed results.
	read spare.Memory[readMemory]
	// raws holds the memory of readings of stale artifacts.
	raws spare.Memory[rawReading]
	// readingStale is held while the rows of a stale artifact are read.
	readingStale chan struct{}
	// swept is the ID of the last job read by the previous sweep of jobs held until their
	// request starts.
	swept atomic.Int64
}

// Open prepares connections to the database named by the URL or keyword/value string. It
// does not connect yet; see [Store.Ping]. The schema must be that of [Migrate].
func Open(ctx context.Context, url string) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = maxConnections
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "benchloom"
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{
			Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}
	config.ShouldPing = func(_ context.Context, of pgxpool.ShouldPingParams) bool { return of.IdleDuration > soonestRestart }
	few := config.Copy()
	few.MaxConns, few.MinConns, few.MinIdleConns = max(1, config.MaxConns/3), 0, 0
	few.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		return errors.Join(config.AfterConnect(ctx, conn), readAhead(ctx, conn))
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	reports, err := pgxpool.NewWithConfig(ctx, few)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	s := &Store{
		pool: pool, reports: reports,
		cases: newTestCases(), lists: newHistoryLists(), samples: newKeptSamples(), origins: newKeptOrigins(), stale: newKeptStale(),
		orders: newKeptOrders(), artifacts: newKeptArtifacts(), readingStale: make(chan struct{}, 1),
	}
	s.keepEstimates()
	return s, nil
}

// soonestRestart is shorter than a restart of Postgres: a connection that was used since belongs
// to the Postgres that runs, and any other is tried before a call relies on it.
const soonestRestart = 100 * time.Millisecond

// pagesAhead is the number of pages that Postgres asks the disk for while it waits for the first:
// parts of histories lie scattered, and a disk reads many pages at once as fast as a few.
const pagesAhead = 64

// readAhead has Postgres read ahead, unless its machine cannot do that, or somebody has decided
// how far it does.
func readAhead(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		select set_config('effective_io_concurrency', $1::int::text, false) from pg_settings
		where name = 'effective_io_concurrency' and setting <> '0' and source = 'default'`, pagesAhead)
	return wrap("setting how far Postgres reads ahead", err)
}

// Close closes all connections and waits for calls in progress.
func (s *Store) Close() {
	s.foreseen.Wait()
	s.past.Wait()
	s.pool.Close()
	s.reports.Close()
}

// Ping returns nil if the database answers and has the schema.
func (s *Store) Ping(ctx context.Context) error {
	var there bool
	if err := s.pool.QueryRow(ctx, `select to_regclass('benchmark_request') is not null`).Scan(&there); err != nil {
		return fmt.Errorf("querying the database: %w", err)
	}
	if !there {
		return errors.New("the database has no schema yet: migrate it first")
	}
	return nil
}

// querier runs a statement, in a transaction under the locks that it holds. The pool and
// transactions implement it.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// inTx runs f in one transaction. Its error begins with what was being done.
func (s *Store) inTx(ctx context.Context, doing string, f func(tx pgx.Tx) error) error {
	return wrap(doing, pgx.BeginFunc(ctx, s.pool, f))
}

// inPlannedTx is [Store.inTx] for statements that find their rows by keys. Each is planned once
// per connection, as planning takes longer than execution. A plan may be as old as its connection,
// from when there were few rows, so it looks them up by key whatever their number was.
func (s *Store) inPlannedTx(ctx context.Context, doing string, f func(tx pgx.Tx) error) error {
	return wrap(doing, pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{BeginQuery: beginPlanned}, f))
}

// planned makes Postgres plan the statements of a batch like those of [Store.inPlannedTx], if the
// batch is a transaction of its own.
const planned = `select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`

const beginPlanned = `begin; set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off;
	set local enable_hashjoin = off; set local enable_mergejoin = off`

// wrap prefixes an error with what was being done; nil stays nil.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// one reads exactly one row by column names; ErrNotFound if there is none.
func one[T any](ctx context.Context, q querier, sql string, args ...any) (T, error) {
	var zero T
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return zero, err
	}
	v, err := pgx.CollectExactlyOneRow(rows, byName[T]())
	if errors.Is(err, pgx.ErrNoRows) {
		return zero, ErrNotFound
	}
	return v, err
}

// all reads rows by column names.
func all[T any](ctx context.Context, q querier, sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, byName[T]())
}

// byName returns a function that reads the rows of one statement by column names. It finds
// the field of each column only once, as that takes longer than reading a row. A row that
// violates the rules of its type is an internal error: it does not wrap the input error of
// Validate.
func byName[T any]() pgx.RowToFunc[T] {
	var read *T // each row is read into it
	var fields fieldsOf
	return func(row pgx.CollectableRow) (T, error) {
		var v T
		if read == nil {
			fields.CollectableRow = row
			var err error
			if read, err = pgx.RowToAddrOfStructByName[T](&fields); err != nil {
				return v, err
			}
		}
		*read = v // reset: fields that are not read must not share memory with the row before
		if err := row.Scan(fields.targets...); err != nil {
			return v, err
		}
		v = *read
		if checked, ok := any(v).(interface{ Validate() error }); ok {
			if err := checked.Validate(); err != nil {
				return v, errors.New("the database holds an invalid row: " + err.Error())
			}
		}
		return v, nil
	}
}

// fieldsOf notes the fields into which a row would be read, instead of reading it.
type fieldsOf struct {
	pgx.CollectableRow
	targets []any
}

func (f *fieldsOf) Scan(targets ...any) error {
	f.targets = targets
	return nil
}

// column reads the only column of rows.
func column[T any](ctx context.Context, q querier, sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// value reads the only column of the only row; ErrNotFound if there is none.
func value[T any](ctx context.Context, q querier, sql string, args ...any) (T, error) {
	var v T
	err := q.QueryRow(ctx, sql, args...).Scan(&v)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, ErrNotFound
	}
	return v, err
}

// lock takes a named advisory lock until the transaction ends.
func lock(ctx context.Context, tx pgx.Tx, name string) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('benchloom ' || $1, 0))`, name)
	return wrap("locking "+name, err)
}

// queueLock adds [lock] to a batch.
func queueLock(b *pgx.Batch, name string) {
	b.Queue(`select pg_advisory_xact_lock(hashtextextended('benchloom ' || $1, 0))`, name)
}

// queueOne does in a batch what [one] does.
func queueOne[T any](b *pgx.Batch, into *T, sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectExactlyOneRow(rows, byName[T]())
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotFound
		}
		return err
	})
}

// queueValue does in a batch what [value] does.
func queueValue[T any](b *pgx.Batch, into *T, sql string, args ...any) {
	b.Queue(sql, args...).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(into); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return ErrNotFound
	})
}

// queueAll does in a batch what [all] does.
func queueAll[T any](b *pgx.Batch, into *[]T, sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, byName[T]())
		return err
	})
}

// affected returns ErrNotFound if a statement changed no row.
func affected(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return err
}

// unknownReference turns a violated foreign key into ErrNotFound: a row refers to a
// missing one.
func unknownReference(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "23503" {
		return fmt.Errorf("%w: %s", ErrNotFound, e.Detail)
	}
	return err
}

// IsTransient reports whether the same call may succeed later: the database is
// unreachable, is shutting down or has no free connection, or the call conflicted with
// another one.
func IsTransient(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, ErrBusy) {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "40001", "40P01", // serialization failure, deadlock
			"55P03",                   // lock not available
			"53300",                   // too many connections
			"57P01", "57P02", "57P03", // administrator's or crash shutdown, cannot connect now
			"57P05": // idle session ended
			return true
		}
		return strings.HasPrefix(e.Code, "08") // connection exceptions
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the caller's own
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
