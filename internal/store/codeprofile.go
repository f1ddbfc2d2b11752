package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// ErrNoProfileJob reports that the run's job makes no profile.
var ErrNoProfileJob = errors.New("the run's job makes no profile")

const codeProfileColumns = `p.id, p.project, p.request_id as request, j.key as job, p.run_id as run, n.collector, n.hardware_id, p.tag,
	p.benchmark, p.profile, p.scenario, p.backend, p.target, p.profiler, p.format, p.raw_digest, p.raw_size, p.digest, p.size, p.sample_types, p.created_at`

const fromCodeProfiles = ` from code_profile p join job_queue j on j.id = p.job_id join job_run n on n.id = p.run_id `

// CheckProfileRun returns the errors of [Store.StoreCodeProfile] for a run, before its files
// are stored. A run that has a profile may send it again.
func (s *Store) CheckProfileRun(ctx context.Context, run bench.RunID) error {
	return s.inTx(ctx, "looking for the job of run "+string(run), func(tx pgx.Tx) error {
		r, job, err := lockRun(ctx, tx, run)
		switch {
		case err != nil:
			return err
		case job.Kind != bench.KindProfile:
			return fmt.Errorf("%w: it is of kind %s", ErrNoProfileJob, job.Kind)
		case r.Outcome == bench.RunRunning && job.Status.Open():
			return nil
		}
		_, err = one[bench.CodeProfile](ctx, tx, `select `+codeProfileColumns+fromCodeProfiles+`where p.job_id = $1 and n.rerun = $2`, job.ID, r.Rerun)
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("%w as %s", ErrRunClosed, r.Outcome)
		}
		return err
	})
}

// StoreCodeProfile records the profile of an open run of a profile job; the files are in
// the blob store. What identifies it is taken from the run. Only the first profile counts
// each time that a job is asked for: a repetition returns that. The error is ErrNotFound for an unknown run,
// ErrRunClosed for one that has ended, and ErrNoProfileJob for one of another kind.
func (s *Store) StoreCodeProfile(ctx context.Context, run bench.RunID, p bench.CodeProfile) (bench.CodeProfile, error) {
	var stored bench.CodeProfile
	err := s.inTx(ctx, "storing the profile of run "+string(run), func(tx pgx.Tx) error {
		r, job, err := lockRun(ctx, tx, run)
		if err != nil {
			return err
		}
		if job.Kind != bench.KindProfile {
			return fmt.Errorf("%w: it is of kind %s", ErrNoProfileJob, job.Kind)
		}
		stored, err = one[bench.CodeProfile](ctx, tx, `select `+codeProfileColumns+fromCodeProfiles+`where p.job_id = $1 and n.rerun = $2`, job.ID, r.Rerun)
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		if r.Outcome != bench.RunRunning || !job.Status.Open() {
			return fmt.Errorf("%w as %s", ErrRunClosed, r.Outcome)
		}
		types, err := json.Marshal(append([]bench.SampleTotal{}, p.SampleTypes...))
		if err != nil {
			return fmt.Errorf("encoding the types of samples: %w", err)
		}
		tc := job.TestCases[0]
		if _, err := tx.Exec(ctx, `
			insert into code_profile (id, project, request_id, job_id, run_id, tag, benchmark, profile, scenario, backend, target,
				profiler, format, raw_digest, raw_size, digest, size, sample_types)
			values (@id, @project, @request, @job, @run, @tag, @benchmark, @profile, @scenario, @backend, @target,
				@profiler, @format, @raw_digest, @raw_size, @digest, @size, @types)`,
			pgx.NamedArgs{
				"id": bench.ProfileIDOf(run), "project": job.Project, "request": job.HandedOutTo, "job": job.ID, "run": run, "tag": job.Tag,
				"benchmark": tc.Benchmark, "profile": tc.Profile, "scenario": tc.Scenario, "backend": tc.Backend, "target": tc.Target,
				"profiler": job.Profiler, "format": p.Format, "raw_digest": p.RawDigest, "raw_size": p.RawSize, "digest": p.Digest, "size": p.Size, "types": types,
			}); err != nil {
			return err
		}
		stored, err = one[bench.CodeProfile](ctx, tx, `select `+codeProfileColumns+fromCodeProfiles+`where p.job_id = $1 and n.rerun = $2`, job.ID, r.Rerun)
		return err
	})
	return stored, err
}

// CodeProfile reads a profile.
func (s *Store) CodeProfile(ctx context.Context, id bench.ProfileID) (bench.CodeProfile, error) {
	p, err := one[bench.CodeProfile](ctx, s.pool, `select `+codeProfileColumns+fromCodeProfiles+`where p.id = $1`, id)
	return p, wrap("reading profile "+string(id), err)
}

// CodeProfileFilter narrows a list of profiles; zero values do not narrow.
type CodeProfileFilter struct {
	Project string
	Request bench.RequestID
	Job     bench.JobKey
	Run     bench.RunID
	Tag     string
	// Benchmark narrows it to the profiles of one.
	Benchmark string
	Limit     int // 1 to 500
}

// CodeProfiles lists profiles, the newest first.
func (s *Store) CodeProfiles(ctx context.Context, filter CodeProfileFilter) ([]bench.CodeProfile, error) {
	ps, err := all[bench.CodeProfile](ctx, s.pool, `select `+codeProfileColumns+fromCodeProfiles+`
		where (@project = '' or p.project = @project) and (@request = '' or p.request_id = @request)
			and (@job = '' or j.key = @job) and (@run = '' or p.run_id = @run) and (@tag = '' or p.tag = @tag)
			and (@benchmark = '' or p.benchmark = @benchmark)
		order by p.created_at desc, p.id desc limit @limit`,
		pgx.NamedArgs{
			"project": filter.Project, "request": string(filter.Request), "job": string(filter.Job), "run": string(filter.Run), "tag": filter.Tag, "benchmark": filter.Benchmark,
			"limit": min(max(1, filter.Limit), maxListed),
		})
	return ps, wrap("listing profiles", err)
}

// BlobsInUse returns those of the digests that a profile, or a file of a run, names.
func (s *Store) BlobsInUse(ctx context.Context, digests []string) ([]string, error) {
	used, err := column[string](ctx, s.pool, `
		select d.digest from unnest($1::text[]) as d (digest)
		where exists (select from code_profile p where p.raw_digest = d.digest) or exists (select from code_profile p where p.digest = d.digest)
			or exists (select from run_file f where f.digest = d.digest)`, digests)
	return used, wrap("looking for what names files", err)
}
