package hostile_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/up"
)

// program holds the statements of the oldest program that a schema suits: it names the
// columns that it knows when it reads and writes. There is no binary of it here, so its
// statements are made from the tables as they were.
type program struct{ reads, writes map[string]string }

// programOf knows the tables as they are.
func programOf(t *testing.T, db *pgx.Conn) program {
	t.Helper()
	rows, err := db.Query(t.Context(), `
		select c.table_name::text, string_agg(format('%I', c.column_name), ', ' order by c.ordinal_position),
			string_agg(format('null::%s', format_type(a.atttypid, a.atttypmod)), ', ' order by c.ordinal_position)
		from information_schema.columns c
		join pg_attribute a on a.attrelid = format('%I', c.table_name)::regclass and a.attname = c.column_name
		join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name and t.table_type = 'BASE TABLE'
		where c.table_schema = 'public' and c.table_name <> 'goose_db_version' and c.is_identity = 'NO' and c.is_generated = 'NEVER' group by 1`)
	require.NoError(t, err)
	p := program{reads: make(map[string]string), writes: make(map[string]string)}
	var table, columns, values string
	_, err = pgx.ForEachRow(rows, []any{&table, &columns, &values}, func() error {
		p.reads[table] = fmt.Sprintf("select %s from %s", columns, table)
		p.writes[table] = fmt.Sprintf("insert into %s (%s) select %s where false", table, columns, values)
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, p.reads, "job_run")
	return p
}

// works prepares everything anew, as a replica that reconnects does.
func (p program) works(t *testing.T, db *pgx.Conn, was map[string]*pgconn.StatementDescription) {
	t.Helper()
	for table, sql := range p.reads {
		is, err := db.Prepare(t.Context(), "again-"+table, sql)
		require.NoError(t, err, "an older program reads %s", table)
		require.Len(t, is.Fields, len(was[table].Fields))
		for i, field := range is.Fields {
			require.Equal(t, was[table].Fields[i].DataTypeOID, field.DataTypeOID, "the type of %s.%s", table, field.Name)
		}
	}
	for table, sql := range p.writes {
		_, err := db.Exec(t.Context(), sql)
		require.NoError(t, err, "an older program writes %s", table)
	}
}

// required lists the columns that every insert has to name.
func required(t *testing.T, db *pgx.Conn) (columns []string) {
	t.Helper()
	rows, err := db.Query(t.Context(), `
		select table_name || '.' || column_name from information_schema.columns
		where table_schema = 'public' and is_nullable = 'NO' and column_default is null and is_identity = 'NO' and is_generated = 'NEVER' order by 1`)
	require.NoError(t, err)
	columns, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return columns
}

// While a newer API migrates the database, a replica of the oldest program that the schema
// is said to suit goes on reading and writing: on the connection that it has, and on a new
// one.
func TestLongAMigrationLeavesOlderReplicasAtWork(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	var oldest, newest int64
	operator := s.database(t)
	require.NoError(t, operator.QueryRow(t.Context(), `select oldest_program, (select max(version_id) from goose_db_version) from schema_compatibility`).Scan(&oldest, &newest))
	require.Less(t, oldest, newest)
	_, err := operator.Exec(t.Context(), `create database older`)
	require.NoError(t, err)
	address, err := url.Parse(s.Up.Addresses[up.AddressDatabase])
	require.NoError(t, err)
	address.Path = "/older"
	config, err := pgx.ParseConfig(address.String())
	require.NoError(t, err)
	files := stdlib.OpenDB(*config)
	migrations, err := goose.NewProvider(goose.DialectPostgres, files, os.DirFS("../../store/migrations"), goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	_, err = migrations.UpTo(t.Context(), oldest)
	require.NoError(t, err)
	require.NoError(t, files.Close())

	connect := func() *pgx.Conn {
		db, err := pgx.ConnectConfig(t.Context(), config.Copy())
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close(context.Background()) })
		return db
	}
	replica := connect()
	older := programOf(t, replica)
	known := required(t, replica)
	prepared := make(map[string]*pgconn.StatementDescription)
	for table, sql := range older.reads {
		prepared[table], err = replica.Prepare(t.Context(), "old-"+table, sql)
		require.NoError(t, err)
	}

	s.migrate(t, address.String(), newest)
	for table := range older.reads {
		_, err := replica.Exec(t.Context(), "old-"+table)
		require.NoError(t, err, "an older program goes on reading %s", table)
	}
	older.works(t, connect(), prepared)
	for _, column := range required(t, replica) {
		table, _, _ := strings.Cut(column, ".")
		if _, old := older.reads[table]; old {
			require.Contains(t, known, column, "an older program does not name it")
		}
	}
}

// migrate lets an API bring a database to a version, and ends it.
func (s service) migrate(t *testing.T, database string, version int64) {
	t.Helper()
	p := programs()
	require.NoError(t, p.Find())
	port, err := devstack.FreePort("127.0.0.1")
	require.NoError(t, err)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close()
	command := exec.Command(p.Benchloom, "api", "--listen", "127.0.0.1:"+strconv.Itoa(port))
	command.Env = append(os.Environ(), "DATABASE_URL="+database, "TEMPORAL_ADDRESS="+s.Up.Addresses[up.AddressTemporal])
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the API:\n%s", text)
		}
	})
	db, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer db.Close(context.Background())
	require.Eventually(t, func() bool {
		var is int64
		require.NoError(t, db.QueryRow(t.Context(), `select max(version_id) from goose_db_version`).Scan(&is))
		return is == version
	}, patience, 50*time.Millisecond, "the API does not migrate")
}
