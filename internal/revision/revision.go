package revision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Errors that callers act on.
var (
	// ErrNoRepository: there is no repository at that address, or it may not be
	// read. The same call fails again until a person fixes it.
	ErrNoRepository = errors.New("no such repository")
	// ErrNoRevision: the repository does not have the revision.
	ErrNoRevision = errors.New("no such revision")
	// ErrUnreachable: the repository's server does not answer. A later call may
	// succeed.
	ErrUnreachable = errors.New("the repository cannot be reached")
	// ErrNoGit: this machine has no git program.
	ErrNoGit = errors.New("git is not installed")
)

// Revision is a commit with its content.
type Revision struct {
	Commit, Tree string // full hashes
}

// Repositories reads git repositories. It is safe for concurrent use; several
// processes may share its directory.
type Repositories struct {
	// Background lets a fetch continue when its caller gives up, so that the
	// next call benefits from a large download. Do not set it on machines that
	// measure.
	Background bool
	// Relative accepts what git calls a revision in local repositories, such as HEAD~1: for
	// people at the repository. What is recorded under a name needs one that stays.
	Relative bool

	dir     string
	environ []string

	mu      sync.Mutex
	fetches map[string]*fetching // by mirror
}

// fetching is a fetch in progress.
type fetching struct {
	done chan struct{}
	err  error // valid once done is closed
}

// fetchBound limits a fetch in the background.
const fetchBound = time.Hour

// New returns repositories whose mirrors are kept below dir, created when
// needed. Environ is the environment of this process, such as os.Environ(); see
// [Environment].
func New(dir string, environ []string) *Repositories {
	return &Repositories{
		dir: dir, fetches: make(map[string]*fetching),
		environ: append(Environment(environ), "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh"),
	}
}

// Resolve returns the commit that a tag means: a git tag of that name, or with
// a "v" before it; a branch; or a commit by its hash. A hash may be shortened
// to seven digits; or any revision of git's own, with Relative. Errors wrap [ErrNoRepository], [ErrNoRevision],
// [ErrUnreachable] or [ErrNoGit] where one of them is the reason.
func (r *Repositories) Resolve(ctx context.Context, repository, tag string) (Revision, error) {
	var found Revision
	err := r.within(ctx, repository, func(ctx context.Context, dir string, stale bool) (err error) {
		names := []string{"refs/tags/" + tag, "refs/tags/v" + tag}
		if !stale {
			names = append(names, "refs/heads/"+tag) // branches move
		}
		if hash.MatchString(tag) || r.Relative && filepath.IsAbs(repository) && !strings.HasPrefix(tag, "-") {
			names = append(names, tag)
		}
		found, err = r.find(ctx, dir, names)
		if errors.Is(err, ErrNoRevision) {
			err = fmt.Errorf("%w: it has no tag, branch or commit of that name; was it pushed, or its history rewritten?", err)
		}
		return err
	})
	if err != nil {
		return Revision{}, fmt.Errorf("looking for revision %s in %s: %w", tag, Redact(repository), err)
	}
	return found, nil
}

// within calls do with the repository's directory or, for a remote one, with
// that of its mirror, which may be stale; if it lacks the revision, it is
// updated and do is called again.
func (r *Repositories) within(ctx context.Context, repository string, do func(ctx context.Context, dir string, stale bool) error) error {
	if filepath.IsAbs(repository) {
		if err := r.checkLocal(ctx, repository); err != nil {
			return err
		}
		return do(ctx, repository, false)
	}
	mirror := r.mirror(repository)
	if _, err := os.Stat(filepath.Join(mirror, "HEAD")); err == nil {
		if err := do(ctx, mirror, true); !errors.Is(err, ErrNoRevision) {
			return err
		}
	}
	for {
		joined, err := r.update(ctx, repository, mirror)
		if err == nil {
			// A fetch that was already running may have started too early.
			if err = do(ctx, mirror, false); !joined || !errors.Is(err, ErrNoRevision) {
				return err
			}
		} else if !joined || ctx.Err() != nil {
			return err
		}
	}
}

// update updates a mirror, or waits for a running update.
func (r *Repositories) update(ctx context.Context, repository, mirror string) (joined bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	r.mu.Lock()
	f, joined := r.fetches[mirror]
	if !joined {
		f = &fetching{done: make(chan struct{})}
		r.fetches[mirror] = f
		fetchCtx, stop := ctx, func() {}
		if r.Background {
			fetchCtx, stop = context.WithTimeout(context.WithoutCancel(ctx), fetchBound)
		}
		go func() {
			defer stop()
			f.err = r.fetch(fetchCtx, repository, mirror)
			r.mu.Lock()
			delete(r.fetches, mirror)
			r.mu.Unlock()
			close(f.done)
		}()
	}
	r.mu.Unlock()
	if !joined && !r.Background {
		<-f.done // it ends with the context
		return joined, f.err
	}
	select {
	case <-f.done:
		return joined, f.err
	case <-ctx.Done():
		return joined, context.Cause(ctx)
	}
}

func (r *Repositories) mirror(repository string) string {
	sum := sha256.Sum256([]byte(repository))
	return filepath.Join(r.dir, hex.EncodeToString(sum[:8])+".git")
}

// checkLocal distinguishes a missing repository from one that git refuses.
func (r *Repositories) checkLocal(ctx context.Context, repository string) error {
	info, err := os.Stat(repository)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no directory %s on this machine; restore it, mount it here, or name the repository by a URL", ErrNoRepository, repository)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoRepository, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a directory", ErrNoRepository, repository)
	}
	if _, err := r.git(ctx, repository, nil, "rev-parse", "--git-dir"); err != nil {
		return explain(err)
	}
	return nil
}

// find returns the commit of the first of several names that has one.
func (r *Repositories) find(ctx context.Context, dir string, names []string) (Revision, error) {
	for _, name := range names {
		commit, err := r.object(ctx, dir, name+"^{commit}")
		if errors.Is(err, ErrNoRevision) {
			continue
		}
		if err != nil {
			return Revision{}, err
		}
		tree, err := r.object(ctx, dir, commit+"^{tree}")
		return Revision{Commit: commit, Tree: tree}, err
	}
	return Revision{}, ErrNoRevision
}

// object returns the hash of a name, or ErrNoRevision.
func (r *Repositories) object(ctx context.Context, dir, name string) (string, error) {
	out, err := r.git(ctx, dir, nil, "rev-parse", "--verify", "--quiet", name)
	var failed *failure
	if errors.As(err, &failed) {
		return "", ErrNoRevision
	}
	return strings.TrimSpace(out), err
}

var hash = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// fetch updates the mirror from the repository. References removed there are
// kept: their artifacts may be requested again.
func (r *Repositories) fetch(ctx context.Context, repository, mirror string) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("keeping a mirror of %s: %w", Redact(repository), err)
	}
	if _, err := os.Stat(filepath.Join(mirror, "HEAD")); err != nil {
		if _, err := r.git(ctx, r.dir, nil, "init", "--quiet", "--bare", "--", mirror); err != nil {
			return explain(err)
		}
	}
	if _, err := r.git(ctx, mirror, nil, "fetch", "--quiet", "--force", "--no-write-fetch-head", "--", repository, "+refs/*:refs/*"); err != nil {
		return explain(err)
	}
	return nil
}

// Export writes the tree of a commit into dir, an empty directory: all files as
// they are checked out, without the repository. Errors are those of
// [Repositories.Resolve]; a commit with a different tree is [ErrNoRevision],
// too.
func (r *Repositories) Export(ctx context.Context, repository string, want Revision, dir string) error {
	err := r.within(ctx, repository, func(ctx context.Context, git string, _ bool) error {
		tree, err := r.object(ctx, git, want.Commit+"^{tree}")
		switch {
		case errors.Is(err, ErrNoRevision):
			return fmt.Errorf("%w: it does not have that commit any more; was its history rewritten?", err)
		case err == nil && tree != want.Tree:
			return fmt.Errorf("%w: the commit has the tree %s there, not %s", ErrNoRevision, tree, want.Tree)
		case err != nil:
			return err
		}
		return r.checkOut(ctx, git, want.Tree, dir)
	})
	if err != nil {
		return fmt.Errorf("exporting commit %.12s of %s: %w", want.Commit, Redact(repository), err)
	}
	return nil
}

// checkOut uses a separate index: the repository may be in use or read-only,
// and git archive leaves out files marked export-ignore.
func (r *Repositories) checkOut(ctx context.Context, git, tree, dir string) (err error) {
	scratch, err := os.MkdirTemp("", "benchloom-index-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(scratch, "index")}
	if _, err := r.git(ctx, git, index, "read-tree", tree); err != nil {
		return explain(err)
	}
	if _, err := r.git(ctx, git, index, "--work-tree="+dir, "checkout-index", "--all", "--force", "--quiet"); err != nil {
		return explain(err)
	}
	return nil
}
