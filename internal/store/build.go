package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// BuildChunkBytes is the size of each piece of a build's archive except the last.
const BuildChunkBytes = 1 << 20

// Errors of builds that callers decide on.
var (
	// ErrNoBuild reports that the run's job does not build anything.
	ErrNoBuild = errors.New("the run's job builds nothing")
	// ErrIncomplete reports that an upload does not match its announced size or checksum.
	ErrIncomplete = errors.New("the upload is not complete")
)

// Build is the stored archive of a build.
type Build struct {
	Key       bench.BuildKey
	Project   string
	Tree      string
	Target    bench.Target
	Size      int64  // bytes
	SHA256    string // of the archive, in hexadecimal
	RunID     bench.RunID
	CreatedAt time.Time
	LastUsed  time.Time
}

// Chunks returns the number of pieces of the archive.
func (b Build) Chunks() int { return chunks(b.Size) }

func chunks(size int64) int { return int((size + BuildChunkBytes - 1) / BuildChunkBytes) }

const buildColumns = `b.key, b.project, b.tree, b.target, b.size, b.sha256, b.run_id, b.created_at, b.last_used`

// Build reads the description of a stored build. It returns ErrNotFound if the build was
// never stored or has been removed.
func (s *Store) Build(ctx context.Context, key bench.BuildKey) (Build, error) {
	b, err := one[Build](ctx, s.pool, `select `+buildColumns+` from build b where b.key = $1`, key)
	return b, wrap("reading build "+string(key), err)
}

// SetBuildRevision records which build an artifact of a project comes from. A tag that
// has moved is built again.
func (s *Store) SetBuildRevision(ctx context.Context, project, recipe string, spec bench.BuildSpec) error {
	_, err := s.pool.Exec(ctx, `
		insert into build_revision (project, tag, target, recipe, build_key) values (@project, @tag, @target, @recipe, @key)
		on conflict (project, tag, target, recipe) do update set build_key = excluded.build_key`,
		pgx.NamedArgs{"project": project, "tag": spec.Tag, "target": spec.Target, "recipe": recipe, "key": spec.Key})
	return wrap("recording what "+spec.Tag+" is built as", unknownReference(err))
}

// BuildOf returns the key of an artifact's build with a recipe. It returns ErrNotFound if
// no such build was ever requested.
func (s *Store) BuildOf(ctx context.Context, project, tag string, target bench.Target, recipe string) (bench.BuildKey, error) {
	key, err := value[bench.BuildKey](ctx, s.pool, `
		select build_key from build_revision where project = $1 and tag = $2 and target = $3 and recipe = $4`, project, tag, target, recipe)
	return key, wrap("looking for the build of "+tag, err)
}

// IsBuiltAs reports whether an artifact comes from the build, for any target and recipe.
func (s *Store) IsBuiltAs(ctx context.Context, project, tag string, key bench.BuildKey) (bool, error) {
	is, err := value[bool](ctx, s.pool, `
		select exists (select from build_revision where project = $1 and tag = $2 and build_key = $3)`, project, tag, key)
	return is, wrap("looking for the builds of "+tag, err)
}

// BuildGeneration returns the generation of the job that makes a build for a request:
// that of a job the request waits or waited for and has not dropped, so that asking again
// changes nothing;
// else that of an open job, so that requests share it; else a new one, as the result of
// an earlier job is gone or it failed for another request.
func (s *Store) BuildGeneration(ctx context.Context, request bench.RequestID, project string, key bench.BuildKey) (int, error) {
	generation, err := value[int](ctx, s.pool, `
		select coalesce(
			max(j.generation) filter (where exists (select from request_job rj where rj.job_id = j.id and rj.request_id = $1 and not rj.dropped)
				and j.status <> 'success'),
			max(j.generation) filter (where j.status in ('queued', 'handed_out', 'in_progress')),
			max(j.generation) + 1, 0)
		from job_queue j where j.kind = 'build' and j.project = $2 and j.build ->> 'key' = $3`, request, project, key)
	return generation, wrap("looking for jobs of build "+string(key), err)
}

// PutBuildChunk stores a piece of the archive that a run has built; repeating the call
// changes nothing. Pieces are numbered from 0, and all but the last have
// [BuildChunkBytes]. Late pieces count while the job is open, afterwards they fail with
// ErrJobClosed. ErrNoBuild reports that the job builds nothing.
func (s *Store) PutBuildChunk(ctx context.Context, run bench.RunID, number int, data []byte) error {
	return s.inTx(ctx, fmt.Sprintf("storing piece %d of the build of run %s", number, run), func(tx pgx.Tx) error {
		if len(data) == 0 || len(data) > BuildChunkBytes {
			return fmt.Errorf("%w: a piece has 1 to %d bytes, not %d", bench.ErrInvalid, BuildChunkBytes, len(data))
		}
		if _, err := buildJob(ctx, tx, run); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into build_chunk (run_id, number, data) values ($1, $2, $3) on conflict (run_id, number) do nothing`, run, number, data)
		return err
	})
}

// buildJob returns the open build job of a run.
func buildJob(ctx context.Context, tx pgx.Tx, id bench.RunID) (bench.Job, error) {
	_, job, err := lockRun(ctx, tx, id)
	switch {
	case err != nil:
		return bench.Job{}, err
	case job.Build == nil:
		return bench.Job{}, ErrNoBuild
	case !job.Status.Open():
		return bench.Job{}, fmt.Errorf("%w as %s", ErrJobClosed, job.Status)
	}
	return job, nil
}

// FinishBuild turns the pieces that a run has uploaded into the build of its job. It
// returns ErrIncomplete if pieces are missing, or size or checksum differ. If the build
// is stored already, that one stays and the pieces are deleted. Repeating the call
// changes nothing.
func (s *Store) FinishBuild(ctx context.Context, run bench.RunID, size int64, sha string) (Build, error) {
	var stored Build
	err := s.inTx(ctx, "storing the build of run "+string(run), func(tx pgx.Tx) error {
		job, err := buildJob(ctx, tx, run)
		if err != nil {
			return err
		}
		if err := lock(ctx, tx, "build "+string(job.Build.Key)); err != nil {
			return err
		}
		stored, err = one[Build](ctx, tx, `select `+buildColumns+` from build b where b.key = $1`, job.Build.Key)
		switch {
		case err == nil && stored.RunID == run:
			return nil
		case err == nil:
			_, err := tx.Exec(ctx, `delete from build_chunk where run_id = $1`, run)
			return err
		case !errors.Is(err, ErrNotFound):
			return err
		}
		if err := verifyBuild(ctx, tx, run, size, sha); err != nil {
			return err
		}
		stored, err = one[Build](ctx, tx, `
			insert into build as b (key, project, tree, target, size, sha256, run_id) values (@key, @project, @tree, @target, @size, @sha256, @run)
			returning `+buildColumns,
			pgx.NamedArgs{
				"key": job.Build.Key, "project": job.Project, "tree": job.Build.Tree, "target": job.Target,
				"size": size, "sha256": sha, "run": run,
			})
		return err
	})
	if err != nil {
		return Build{}, err
	}
	return stored, nil
}

// verifyBuild reads the pieces one after the other, as together they may not fit into
// memory.
func verifyBuild(ctx context.Context, tx pgx.Tx, run bench.RunID, size int64, sha string) error {
	sum := sha256.New()
	var got int64
	for number := range chunks(size) {
		data, err := value[[]byte](ctx, tx, `select data from build_chunk where run_id = $1 and number = $2`, run, number)
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("%w: piece %d is missing", ErrIncomplete, number)
		}
		if err != nil {
			return err
		}
		got += int64(len(data))
		sum.Write(data)
	}
	if hash := hex.EncodeToString(sum.Sum(nil)); size <= 0 || got != size || hash != sha {
		return fmt.Errorf("%w: it has %d bytes with the SHA-256 %s, not %d with %s", ErrIncomplete, got, hash, size, sha)
	}
	return nil
}

// BuildChunk reads a piece of a stored build; ErrNotFound if there is none. Reading the
// first piece counts as a use.
func (s *Store) BuildChunk(ctx context.Context, key bench.BuildKey, number int) ([]byte, error) {
	if number == 0 {
		if _, err := s.pool.Exec(ctx, `update build set last_used = now() where key = $1`, key); err != nil {
			return nil, wrap("recording the use of build "+string(key), err)
		}
	}
	data, err := value[[]byte](ctx, s.pool, `
		select c.data from build b join build_chunk c on c.run_id = b.run_id where b.key = $1 and c.number = $2`, key, number)
	return data, wrap(fmt.Sprintf("reading piece %d of build %s", number, key), err)
}

// BuildUsers lists the collectors with an open run of a job that measures an artifact
// that comes from the build.
func (s *Store) BuildUsers(ctx context.Context, key bench.BuildKey) ([]string, error) {
	names, err := column[string](ctx, s.pool, `
		select distinct n.collector from job_run n join job_queue j on j.id = n.job_id
		where n.outcome = '' and exists (select from build_revision r
			where r.build_key = $1 and r.project = j.project and r.target = j.target and r.tag in (j.tag, j.versus))`, key)
	return names, wrap("looking for the runs that need build "+string(key), err)
}

// PruneBuilds removes the least recently used builds until the rest fits into budget
// bytes, and the remains of abandoned uploads. Builds that an open request or job may
// still need stay, even above the budget. It returns the removed builds.
func (s *Store) PruneBuilds(ctx context.Context, budget int64) ([]Build, error) {
	var removed []Build
	err := s.inTx(ctx, "removing builds", func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "removal of builds"); err != nil {
			return err
		}
		var err error
		// Newer builds use up the budget first. Needed ones count towards it, but stay.
		if removed, err = all[Build](ctx, tx, `
			with used as (
				select b.key, sum(b.size) over (order by b.last_used desc, b.key) as together from build b
			)
			delete from build b using used u
			where u.key = b.key and u.together > $1 and not (`+buildNeeded+`)
			returning `+buildColumns, budget); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			delete from build_chunk c
			where not exists (select from build b where b.run_id = c.run_id)
				and not exists (
					select from job_run n join job_queue j on j.id = n.job_id
					where n.id = c.run_id and j.status in ('queued', 'handed_out', 'in_progress'))`)
		return err
	})
	if err != nil {
		return nil, err
	}
	return removed, nil
}

// buildNeeded reports whether an open request or job may still fetch build b: its tag or
// its parent's comes from b, or it waits for b.
const buildNeeded = `
	exists (
		select from build_revision v join benchmark_request r on r.project = v.project and v.tag in (r.tag, r.parent)
		where v.build_key = b.key and r.status <> 'completed'
	) or exists (
		select from build_revision v join job_queue j on j.project = v.project and v.tag in (j.tag, j.versus) and j.target = v.target
		where v.build_key = b.key and j.status in ('queued', 'handed_out', 'in_progress')
	) or exists (
		select from job_queue j join request_job rj on rj.job_id = j.id join benchmark_request r on r.id = rj.request_id
		where j.kind = 'build' and j.build ->> 'key' = b.key and r.status <> 'completed'
	)`

// finishBuild returns the final status of a build job: success if its build is stored.
func finishBuild(ctx context.Context, tx pgx.Tx, job bench.Job, gaveUp string) (bench.JobStatus, string, error) {
	stored, err := value[bool](ctx, tx, `select exists (select from build where key = $1)`, job.Build.Key)
	if err != nil || stored {
		return bench.JobSuccess, "", err
	}
	if gaveUp == "" {
		gaveUp, err = value[string](ctx, tx, `select message from job_run where job_id = $1 order by number desc limit 1`, job.ID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return "", "", err
		}
	}
	if gaveUp == "" {
		gaveUp = "no run reported why"
	}
	return bench.JobFailure, fmt.Sprintf("%s was not built: %s", job.Build, gaveUp), nil
}
