package jobrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

const (
	// profileSizeEvery is the interval at which the size of a growing profile is checked.
	profileSizeEvery = 200 * time.Millisecond
	// maxProfileFiles bounds the files of one profile: those of the processes of a build.
	maxProfileFiles = 10_000
	// convertTimeout bounds the command that converts a profile.
	convertTimeout = 10 * time.Minute
)

var errProfileTooLarge = errors.New("the profile has become too large")

// profile runs the one test case without the profiler first, so that caches are warm, then under it. It delivers a block only
// for a failure: a profile is no result.
func (r *runner) profile(ctx context.Context, c testCase) error {
	u := c[0]
	if u.result.Skipped != "" {
		u.fail(&Failure{Kind: bench.FailPermanent, Message: u.result.Skipped})
		u.result.Skipped = ""
	}
	if u.open() {
		failure, err := r.profileUnit(ctx, u)
		if err = errors.Join(err, r.empty(u)); err != nil {
			return err
		}
		if failure != nil {
			u.fail(failure)
		}
	}
	if !u.open() {
		return r.deliver(ctx, []testCase{c})
	}
	r.progress.Done++
	r.sink.Progress(r.progress)
	return nil
}

func (r *runner) profileUnit(ctx context.Context, u *unit) (*Failure, error) {
	tc, p := u.result.TestCase, r.job.Profile
	what := r.label(tc, u.result.Subject) + " under " + p.Profiler
	with, err := p.Suite.Profiling(tc, p.Profiler, u.places.paths)
	if err != nil {
		return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: the suite is wrong: %v", what, err)}, nil
	}
	reason, err := r.unmet(ctx, u.places, what, with.Requires)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return &Failure{Kind: bench.FailPermanent, Message: what + ": " + reason}, nil
	}
	r.progress.Iteration, r.progress.Iterations = 0, 1
	r.report(tc, u.result.Subject)
	warm, err := r.attempt(ctx, u, 0, r.label(tc, u.result.Subject)+" warm-up")
	if err != nil || warm.failure != nil {
		return warm.failure, err
	}
	r.progress.Iteration = 1
	r.report(tc, u.result.Subject)
	if err := r.fresh(ctx, u); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	failure, err := r.steps(ctx, u.places, stepsOf{what + " before", false}, u.recipe.Before, r.until(u.recipe.Timeout))
	if failure != nil || err != nil {
		return failure, err
	}
	m := with.Measure
	dir := m.Dir
	if dir == "" {
		dir = u.places.paths.Work
	}
	env := mergeEnv(r.m.baseEnv(), m.Env)
	failure, err = r.bounded(ctx, call{what, measure.Command{Argv: m.Run, Dir: dir, Env: env, Timeout: with.Timeout, Network: m.Network}}, with.File)
	if failure != nil || err != nil {
		return failure, err
	}
	if len(with.Convert) > 0 {
		converted := with.File + ".converted"
		argv := slices.Concat([]string{"/bin/sh", "-c", `out=$1; shift; exec "$@" >"$out"`, "sh", converted}, with.Convert)
		failure, err = r.bounded(ctx, call{what + " converting", measure.Command{Argv: argv, Dir: u.places.paths.Work, Env: env, Timeout: convertTimeout}}, converted)
		if failure != nil || err != nil {
			return failure, err
		}
		with.File = converted
	}
	return r.keepProfile(ctx, u, with, what)
}

// bounded executes a command and ends it when the files that match a pattern exceed the limit in total.
func (r *runner) bounded(ctx context.Context, c call, pattern string) (*Failure, error) {
	watched, stop := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(profileSizeEvery)
		defer tick.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			if size, _ := sizeOf(pattern); size > r.job.Profile.Limit {
				stop(errProfileTooLarge)
				return
			}
		}
	}()
	_, failure, err := r.execute(watched, c)
	stop(nil)
	<-done
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	size, files := sizeOf(pattern)
	if errors.Is(err, errProfileTooLarge) || size > r.job.Profile.Limit {
		return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: ended because its profile exceeded %s; profile less of it, or with a lower frequency",
			c.what, humanize.IBytes(uint64(r.job.Profile.Limit)))}, nil
	}
	if err == nil && failure == nil && files > maxProfileFiles {
		failure = &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: it wrote %d files; at most %d become a profile", c.what, files, maxProfileFiles)}
	}
	return failure, err
}

// sizeOf returns the size and number of the files that match a pattern.
func sizeOf(pattern string) (size int64, files int) {
	matches, _ := filepath.Glob(pattern)
	for _, m := range matches {
		if info, err := os.Lstat(m); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size, len(matches)
}

func (r *runner) keepProfile(ctx context.Context, u *unit, with suite.Profiling, what string) (failure *Failure, err error) {
	files := ProfileFiles{Format: with.Format, Type: with.Type}
	defer func() {
		for _, f := range files.Files {
			err = errors.Join(err, f.Close())
		}
	}()
	matches, err := filepath.Glob(with.File)
	if err != nil {
		return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: file %s: %v", what, with.File, err)}, nil
	}
	slices.Sort(matches)
	for _, m := range matches {
		f, err := u.places.openFile(m)
		if err != nil {
			return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: reading the profile: %v", what, err)}, nil
		}
		files.Files = append(files.Files, f)
	}
	if len(files.Files) == 0 {
		return &Failure{Kind: bench.FailJob, Message: fmt.Sprintf("%s: the command succeeded, but wrote no profile: nothing matches %s", what, with.File)}, nil
	}
	err = r.job.Profile.Keep(ctx, files)
	if failure, ok := errors.AsType[*Failure](err); ok {
		failure.Message = what + ": " + failure.Message
		return failure, nil
	}
	return nil, err
}

// openFile opens a regular file that a command has written below its own directories. It never follows a link left by the
// command.
func (p places) openFile(path string) (*os.File, error) {
	real, err := p.readable(path)
	if err != nil {
		return nil, err
	}
	f, err := openWithoutFollowing(real)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
