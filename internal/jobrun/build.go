package jobrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/revision"
)

// Revisions exports the trees of revisions; *revision.Repositories implements it. A build calls Export; a local run calls
// Resolve first. Neither holds a lock: the implementation locks its mirrors. It must not be nil.
type Revisions interface {
	Resolve(ctx context.Context, repository, tag string) (revision.Revision, error)
	Export(ctx context.Context, repository string, want revision.Revision, dir string) error
}

// BuildJob describes an artifact to build.
type BuildJob struct {
	Spec      bench.BuildSpec
	Revisions Revisions
	// Archive is the file that receives the output, in the format of [artifact.Pack]. MaxBytes limits its size; 0 means no
	// limit.
	Archive  string
	MaxBytes int64
}

// Build exports the tree, runs the build command in it the way benchmarks are run, and packs the output. The machine must
// not measure anything meanwhile. Errors are as in [Run]: a *[Failure] is the build's own.
func Build(ctx context.Context, machine Machine, job BuildJob) (err error) {
	if err := machine.check(); err != nil {
		return err
	}
	r := &runner{m: machine, job: Job{Kind: bench.KindBuild}, log: quiet{machine.Log}, freshTemp: true}
	if err := r.m.Sandbox.Clean(ctx); err != nil {
		return fmt.Errorf("emptying the work directory: %w", err)
	}
	if err := r.room(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.m.Sandbox.Clean(context.WithoutCancel(ctx))) }()
	r.phase(Building)
	began := r.m.Now()
	err = r.build(ctx, job)
	r.timed(Building, began)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return r.explain(err)
	}
	return nil
}

func (r *runner) build(ctx context.Context, job BuildJob) error {
	spec, what := job.Spec, "build "+job.Spec.Tag
	dir := r.m.place(buildName)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(r.log, "== %s: commit %s, tree %s of %s\n", what, spec.Commit, spec.Tree, revision.Redact(spec.Repository))
	if err := job.Revisions.Export(ctx, spec.Repository, revision.Revision{Commit: spec.Commit, Tree: spec.Tree}, dir); err != nil {
		return revisionFailure(what, err)
	}
	if err := r.giveTree(dir); err != nil {
		return fmt.Errorf("%s: giving the tree to the build's account: %w", what, err)
	}
	passed, err := r.m.passed(spec.PassEnv)
	if err != nil {
		return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: %v", what, err)}
	}
	_, failure, err := r.execute(ctx, call{what, measure.Command{
		Argv: spec.Command, Env: mergeEnv(r.m.baseEnv(), passed, spec.Env), Dir: dir, Timeout: spec.Timeout(), Network: true,
	}})
	if err != nil {
		return err
	}
	if failure != nil {
		if last := lastLines(failure.Output); last != "" {
			failure.Message += "; its output ends with: " + last
		}
		return failure
	}
	return r.pack(ctx, what, dir, job)
}

// revisionFailure classifies an error of a repository: it is the machine's if a retry or another machine may help.
func revisionFailure(what string, err error) error {
	if errors.Is(err, revision.ErrNoRepository) || errors.Is(err, revision.ErrNoRevision) {
		return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("%s: %v", what, err)}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// giveTree changes the owner of everything below a directory to the account that commands run as.
func (r *runner) giveTree(dir string) error {
	if r.m.Owner == nil {
		return nil
	}
	c := copier{owner: r.m.Owner}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return c.give(path)
	})
}

// lastLines returns the end of an output on one line, for a message.
func lastLines(output string) string {
	const most = 6 // lines
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], " | ")
}

// pack writes the output to the archive.
func (r *runner) pack(ctx context.Context, what, dir string, job BuildJob) (err error) {
	fail := func(format string, args ...any) error {
		return &Failure{Kind: bench.FailPermanent, Message: what + ": " + fmt.Sprintf(format, args...)}
	}
	output, err := outputOf(dir, job.Spec.Output)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("the command %s ended well but left no %s; correct the parameter output, or the command", commandLine(job.Spec.Command), job.Spec.Output)
	case errors.Is(err, errOutside):
		return fail("the output %s leads out of the tree; name a file or directory below it", job.Spec.Output)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	file, err := os.Create(job.Archive)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = artifact.Pack(ctx, output, &bounded{w: file, limit: job.MaxBytes})
	switch {
	case errors.Is(err, artifact.ErrUnpackable):
		return fail("%v; name another output, or let the command remove what does not belong to it", err)
	case errors.Is(err, errTooLarge):
		return fail("its output %s is larger than %s when packed; name a smaller output, or allow more with --max-build-size of the API", job.Spec.Output, humanize.IBytes(uint64(job.MaxBytes)))
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// outputOf resolves the path of the output, which must lie within the tree.
func outputOf(dir, output string) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(output)))
	if err == nil && !within(real, root) {
		err = errOutside
	}
	return real, err
}

var errTooLarge = errors.New("larger than allowed")

// bounded is a writer that accepts at most limit bytes; 0 means no limit.
type bounded struct {
	w     io.Writer
	limit int64
	done  int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.done += int64(len(p)); b.limit > 0 && b.done > b.limit {
		return 0, errTooLarge
	}
	return b.w.Write(p)
}
