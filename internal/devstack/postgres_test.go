//go:build linux || darwin

package devstack_test

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/devstack"
)

func newPostgres(t *testing.T, state *devstack.State) *devstack.Postgres {
	t.Helper()
	postgres, err := devstack.NewPostgres(t.Context(), state, devstack.PostgresOptions{})
	require.NoError(t, err)
	return postgres
}

func query(t *testing.T, postgres *devstack.Postgres, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgres.DSN())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	var answer string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&answer))
	return answer
}

func execute(t *testing.T, postgres *devstack.Postgres, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgres.DSN())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func TestPostgresKeepsItsDataWhateverEndsIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	state := openState(t, dir)
	postgres := newPostgres(t, state)
	r := run(t, devstack.Config{State: state}, postgres.Process())
	r.awaitReady(t)

	// It is set up as a database of its own: safe, small, and without a port.
	require.Equal(t, "UTF8", query(t, postgres, "SHOW server_encoding"))
	require.Equal(t, "C", query(t, postgres, "SELECT datcollate FROM pg_database WHERE datname = current_database()"))
	for setting, want := range map[string]string{
		"data_checksums": "on", "fsync": "on", "synchronous_commit": "on", "listen_addresses": "",
		"shared_buffers": "64MB", "max_connections": "100", "TimeZone": "UTC",
	} {
		require.Equal(t, want, query(t, postgres, "SHOW "+setting), setting)
	}
	require.Equal(t, strconv.Itoa(postgres.Version()), strings.Split(query(t, postgres, "SHOW server_version"), ".")[0])
	execute(t, postgres, "CREATE TABLE kept (n int)")
	execute(t, postgres, "INSERT INTO kept VALUES (1)")

	// Killed, it comes back by itself.
	pid := r.Status()[0].PID
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, func() bool {
		s := r.Status()[0]
		return s.Condition == devstack.Ready && s.PID != pid
	}, "postgres runs again")
	require.Equal(t, "1", query(t, postgres, "SELECT count(*)::text FROM kept"))
	r.stop(t)
	text, err := os.ReadFile(state.LogFile("postgres"))
	require.NoError(t, err)
	require.Contains(t, string(text), "database system was not properly shut down", "after the kill")
	require.NoError(t, state.Close())

	// What a crash leaves is no obstacle, even when the recorded number is
	// another process's by now.
	state = openState(t, dir)
	socket := socketDir(t, postgres)
	for _, file := range []string{filepath.Join(dir, "postgres", "data", "postmaster.pid"), filepath.Join(socket, ".s.PGSQL.5432.lock")} {
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "%d\n%s\n1\n5432\n", os.Getpid(), dir), 0o600))
	}
	postgres = newPostgres(t, state)
	r = run(t, devstack.Config{State: state, Restart: devstack.RestartPolicy{GiveUp: 1}}, postgres.Process())
	r.awaitReady(t)
	require.Equal(t, "1", query(t, postgres, "SELECT count(*)::text FROM kept"))
	r.stop(t)
}

func socketDir(t *testing.T, postgres *devstack.Postgres) string {
	t.Helper()
	config, err := pgx.ParseConfig(postgres.DSN())
	require.NoError(t, err)
	return config.Host
}

func TestPostgresEndsWithAKilledSupervisorAndStartsAgain(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells children of their parent's death")
	}
	// For root the mode decides which account Postgres runs as.
	for name, mode := range map[string]os.FileMode{"closed": 0o700, "open": 0o755} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.Chmod(filepath.Dir(dir), mode)) // it is one of the test's own
			stateDir := filepath.Join(dir, "state")
			supervisor := startSupervisor(t, stateDir, filepath.Join(dir, "up"), "postgres")
			text, err := os.ReadFile(filepath.Join(stateDir, "postgres", "data", "postmaster.pid"))
			require.NoError(t, err)
			pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
			require.NoError(t, err)
			require.False(t, ended(pid))

			require.NoError(t, supervisor.Process.Kill())
			require.Error(t, supervisor.Wait())
			// The next one does not wait for the first to be gone.
			state := openState(t, stateDir)
			r := run(t, devstack.Config{State: state}, newPostgres(t, state).Process())
			r.awaitReady(t)
			require.True(t, ended(pid))
			r.stop(t)
		})
	}
}

func TestPostgresSocketOfALongOrOddPath(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"plain":                  true,
		"with space":             true,
		"comma,would be a list":  false,
		strings.Repeat("x", 120): false,
	} {
		state := openState(t, filepath.Join(t.TempDir(), name))
		postgres := newPostgres(t, state)
		dir := socketDir(t, postgres)
		require.Equal(t, want, strings.HasPrefix(dir, state.Dir()), dir)
		require.Less(t, len(dir), 90)
		other := newPostgres(t, openState(t, filepath.Join(t.TempDir(), name)))
		require.NotEqual(t, dir, socketDir(t, other))
	}
	// With the longest of them it works.
	state := openState(t, filepath.Join(t.TempDir(), strings.Repeat("x", 120)))
	postgres := newPostgres(t, state)
	t.Cleanup(func() { _ = os.RemoveAll(socketDir(t, postgres)) })
	r := run(t, devstack.Config{State: state}, postgres.Process())
	r.awaitReady(t)
	require.Equal(t, "benchloom", query(t, postgres, "SELECT current_database()::text"))
	info, err := os.Stat(socketDir(t, postgres))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	r.stop(t)
}

// processUser is the user that a process runs as, as the machine sees it.
func processUser(t *testing.T, pid int) int {
	t.Helper()
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	require.NoError(t, err)
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

func TestPostgresStartedByRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("this process is not root on Linux")
	}
	name := "postgres"
	if _, err := user.Lookup(name); err != nil {
		name = "nobody"
	}
	unprivileged, err := user.Lookup(name)
	require.NoError(t, err)
	base := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(base), 0o755)) // it is one of the test's own
	dir := filepath.Join(base, "closed", "state")

	start := func() (uid int, kept string) {
		state := openState(t, dir)
		postgres := newPostgres(t, state)
		r := run(t, devstack.Config{State: state}, postgres.Process())
		r.awaitReady(t)
		execute(t, postgres, "CREATE TABLE IF NOT EXISTS kept (n int)")
		execute(t, postgres, "INSERT INTO kept VALUES (1)")
		uid, kept = processUser(t, r.Status()[0].PID), query(t, postgres, "SELECT count(*)::text FROM kept")
		r.stop(t)
		require.NoError(t, state.Close())
		return uid, kept
	}

	// A directory that the user cannot enter: root's own number on the machine,
	// the user's in its namespace.
	require.NoError(t, os.Mkdir(filepath.Join(base, "closed"), 0o700))
	uid, kept := start()
	require.Equal(t, 0, uid)
	require.Equal(t, "1", kept)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "opening it would not help")

	// One that it can enter: it runs as that user, on the same data. The state
	// directory lets the user pass, and nobody look.
	require.NoError(t, os.Chmod(filepath.Join(base, "closed"), 0o755))
	uid, kept = start()
	require.Equal(t, unprivileged.Uid, strconv.Itoa(uid))
	require.Equal(t, "2", kept)
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o710), info.Mode().Perm())

	// And back.
	require.NoError(t, os.Chmod(filepath.Join(base, "closed"), 0o700))
	uid, kept = start()
	require.Equal(t, 0, uid)
	require.Equal(t, "3", kept)
}

func TestPostgresThatIsNotInstalled(t *testing.T) {
	managers := map[string]string{
		"apt-get": "apt-get install postgresql",
		"dnf":     "dnf install postgresql-server",
		"pacman":  "pacman -S postgresql",
		"apk":     "apk add postgresql",
		"brew":    "brew install postgresql@17",
	}
	for manager, command := range managers {
		bin := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(bin, manager), []byte("#!/bin/sh\n"), 0o700))
		t.Setenv("PATH", bin)
		_, err := devstack.NewPostgres(t.Context(), openState(t, t.TempDir()), devstack.PostgresOptions{SearchDirs: []string{filepath.Join(bin, "*")}})
		var missing *devstack.PostgresMissingError
		require.ErrorAs(t, err, &missing)
		require.True(t, strings.HasSuffix(missing.Install, command), missing.Install)
		require.ErrorContains(t, err, "no PostgreSQL was found")
		require.ErrorContains(t, err, command)
	}
}

func TestPostgresVersionThatWillDo(t *testing.T) {
	versions := t.TempDir()
	for _, major := range []string{"14", "9", "16"} {
		bin := filepath.Join(versions, major, "bin")
		require.NoError(t, os.MkdirAll(bin, 0o700))
		for _, program := range []string{"postgres", "initdb"} {
			script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + major + ".3 (some build)'\n"
			require.NoError(t, os.WriteFile(filepath.Join(bin, program), []byte(script), 0o700))
		}
	}
	t.Setenv("PATH", t.TempDir())
	options := devstack.PostgresOptions{SearchDirs: []string{filepath.Join(versions, "*", "bin")}}

	// The newest is taken, by number.
	state := openState(t, t.TempDir())
	postgres, err := devstack.NewPostgres(t.Context(), state, options)
	require.NoError(t, err)
	require.Equal(t, 16, postgres.Version())

	// A database that exists needs the version that created it.
	data := state.Path("postgres", "data")
	require.NoError(t, os.MkdirAll(data, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("14\n"), 0o600))
	postgres, err = devstack.NewPostgres(t.Context(), state, options)
	require.NoError(t, err)
	require.Equal(t, 14, postgres.Version())
	require.NoError(t, os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("15\n"), 0o600))
	_, err = devstack.NewPostgres(t.Context(), state, options)
	require.ErrorContains(t, err, "the database was created by PostgreSQL 15, but only [16 14 9] is installed")

	// PATH goes first, unless it is too old.
	t.Setenv("PATH", filepath.Join(versions, "9", "bin")+":"+os.Getenv("PATH"))
	postgres, err = devstack.NewPostgres(t.Context(), openState(t, t.TempDir()), options)
	require.NoError(t, err)
	require.Equal(t, 9, postgres.Version())
	options.MinMajor = 13
	postgres, err = devstack.NewPostgres(t.Context(), openState(t, t.TempDir()), options)
	require.NoError(t, err)
	require.Equal(t, 16, postgres.Version())
	options.MinMajor = 17
	_, err = devstack.NewPostgres(t.Context(), openState(t, t.TempDir()), options)
	require.ErrorContains(t, err, "PostgreSQL 17 or newer is needed, but only [9 16 14] is installed")
}
