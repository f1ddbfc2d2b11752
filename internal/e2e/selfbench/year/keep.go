package year

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/gofrs/flock"

	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/store"
)

// Keep keeps years, since making one takes long.
type Keep struct {
	// Dir is a directory of this package's own, such as one among the caches of a user.
	Dir string
	// Progress tells what is being done.
	Progress func(string, ...any)
}

// Made tells how a year was made.
type Made struct {
	At time.Time `json:"at"`
	// Seconds is the time of making it.
	Seconds float64 `json:"seconds"`
	// Bytes is the disk space that it takes.
	Bytes int64 `json:"bytes"`
	// New is set if it was made by this call.
	New bool `json:"-"`
}

const (
	madeFile = "made.json"
	// making begins the name of a directory whose year is not complete.
	making = "making-"
	// stateDir is the state directory of the stack whose Postgres holds the year.
	stateDir = "state"
)

// ErrNoRoom reports a file system without room for a year.
var ErrNoRoom = errors.New("too little disk space")

// Copy puts a copy of the Postgres that holds a year of a size into the state directory of
// a stack that has none yet. If the year was made before the newest migrations, the copy is
// migrated, as the record of a service is. The year is made first if none is kept, or only
// those of other versions; then they are removed. A year that was not completed is begun
// anew. The error wraps [ErrNoRoom] if a file system has too little room.
func (k Keep) Copy(ctx context.Context, size Size, state string) (_ Made, err error) {
	if err := size.Check(); err != nil {
		return Made{}, err
	}
	if err := os.MkdirAll(k.Dir, 0o755); err != nil {
		return Made{}, fmt.Errorf("keeping a year: %w", err)
	}
	// One that copies must not have its year removed.
	lock := flock.New(filepath.Join(k.Dir, "lock"), flock.SetFlag(os.O_RDWR|os.O_CREATE))
	if _, err := lock.TryLockContext(ctx, time.Second); err != nil {
		return Made{}, fmt.Errorf("waiting for another that makes or copies a year in %s: %w", k.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	dir, current, err := k.kept(size)
	if err != nil {
		return Made{}, err
	}
	made, err := readMade(dir)
	if errors.Is(err, fs.ErrNotExist) {
		made, err = k.make(ctx, size, dir)
	}
	if err != nil {
		return Made{}, err
	}
	if err := room(filepath.Dir(state), made.Bytes, "a copy of the year"); err != nil {
		return Made{}, err
	}
	begun := time.Now()
	if err := copyTree(ctx, filepath.Join(dir, stateDir, "postgres", "data"), filepath.Join(state, "postgres", "data")); err != nil {
		return Made{}, fmt.Errorf("copying a year: %w", err)
	}
	k.Progress("a copy of the year took %s", time.Since(begun).Round(time.Second))
	if !current {
		begun = time.Now()
		if err := serve(ctx, state, store.Migrate); err != nil {
			return Made{}, fmt.Errorf("migrating a copy of the year: %w", err)
		}
		k.Progress("the copy was migrated in %s", time.Since(begun).Round(time.Second))
	}
	return made, nil
}

// kept finds a year of a size among those of this program's schema, which is the current
// one, and those from which it goes on, the newest first. If there is none, it returns where
// one of the current schema belongs.
func (k Keep) kept(size Size) (dir string, current bool, err error) {
	schemas := store.SchemaDigests()
	for i, schema := range schemas {
		dir := filepath.Join(k.Dir, size.key(schema))
		switch _, err := os.Stat(filepath.Join(dir, madeFile)); {
		case err == nil:
			return dir, i == 0, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", false, fmt.Errorf("looking for a kept year: %w", err)
		}
	}
	return filepath.Join(k.Dir, size.key(schemas[0])), true, nil
}

func readMade(dir string) (made Made, err error) {
	text, err := os.ReadFile(filepath.Join(dir, madeFile))
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil {
		return Made{}, fmt.Errorf("reading how the year was made: %w", err)
	}
	return made, nil
}

// room refuses a file system with less free space than needed and the reserve that a
// service wants.
func room(dir string, needed int64, what string) error {
	space, err := diskspace.Of(dir)
	if err != nil {
		return err
	}
	reserve, _ := diskspace.Reserve{}.Of(space)
	if space.Free < needed+reserve {
		return fmt.Errorf("%w: %s takes %s, and %s stay free for the service, but %s has only %s free", ErrNoRoom, what,
			humanize.IBytes(uint64(needed)), humanize.IBytes(uint64(reserve)), dir, humanize.IBytes(uint64(space.Free)))
	}
	return nil
}

// make makes a year under another name, and gives it its own when it is complete.
func (k Keep) make(ctx context.Context, size Size, dir string) (Made, error) {
	if err := k.clear(); err != nil {
		return Made{}, err
	}
	if err := room(k.Dir, size.Bytes(), "making the year"); err != nil {
		return Made{}, err
	}
	begun := time.Now()
	k.Progress("making a year of %s points in %s, once; it takes at most %s", humanize.Comma(int64(size.Points())), k.Dir, humanize.IBytes(uint64(size.Bytes())))
	unfinished := filepath.Join(k.Dir, making+filepath.Base(dir))
	if err := os.Mkdir(unfinished, 0o755); err != nil {
		return Made{}, fmt.Errorf("making a year: %w", err)
	}
	if err := serve(ctx, filepath.Join(unfinished, stateDir), func(ctx context.Context, url string) error {
		if err := store.Migrate(ctx, url); err != nil {
			return err
		}
		return New(size, begun.UTC().Truncate(24*time.Hour)).Fill(ctx, url, k.Progress)
	}); err != nil {
		return Made{}, errors.Join(err, os.RemoveAll(unfinished))
	}
	if err := syncTree(unfinished); err != nil {
		return Made{}, fmt.Errorf("making a year: %w", err)
	}
	used, err := diskspace.Used(ctx, unfinished)
	if err != nil {
		return Made{}, fmt.Errorf("making a year: %w", err)
	}
	made := Made{At: begun.UTC(), Seconds: time.Since(begun).Round(time.Second).Seconds(), Bytes: used, New: true}
	text, err := json.Marshal(made)
	if err == nil {
		err = os.WriteFile(filepath.Join(unfinished, madeFile), text, 0o644)
	}
	if err == nil {
		err = os.Rename(unfinished, dir)
	}
	if err != nil {
		return Made{}, fmt.Errorf("keeping a year: %w", err)
	}
	return made, nil
}

// clear removes years of other versions and sizes, and those that were not completed.
func (k Keep) clear() error {
	entries, err := os.ReadDir(k.Dir)
	if err != nil {
		return fmt.Errorf("looking for kept years: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(k.Dir, e.Name())
		_, err := os.Stat(filepath.Join(path, madeFile))
		if !e.IsDir() || err != nil && !strings.HasPrefix(e.Name(), making) {
			continue // not of this package
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing a kept year: %w", err)
		}
	}
	return nil
}

// quick are settings for a Postgres whose data are thrown away unless it ends in peace.
var quick = []string{
	"fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0", "max_wal_size=1GB", "wal_recycle=off", "checkpoint_timeout=30min",
	"shared_buffers=512MB", "work_mem=64MB", "maintenance_work_mem=256MB",
	// What a year of updates leaves is reused in a quarter of an hour.
	"autovacuum_naptime=5s", "autovacuum_vacuum_cost_delay=0",
}

// stopBound bounds the end of a Postgres that has written much.
const stopBound = 5 * time.Minute

// serve runs the Postgres of a state directory, without the rest of a stack, during f.
func serve(ctx context.Context, state string, f func(ctx context.Context, url string) error) (err error) {
	held, err := devstack.OpenState(state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	postgres, err := devstack.NewPostgres(ctx, held, devstack.PostgresOptions{MinMajor: 13})
	if err != nil {
		return err
	}
	process := postgres.Process()
	for _, setting := range quick { // the last of several settings counts
		process.Argv = append(process.Argv, "-c", setting)
	}
	process.StopBound = stopBound
	supervisor, err := devstack.NewSupervisor(devstack.Config{State: held, Logger: slog.New(slog.DiscardHandler)}, process)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- supervisor.Run(running) }()
	select {
	case <-supervisor.Ready():
		err = f(ctx, postgres.DSN())
		stop()
		return errors.Join(err, <-ended)
	case err = <-ended:
		if err == nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("starting Postgres: %w", err)
	}
}
