package jobrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

// requirementTimeout limits the command that checks a requirement.
const requirementTimeout = time.Minute

// prepared is a variant prepared for one subject, or the reason why it is not.
type prepared struct {
	places  places
	link    []string
	timeout time.Duration
	failure *Failure
	skipped string
}

// prepare prepares a variant in the subject's ${prepared}.
func (r *runner) prepare(ctx context.Context, subject Subject, number int, variant suite.Variant) (*prepared, error) {
	tc := bench.TestCase{Benchmark: variant.Benchmark, Profile: variant.Profile, Backend: variant.Backend, Target: variant.Target}
	r.report(tc, subject.Tag)
	p := &prepared{}
	paths := suite.Paths{
		Suite:    r.job.SuiteDir,
		Artifact: subject.Artifact,
		Prepared: r.m.place(fmt.Sprintf("%s%d", preparedName, number)),
		Work:     r.m.place(workName),
		Cache:    r.m.CacheDir,
		CPUs:     r.m.CPUs,
	}
	what := r.label(tc, subject.Tag)
	preparation, err := r.job.Suite.Preparation(variant, paths)
	if err == nil {
		p.timeout = preparation.Timeout
		p.link, err = relative(preparation.Hardlink, paths.Prepared)
	}
	if err != nil {
		p.failure = &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: the suite is wrong: %v", what, err)}
		return p, nil
	}
	c := copier{owner: r.m.Owner}
	for _, dir := range []string{paths.Prepared, paths.Work, paths.Cache} {
		if dir == "" {
			continue
		}
		if err := c.makeDirs(dir); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", what, err)
		}
	}
	if p.places, err = newPlaces(paths); err != nil {
		return nil, err
	}
	if preparation.Files != "" {
		if p.failure, err = r.copyFiles(ctx, p.places, what, preparation.Files); err != nil || p.failure != nil {
			return p, err
		}
	}
	r.freshTemp = true
	if p.skipped, err = r.unmet(ctx, p.places, what, preparation.Requires); err != nil || p.skipped != "" {
		return p, err
	}
	p.failure, err = r.steps(ctx, p.places, stepsOf{what + " prepare", true}, preparation.Steps, r.until(preparation.Timeout))
	if p.failure == nil {
		p.failure = stillThere(what, paths.Prepared)
	}
	return p, err
}

// copyFiles copies the benchmark's files from the bundle to ${prepared}.
func (r *runner) copyFiles(ctx context.Context, p places, what, files string) (*Failure, error) {
	if !filepath.IsAbs(files) {
		files = filepath.Join(p.paths.Suite, files)
	}
	source, err := p.inside(files, "a benchmark's files are part of its suite", p.paths.Suite)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Lstat(source); err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", files)
		}
	}
	if err != nil {
		return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: the suite is wrong: its files: %v", what, err)}, nil
	}
	if err := (copier{owner: r.m.Owner}).tree(ctx, source, p.paths.Prepared); err != nil {
		return nil, fmt.Errorf("%s: copying its files: %w", what, err)
	}
	return nil, nil
}

// unmet returns the reason of the first requirement that is not met.
func (r *runner) unmet(ctx context.Context, p places, what string, requirements []suite.Requirement) (string, error) {
	for _, req := range requirements {
		met := true
		if req.File != "" {
			_, err := os.Stat(req.File)
			met = err == nil
		}
		env := mergeEnv(r.m.baseEnv(), req.Env)
		if met && req.Command != "" {
			met = onPath(req.Command, env)
		}
		if met && len(req.Run) > 0 {
			_, failure, err := r.execute(ctx, call{what + " requirement", measure.Command{
				Argv: req.Run, Env: env, Dir: p.paths.Prepared, Timeout: requirementTimeout, Network: true,
			}})
			if err != nil {
				return "", err
			}
			met = failure == nil
		}
		if !met {
			if req.Reason == "" {
				return "the machine or the artifact lacks what the suite requires", nil
			}
			return req.Reason, nil
		}
	}
	return "", nil
}

// prepareScenario resolves a unit's recipe and carries out its own steps in
// ${work}, because each iteration must find their files at the same path. It
// then moves the outcome aside.
func (r *runner) prepareScenario(ctx context.Context, u *unit, p *prepared, outcome string) error {
	tc := u.result.TestCase
	r.report(tc, u.result.Subject)
	what := r.label(tc, u.result.Subject)
	recipe, err := r.job.Suite.Recipe(tc, p.places.paths, r.job.Iterations)
	if err == nil {
		err = checkRecipe(recipe)
	}
	if err != nil {
		u.fail(&Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: the suite is wrong: %v", what, err)})
		return nil
	}
	u.recipe, u.link, u.source = recipe, p.link, p.places.paths.Prepared
	if len(recipe.Prepare) == 0 {
		return nil
	}
	if err := r.fresh(ctx, u); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	failure, err := r.steps(ctx, u.places, stepsOf{what + " prepare", true}, recipe.Prepare, r.until(p.timeout))
	if err != nil {
		return err
	}
	if failure == nil {
		failure = stillThere(what, p.places.paths.Work)
	}
	if failure != nil {
		u.fail(failure)
		return nil
	}
	u.source = r.m.place(outcome)
	if err := os.Rename(p.places.paths.Work, u.source); err != nil {
		return fmt.Errorf("%s: setting the prepared directory aside: %w", what, err)
	}
	return nil
}

func checkRecipe(recipe suite.Recipe) error {
	switch m := recipe.Measure; {
	case len(m.Run) == 0:
		return errors.New("it names no command to measure")
	case recipe.Iterations < 1 || recipe.Warmups < 0:
		return fmt.Errorf("it has %d iterations and %d warm-ups", recipe.Iterations, recipe.Warmups)
	case m.Output != suite.OutputIgnored && m.Output != suite.OutputBenchfmt:
		return fmt.Errorf("unknown output format %q", m.Output)
	}
	return nil
}

// fresh makes ${work} a copy of the unit's source and empties the temporary
// directory.
func (r *runner) fresh(ctx context.Context, u *unit) error {
	work := u.places.paths.Work
	if err := removeTree(work); err != nil {
		return fmt.Errorf("emptying the work directory: %w", err)
	}
	c := copier{owner: r.m.Owner, link: u.link}
	r.freshTemp = true
	if u.source == "" {
		return c.makeDirs(work)
	}
	if err := c.tree(ctx, u.source, work); err != nil {
		return fmt.Errorf("copying into the work directory: %w", err)
	}
	return nil
}

// stepsOf names steps for messages, and says whether all of them reach the network.
type stepsOf struct {
	what    string
	network bool
}

// steps carries out steps in sequence within one time limit.
func (r *runner) steps(ctx context.Context, p places, of stepsOf, steps []suite.Step, limit deadline) (*Failure, error) {
	what := of.what
	for _, step := range steps {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(step.Run) == 0 {
			err := p.fileStep(ctx, step, r.m.Owner)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if failure, err := fileFailure(what, err); failure != nil || err != nil {
				return failure, err
			}
			continue
		}
		passed, err := r.m.passed(step.PassEnv)
		if err != nil {
			return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: %v", what, err)}, nil
		}
		dir := step.Dir
		if dir == "" {
			dir = p.paths.Prepared
		}
		timeout := limit.left()
		if step.Timeout > 0 && (timeout == 0 || step.Timeout < timeout) {
			timeout = step.Timeout
		}
		_, failure, err := r.execute(ctx, call{what, measure.Command{
			Argv: step.Run, Env: mergeEnv(r.m.baseEnv(), passed, step.Env), Dir: dir, Timeout: timeout, Network: of.network || step.Network,
		}})
		if failure != nil || err != nil {
			return failure, err
		}
	}
	return nil, nil
}

// fileFailure classifies the errors of file steps: a problem of the disk or of
// this process ends the job; a step that cannot be carried out as written is
// the suite's failure; anything else may be the artifact's.
func fileFailure(what string, err error) (*Failure, error) {
	if err == nil {
		return nil, nil
	}
	for _, machine := range []error{
		context.Canceled, context.DeadlineExceeded,
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	} {
		if errors.Is(err, machine) {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	kind := bench.FailJob
	if errors.Is(err, errRecipe) || errors.Is(err, errOutside) {
		kind = bench.FailPermanent
	}
	return &Failure{Kind: kind, Message: fmt.Sprintf("%s: %v; correct the suite", what, err)}, nil
}

// stillThere returns a failure if one of the job's own directories was removed
// or replaced.
func stillThere(what, dir string) *Failure {
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		return nil
	}
	return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: its commands removed or replaced %s; correct the suite", what, dir)}
}

// relative converts the linkable directories of a preparation to paths relative
// to ${prepared}.
func relative(dirs []string, base string) ([]string, error) {
	var rels []string
	for _, dir := range dirs {
		rel := filepath.Clean(dir)
		if filepath.IsAbs(dir) {
			var err error
			if rel, err = filepath.Rel(base, dir); err != nil {
				return nil, err
			}
		}
		if !filepath.IsLocal(rel) {
			return nil, fmt.Errorf("hardlink %s: it must lie below ${prepared}", dir)
		}
		rels = append(rels, rel)
	}
	return slices.Compact(rels), nil
}

// onPath reports whether a command is on the PATH of an environment.
func onPath(name string, env []string) bool {
	if filepath.IsAbs(name) {
		return executable(name)
	}
	for _, entry := range env {
		if list, ok := strings.CutPrefix(entry, "PATH="); ok {
			return slices.ContainsFunc(filepath.SplitList(list), func(dir string) bool {
				return filepath.IsAbs(dir) && executable(filepath.Join(dir, name))
			})
		}
	}
	return false
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
