//go:build unix

package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// programDirs lists the directories where distributions install Postgres programs that
// are not on PATH.
var programDirs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
}

// startBound bounds the start of the cluster.
const startBound = time.Minute

// guard runs Postgres ($1, on data directory $2, socket in $3, with libraries $4) until its
// standard input ends, that is until the test process has ended, and then removes $3.
// Functions of libraries are resolved before sessions are forked: each session would spend
// milliseconds on that, and tests have thousands of them.
const guard = `
LD_BIND_NOW=1 "$1" -D "$2" -k "$3" -c listen_addresses= -c unix_socket_permissions=0700 -c fsync=off -c synchronous_commit=off \
	-c full_page_writes=off -c wal_level=minimal -c max_wal_senders=0 -c max_wal_size=128MB -c shared_buffers=32MB \
	-c max_connections=200 -c jit=off -c timezone=UTC -c shared_preload_libraries="$4" -c pg_stat_statements.track=none &
postgres=$!
while read -r _; do :; done
kill -QUIT "$postgres"
wait "$postgres"
rm -rf "$3"`

// start creates a cluster in a directory of its own and starts it under a guard. It needs
// no goroutine and nobody has to stop it: the guard reads from a pipe that the kernel
// closes with this process.
func start(ctx context.Context) (func(database string) string, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(scratch(), "pg") // short: a socket's path has at most 103 bytes
	if err != nil {
		return nil, err
	}
	attributes, err := account(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata="+data, "--username=benchloom",
		"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions")
	initdb.Dir, initdb.Env, initdb.SysProcAttr = dir, environment(), attributes
	if output, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("creating the cluster: %w: %s", err, output)
	}
	logFile, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = logFile.Close() }()
	input, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = input.Close() }()
	held = hold
	server := exec.Command("/bin/sh", "-c", guard, "guard", filepath.Join(bin, "postgres"), data, dir, preloaded(bin))
	server.Dir, server.Env, server.SysProcAttr = dir, environment(), attributes
	server.Stdin, server.Stdout, server.Stderr = input, logFile, logFile
	if err := server.Start(); err != nil {
		return nil, err
	}
	dsn := func(database string) string {
		return "postgres:///" + database + "?" + url.Values{"host": {dir}, "port": {"5432"}, "user": {"benchloom"}}.Encode()
	}
	return dsn, await(ctx, dsn("postgres"), logFile.Name())
}

// statements is the library that counts statements, for [CountStatements]. Until then it
// does nothing. Some systems have it in a package of its own.
const statements = "pg_stat_statements"

// preloaded returns the libraries that Postgres loads at its start, if they are installed.
func preloaded(bin string) string {
	for _, dir := range []string{"lib", "lib/postgresql", "lib/postgresql@*", "lib/pgsql", "lib64/pgsql"} {
		if found, err := filepath.Glob(filepath.Join(filepath.Dir(bin), dir, statements+".*")); err == nil && len(found) > 0 {
			return statements
		}
	}
	return ""
}

// held is the write end of the guard's pipe. The variable keeps it from being collected.
var held *os.File //nolint:unused // it only keeps the file open

func await(ctx context.Context, dsn, logFile string) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			output, _ := os.ReadFile(logFile)
			return fmt.Errorf("it did not answer within %v: %w: %s", startBound, err, output)
		case <-again.C:
		}
	}
}

// environment leaves out the variables that redirect Postgres programs.
func environment() []string { return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"} }

// programs finds the directory of the Postgres programs: on PATH, else the newest version
// installed.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	var found []string
	for _, pattern := range programDirs {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, dir := range dirs {
			if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err == nil {
				found = append(found, dir)
			}
		}
	}
	if len(found) == 0 {
		return "", errors.New("no PostgreSQL was found, neither on PATH nor where distributions install it: install PostgreSQL's server programs")
	}
	return slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) }), nil
}

// major returns the version number in a directory's name, 0 if there is none.
func major(dir string) int {
	digits := strings.FieldsFunc(dir, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0])
	return n
}

// dump runs pg_dump on a database of the cluster.
func dump(ctx context.Context, dsn string) (string, error) {
	bin, err := programs()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, filepath.Join(bin, "pg_dump"), dsn)
	command.Env = environment()
	output, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(output), err
}

// account returns the user that runs the cluster, in a process group of its own so that
// Ctrl-C reaches only the test process. Postgres refuses to run as root, so root switches
// to another user.
func account(dir string) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return attributes, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return attributes, os.Chown(dir, uid, gid)
	}
	return nil, errors.New("postgres does not run as root, and there is neither a user postgres nor nobody")
}
