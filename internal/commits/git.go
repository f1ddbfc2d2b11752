package commits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// git is a repository read by the git program: a local one in place, any other
// through a mirror.
type git struct {
	repository string // as configured
	branch     string
	local      string // path, when it is on this machine
	mirrors    string // directory of mirrors
	env        []string
	timeout    time.Duration
}

const defaultTimeout = 10 * time.Minute

func newGit(s bench.CommitSource, o Opener) *git {
	g := &git{repository: s.Git, branch: s.BranchName(), mirrors: o.CacheDir, env: environment(o.Environ), timeout: o.Timeout}
	if g.timeout == 0 {
		g.timeout = defaultTimeout
	}
	// A file URL is read in place too: git would refuse to fetch from a
	// repository of another user, and reading runs nothing from it.
	if local := strings.TrimPrefix(strings.TrimPrefix(s.Git, "file://localhost"), "file://"); strings.HasPrefix(local, "/") {
		g.local = filepath.Clean(local)
	}
	return g
}

// Read implements [Source].
func (g *git) Read(ctx context.Context, q Query) (History, error) {
	var h History
	err := g.bounded(ctx, func(ctx context.Context) error {
		dir, head, err := g.open(ctx)
		if err != nil {
			return err
		}
		h = History{Head: head}
		if head == "" {
			h.Remarks = append(h.Remarks, "the repository is empty: it has no branch yet")
			return nil
		}
		r := reader{git: g, dir: dir}
		if err := r.commits(ctx, q, &h); err != nil {
			return err
		}
		if q.Releases == "" {
			return nil
		}
		return r.releases(ctx, q.Releases, &h)
	})
	return h, err
}

// OnBranch implements [Source]. It reads the history from its newest commit
// until all are found.
func (g *git) OnBranch(ctx context.Context, head string, shas []string) (map[string]bool, error) {
	wanted := make(map[string]bool, len(shas))
	for _, sha := range shas {
		wanted[sha] = true
	}
	found := make(map[string]bool)
	err := g.bounded(ctx, func(ctx context.Context) error {
		dir, err := g.dir()
		if err != nil {
			return err
		}
		return reader{git: g, dir: dir}.run(ctx, func(sha string) bool {
			if wanted[sha] {
				found[sha] = true
			}
			return len(found) < len(wanted)
		}, "rev-list", "--first-parent", head, "--")
	})
	return found, err
}

// bounded runs f within the time limit and words its errors. Only the end of
// the caller's own context is returned as such.
func (g *git) bounded(ctx context.Context, f func(ctx context.Context) error) error {
	inner, stop := context.WithTimeout(ctx, g.timeout)
	defer stop()
	err := f(inner)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("looking at repository %s: %w", g.repository, context.Cause(ctx))
	case inner.Err() != nil:
		return fmt.Errorf("repository %s did not answer within %s; is its server slow or away?", g.repository, g.timeout)
	}
	return fmt.Errorf("repository %s: %w", g.repository, err)
}

// open returns the repository's git directory and the branch's head, after
// fetching a remote one. The head is empty if the repository is.
func (g *git) open(ctx context.Context) (dir, head string, err error) {
	if g.local == "" {
		return g.fetched(ctx)
	}
	if dir, err = g.dir(); err != nil {
		return "", "", err
	}
	r := reader{git: g, dir: dir}
	ref := "refs/heads/" + g.branch
	var branches []string
	err = r.run(ctx, func(line string) bool {
		sha, name, _ := strings.Cut(line, " ")
		if name == ref {
			head = sha
		}
		branches = append(branches, strings.TrimPrefix(name, "refs/heads/"))
		return true
	}, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads")
	switch {
	case err != nil:
		return "", "", fmt.Errorf("%w; is it a complete git repository?", err)
	case head == "" && len(branches) > 0:
		return "", "", noBranch(g.branch, branches)
	}
	return dir, head, nil
}

// dir returns the directory that git reads: of a local repository or of its
// mirror.
func (g *git) dir() (string, error) {
	if g.local == "" {
		return g.mirror(), nil
	}
	for _, dir := range []string{filepath.Join(g.local, ".git"), g.local} {
		// A file .git belongs to a worktree; git follows it.
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return dir, nil
		}
		if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
			return dir, nil
		}
	}
	_, err := os.Stat(g.local)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", errors.New("there is no such directory on the orchestrator's machine; restore it, or correct the project's source.git")
	case errors.Is(err, os.ErrPermission):
		return "", errors.New("the orchestrator's user may not enter it; give that user permission to read it")
	case err != nil:
		return "", err
	}
	return "", errors.New("this directory is not a git repository; name the one that contains .git, or a bare repository")
}

func noBranch(branch string, there []string) error {
	const most = 10
	list := strings.Join(there[:min(most, len(there))], ", ")
	if len(there) > most {
		list += fmt.Sprintf(" and %d more", len(there)-most)
	}
	return fmt.Errorf("there is no branch %q; the branches are %s; set the project's source.branch", branch, list)
}

// reader reads a git directory.
type reader struct {
	*git
	dir string
}

func (r reader) run(ctx context.Context, each func(string) bool, args ...string) error {
	return r.git.run(ctx, each, append([]string{"--git-dir=" + r.dir}, args...)...)
}

// format of a commit in one line. NUL is the only byte that no field can
// contain.
const format = "--format=%H%x00%P%x00%ct%x00%an%x00%s"

func (r reader) commits(ctx context.Context, q Query, h *History) error {
	known, err := r.known(ctx, q.Known, h)
	if err != nil {
		return err
	}
	if known != "" && known != h.Head {
		if h.Commits, err = r.list(ctx, maxNew+1, nil, h.Head, "^"+known); err != nil {
			return err
		}
		if len(h.Commits) > maxNew {
			h.Commits = h.Commits[:maxNew]
			h.Remarks = append(h.Remarks, fmt.Sprintf("more than %d commits are new at once; the older ones are left out", maxNew))
		}
	}
	h.New = len(h.Commits)
	window, err := r.list(ctx, max(1, q.Most), func(c Commit) bool { return c.SHA == h.Head || !c.CommittedAt.Before(q.Since) }, h.Head)
	if err != nil {
		return err
	}
	if len(window) > len(h.Commits) {
		h.Commits = window
	}
	if known == "" {
		h.New = len(h.Commits)
	}
	return r.shallow(h)
}

// known returns the last known commit of the branch, if the repository still has it.
func (r reader) known(ctx context.Context, sha string, h *History) (string, error) {
	if sha == "" || sha == h.Head {
		return sha, nil
	}
	err := r.run(ctx, nil, "cat-file", "-e", sha+"^{commit}")
	if exitCode(err) > 0 {
		h.Rewritten, h.Lost = true, true
		return "", nil
	}
	if err != nil {
		return "", err
	}
	err = r.run(ctx, nil, "merge-base", "--is-ancestor", sha, h.Head)
	if exitCode(err) == 1 {
		h.Rewritten = true
		return sha, nil
	}
	return sha, err
}

// list reads commits of a first-parent history, newest first, until wanted
// returns false.
func (r reader) list(ctx context.Context, most int, wanted func(Commit) bool, revisions ...string) ([]Commit, error) {
	var out []Commit
	var bad error
	args := append([]string{"rev-list", "--first-parent", "--no-commit-header", "--encoding=UTF-8", "--max-count=" + strconv.Itoa(most), format}, revisions...)
	err := r.run(ctx, func(line string) bool {
		var c Commit
		if c, bad = parseCommit(line); bad != nil || wanted != nil && !wanted(c) {
			return false
		}
		out = append(out, c)
		return true
	}, append(args, "--")...)
	return out, errors.Join(err, bad)
}

// maxText limits an author's name and a subject, in bytes.
const maxText = 500

func parseCommit(line string) (Commit, error) {
	fields := strings.Split(line, "\x00")
	if len(fields) != 5 {
		return Commit{}, fmt.Errorf("git describes a commit in %d fields instead of 5: %.100q", len(fields), line)
	}
	seconds, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return Commit{}, fmt.Errorf("commit %s has no date: %w", fields[0], err)
	}
	parent, _, _ := strings.Cut(fields[1], " ")
	return Commit{SHA: fields[0], Parent: parent, CommittedAt: moment(seconds), Author: shorten(fields[3]), Subject: shorten(fields[4])}, nil
}

// moment clamps a date, which may be forged, to the range of the database.
func moment(seconds int64) time.Time {
	const first, last = -62_135_596_800, 253_402_300_799 // years 1 and 9999
	return time.Unix(min(max(seconds, first), last), 0).UTC()
}

func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// shallow adds a remark if the repository is a shallow clone.
func (r reader) shallow(h *History) error {
	if _, err := os.Stat(filepath.Join(r.dir, "shallow")); err != nil || len(h.Commits) == 0 {
		return nil //nolint:nilerr // no such file: the clone is not shallow
	}
	if last := h.Commits[len(h.Commits)-1]; last.Parent == "" {
		h.Remarks = append(h.Remarks, fmt.Sprintf("the repository is a shallow clone that has nothing before commit %.12s; 'git fetch --unshallow' completes it", last.SHA))
	}
	return nil
}

// releases reads the tags that match the pattern and point to a commit.
func (r reader) releases(ctx context.Context, pattern string, h *History) error {
	var bad error
	var nested []Release
	err := r.run(ctx, func(line string) bool {
		fields := strings.Split(line, "\x00")
		if len(fields) != 6 {
			bad = fmt.Errorf("git describes a tag in %d fields instead of 6: %.100q", len(fields), line)
			return false
		}
		tag := strings.TrimPrefix(fields[0], "refs/tags/")
		if ok, err := path.Match(pattern, tag); err != nil || !ok {
			bad = err
			return err == nil
		}
		seconds, _ := strconv.ParseInt(fields[5], 10, 64) // a tag without a date has the oldest one
		release := Release{Tag: tag, At: moment(seconds)}
		switch {
		case fields[1] == "commit":
			release.SHA = fields[2]
		case fields[3] == "commit":
			release.SHA = fields[4]
		case fields[3] == "tag":
			nested = append(nested, release)
			return true
		default:
			return true // it points to a file or a tree
		}
		h.Releases = append(h.Releases, release)
		return true
	}, "for-each-ref", "--format=%(refname)%00%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)%00%(creatordate:unix)", "refs/tags")
	if err = errors.Join(err, bad); err != nil {
		return fmt.Errorf("reading its tags: %w", err)
	}
	for _, release := range nested {
		err := r.run(ctx, func(sha string) bool { release.SHA = sha; return true }, "rev-parse", "--verify", "--quiet", "refs/tags/"+release.Tag+"^{commit}")
		if err == nil && release.SHA != "" {
			h.Releases = append(h.Releases, release)
		} else if exitCode(err) <= 0 && err != nil {
			return fmt.Errorf("reading its tag %s: %w", release.Tag, err)
		}
	}
	return nil
}
