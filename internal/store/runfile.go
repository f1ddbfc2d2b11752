package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// ErrNoFilesJob reports a run whose job keeps no files.
var ErrNoFilesJob = errors.New("its job keeps no files")

// CheckFilesRun checks that a run may keep files: it is open, and its command names some. It
// returns the errors of [Store.StoreRunFile].
func (s *Store) CheckFilesRun(ctx context.Context, run bench.RunID) error {
	return s.inTx(ctx, "looking at run "+string(run), func(tx pgx.Tx) error { return keepsFiles(ctx, tx, run) })
}

func keepsFiles(ctx context.Context, tx pgx.Tx, id bench.RunID) error {
	run, job, err := lockRun(ctx, tx, id)
	switch {
	case err != nil:
		return err
	case job.Command == nil || job.Command.Script == nil || len(job.Command.Script.Uploads) == 0:
		return ErrNoFilesJob
	case run.Outcome != bench.RunRunning || !job.Status.Open():
		return fmt.Errorf("%w as %s", ErrRunClosed, run.Outcome)
	}
	return nil
}

// StoreRunFile records a file of an open run, whose content is in the blob store. The last one
// of a path counts. The error is ErrNotFound for an unknown run, ErrRunClosed for one that has
// ended, ErrNoFilesJob for one that keeps none, and ErrConflict for one file too many.
func (s *Store) StoreRunFile(ctx context.Context, id bench.RunID, f bench.RunFile) error {
	if err := bench.CheckRunFilePath(f.Path); err != nil {
		return err
	}
	return s.inTx(ctx, "recording a file of run "+string(id), func(tx pgx.Tx) error {
		if err := keepsFiles(ctx, tx, id); err != nil {
			return err
		}
		others, err := value[int](ctx, tx, `select count(*) from run_file where run_id = $1 and path <> $2`, id, f.Path)
		if err != nil {
			return err
		}
		if others >= bench.MaxRunFiles {
			return fmt.Errorf("%w: a run keeps at most %d files", ErrConflict, bench.MaxRunFiles)
		}
		_, err = tx.Exec(ctx, `
			insert into run_file (run_id, path, digest, size) values ($1, $2, $3, $4)
			on conflict (run_id, path) do update set digest = excluded.digest, size = excluded.size, created_at = now()`, id, f.Path, f.Digest, f.Size)
		return err
	})
}

const runFileColumns = `f.path, f.digest, f.size, f.created_at`

// RunFiles lists the files of a run by their paths.
func (s *Store) RunFiles(ctx context.Context, run bench.RunID) ([]bench.RunFile, error) {
	fs, err := all[bench.RunFile](ctx, s.pool, `select `+runFileColumns+` from run_file f where f.run_id = $1 order by f.path`, run)
	return fs, wrap("listing the files of run "+string(run), err)
}

// RunFile reads the description of a file of a run. It returns ErrNotFound if there is none.
func (s *Store) RunFile(ctx context.Context, run bench.RunID, path string) (bench.RunFile, error) {
	f, err := one[bench.RunFile](ctx, s.pool, `select `+runFileColumns+` from run_file f where f.run_id = $1 and f.path = $2`, run, path)
	return f, wrap("reading about a file of run "+string(run), err)
}
