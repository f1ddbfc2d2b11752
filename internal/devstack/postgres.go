package devstack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	postgresDir  = "postgres" // below the state directory
	postgresPort = 5432       // names the socket only: there is no TCP port
	postgresRole = "benchloom"
	postgresDB   = "benchloom"
	socketName   = ".s.PGSQL.5432"
)

// maxSocketPath is the longest path of a Unix socket in bytes, without its final
// zero: 107 on Linux (unix(7), sun_path), 103 on macOS.
const maxSocketPath = 103

// PostgresOptions configures a private Postgres.
type PostgresOptions struct {
	// SearchDirs lists patterns (filepath.Glob) of directories with the programs of
	// Postgres, tried after PATH; nil means the usual directories of distributions.
	SearchDirs []string
	// MinMajor is the oldest accepted major version; 0 means any.
	MinMajor int
}

// Postgres is a private Postgres cluster below a state directory, reached
// through a Unix socket that only this user can open.
type Postgres struct {
	programs  postgresPrograms
	account   account
	dir       string // holds data and, where its path is short enough, the socket
	socketDir string
}

// NewPostgres finds the programs of Postgres and chooses the account they run as. The
// error is *PostgresMissingError if there are no suitable programs.
func NewPostgres(ctx context.Context, state *State, options PostgresOptions) (*Postgres, error) {
	dir, err := state.Subdir(postgresDir)
	if err != nil {
		return nil, err
	}
	p := &Postgres{dir: dir}
	p.socketDir = socketDirFor(filepath.Join(dir, "run"))
	if needed := len(p.socketDir) + 1 + len(socketName); needed > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket in %s would be %d bytes long, at most %d are possible: set TMPDIR to a directory with a shorter path", p.socketDir, needed, maxSocketPath)
	}
	var major int
	written, err := os.ReadFile(filepath.Join(p.data(), "PG_VERSION"))
	switch {
	case err == nil:
		if major, err = strconv.Atoi(strings.TrimSpace(string(written))); err != nil {
			return nil, fmt.Errorf("reading the version of the database in %s: %w", p.data(), err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading the version of the database: %w", err)
	}
	if p.programs, err = findPostgres(ctx, options, major); err != nil {
		return nil, err
	}
	if p.account, err = unprivilegedAccount(dir, state.Dir()); err != nil {
		return nil, fmt.Errorf("choosing the account that Postgres runs as: %w", err)
	}
	return p, nil
}

// DSN returns the connection string of the database.
func (p *Postgres) DSN() string { return p.dsn(postgresDB) }

func (p *Postgres) dsn(database string) string {
	query := url.Values{"host": {p.socketDir}, "port": {strconv.Itoa(postgresPort)}, "user": {postgresRole}}
	// libpq and pgx do not decode a plus sign as a space.
	return "postgres:///" + database + "?" + strings.ReplaceAll(query.Encode(), "+", "%20")
}

// Version returns the major version of the programs in use.
func (p *Postgres) Version() int { return p.programs.major }

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// Process returns the server's process for a supervisor. The cluster is created before
// the first start, leftovers of a crash are removed before each start, and the server is
// ready when its database exists and answers.
func (p *Postgres) Process() Process {
	settings := []string{
		// Nobody but this user reaches it.
		"listen_addresses=",
		"unix_socket_directories=" + p.socketDir,
		"unix_socket_permissions=0700",
		"port=" + strconv.Itoa(postgresPort),
		// Measurements are never lost.
		"fsync=on",
		"synchronous_commit=on",
		"full_page_writes=on",
		// Nothing follows its log: at this level, an idle server writes half as much.
		"wal_level=minimal",
		"max_wal_senders=0",
		// A small footprint: the same machine measures benchmarks.
		"shared_buffers=64MB",
		"max_connections=100",
		"max_wal_size=256MB",
		"max_parallel_workers_per_gather=0",
		"jit=off",
		// The supervisor keeps the log.
		"log_destination=stderr",
		"logging_collector=off",
		"log_min_messages=warning",
		"log_line_prefix=%m [%p] ",
		"timezone=UTC",
		"log_timezone=UTC",
	}
	argv := []string{p.programs.postgres, "-D", p.data()}
	for _, setting := range settings {
		argv = append(argv, "-c", setting)
	}
	return Process{
		Name:       "postgres",
		Argv:       argv,
		Env:        p.environment(),
		Dir:        p.dir,
		Prepare:    p.prepare,
		Ready:      p.answer,
		ReadyBound: 2 * time.Minute, // a crash may leave much to recover
		StopSignal: syscall.SIGINT,  // "fast" shutdown: ends sessions, writes everything
		StopBound:  20 * time.Second,
		QuitSignal: syscall.SIGQUIT, // "immediate" shutdown: recovers at the next start
		account:    p.account,
	}
}

// environment returns an environment without the variables that would redirect libpq
// and Postgres.
func (p *Postgres) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}

// prepare makes a start possible, whatever happened before.
func (p *Postgres) prepare(ctx context.Context) error {
	if err := giveTo(p.dir, p.account); err != nil {
		return Permanent(err)
	}
	if err := makeSocketDir(p.socketDir, "Postgres", p.account); err != nil {
		return Permanent(err)
	}
	if _, err := os.Stat(filepath.Join(p.data(), "PG_VERSION")); errors.Is(err, fs.ErrNotExist) {
		return p.create(ctx)
	} else if err != nil {
		return Permanent(fmt.Errorf("looking at the database: %w", err))
	}
	return p.clearStale(ctx)
}

// makeSocketDir creates the directory of a socket that only the account, and root, may open;
// what is for errors.
func makeSocketDir(dir, what string, by account) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating the directory for the socket of %s: %w", what, err)
	}
	// In the directory for temporary files, anybody may have created it.
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("creating the directory for the socket of %s: %w", what, err)
	}
	want, _ := by.ownerOnDisk()
	uid, _ := ownerOf(info)
	if !info.IsDir() || (uid != want && uid != os.Geteuid()) {
		return fmt.Errorf("%s, where the socket of %s goes, belongs to somebody else (uid %d): remove it", dir, what, uid)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("protecting the directory for the socket of %s: %w", what, err)
	}
	return giveTo(dir, by)
}

// create creates the cluster under a temporary name and renames it, so that an existing
// cluster is always complete.
func (p *Postgres) create(ctx context.Context) error {
	began, err := filepath.Glob(filepath.Join(p.dir, "creating-*"))
	if err != nil {
		return Permanent(err)
	}
	for _, dir := range append(began, p.data()) {
		if err := os.RemoveAll(dir); err != nil {
			return Permanent(fmt.Errorf("removing a database that was not completely created: %w", err))
		}
	}
	creating := filepath.Join(p.dir, "creating-"+strconv.Itoa(os.Getpid()))
	cmd := exec.CommandContext(ctx, p.programs.initdb,
		"--pgdata="+creating, "--username="+postgresRole,
		"--auth-local=trust", "--auth-host=reject",
		"--encoding=UTF8", "--no-locale", "--data-checksums")
	cmd.Env, cmd.Dir = p.environment(), p.dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if cmd.SysProcAttr, err = processAttributes(p.account, syscall.SIGKILL); err != nil {
		return Permanent(err)
	}
	// The kernel ends the child together with the thread that forked it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		err = fmt.Errorf("creating the database with %s: %w: %s", p.programs.initdb, err, strings.TrimSpace(output.String()))
		if p.account.kind == accountMapped && errors.Is(err, syscall.EPERM) {
			err = fmt.Errorf("%w: user %s cannot enter %s and this system allows no user namespace: use a state directory that this user can enter, or run as an ordinary user", err, p.account.name, p.dir)
		}
		return Permanent(err)
	}
	if err := os.Rename(creating, p.data()); err != nil {
		return Permanent(fmt.Errorf("creating the database: %w", err))
	}
	return nil
}

// clearStale removes the lock files of a killed server. Postgres does so itself unless
// another process has its PID now. The caller holds the state directory, so a server
// that still runs is a leftover and is ended.
func (p *Postgres) clearStale(ctx context.Context) error {
	pidFile := filepath.Join(p.data(), "postmaster.pid")
	text, err := os.ReadFile(pidFile)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return Permanent(fmt.Errorf("looking for an earlier Postgres: %w", err))
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if pid, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && pid > 0 {
		started, err := startIdentity(pid)
		if err == nil && p.isServer(pid) {
			if err := endProcess(ctx, pid, started, syscall.SIGQUIT); err != nil {
				return fmt.Errorf("ending an earlier Postgres: %w", err)
			}
		}
	}
	for _, stale := range []string{
		pidFile,
		filepath.Join(p.socketDir, socketName),
		filepath.Join(p.socketDir, socketName+".lock"),
	} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Permanent(fmt.Errorf("removing what an earlier Postgres left: %w", err))
		}
	}
	return nil
}

// isServer reports whether a process is a Postgres on this data directory, judged by its
// working directory. If that cannot be read, Postgres itself detects the conflict by its
// shared memory.
func (p *Postgres) isServer(pid int) bool {
	dir, err := workingDir(pid)
	if err != nil {
		return false
	}
	data, err := filepath.EvalSymlinks(p.data())
	return err == nil && dir == data
}

// answer returns nil when the server answers and its database exists.
func (p *Postgres) answer(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.dsn("postgres"))
	if err != nil {
		return fmt.Errorf("connecting to Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", postgresDB).Scan(&exists); err != nil {
		return fmt.Errorf("looking for database %s: %w", postgresDB, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{postgresDB}.Sanitize()); err != nil {
		return fmt.Errorf("creating database %s: %w", postgresDB, err)
	}
	return nil
}

// plainPath matches paths with nothing that Postgres's settings or connection
// strings would take apart, such as a comma.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._+ -]+$`)

// socketDirFor returns where the socket goes: the directory itself or, if its path is too
// long or has special characters, one of its own among the temporary files.
func socketDirFor(dir string) string {
	if len(dir)+1+len(socketName) <= maxSocketPath && plainPath.MatchString(dir) {
		return dir
	}
	hash := sha256.Sum256([]byte(dir))
	return filepath.Join(os.TempDir(), "benchloom-"+hex.EncodeToString(hash[:6]))
}
