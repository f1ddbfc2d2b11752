// Package commits looks at where a project's commits come from: a branch's
// first-parent history and the tags that are releases.
//
// It reads and decides nothing: which commits are requested, and what is recorded
// of them, is the caller's. It must not know the database, Temporal or requests.
package commits

import (
	"context"
	"errors"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Source provides commits. It is safe for concurrent use.
type Source interface {
	// Look fetches what is new and reads the branch and the tags. Its errors are
	// for people: they name the repository, the reason and what to do. They wrap
	// the context's error only when the caller's context has ended.
	Look(ctx context.Context, q Query) (History, error)
	// OnBranch tells which of the commits are in the first-parent history of head,
	// which an earlier Look has given.
	OnBranch(ctx context.Context, head string, shas []string) (map[string]bool, error)
}

// Query selects what a look reads.
type Query struct {
	// Known is the branch's head as it was seen last; empty: this is the first
	// look.
	Known string
	// Most and Since bound how far back commits are listed that Known reaches, or
	// all of them when nothing is known: at most so many, the newest included, and
	// none committed before. The head is always listed.
	Most  int
	Since time.Time
	// Releases is a pattern as of [path.Match]; empty: tags are not read.
	Releases string
}

// History is the result of a look.
type History struct {
	// Head is the branch's newest commit; empty: the repository is empty.
	Head string
	// Commits of the branch, the newest first, each followed by its first parent.
	Commits []Commit
	// New counts the Commits that are not reachable from Known; all of them if
	// nothing is known.
	New int
	// Rewritten is set when Known is not part of the branch any more, Lost when the
	// repository does not even hold it.
	Rewritten, Lost bool
	// Releases by tag.
	Releases []Release
	// Remarks are notes for people, in words.
	Remarks []string
}

// Commit of a branch.
type Commit struct {
	SHA string
	// Parent is the first one; empty: there is none, or the repository does not
	// know.
	Parent      string
	CommittedAt time.Time
	Author      string // name
	Subject     string // first line of the message
}

// Release is a tag.
type Release struct {
	Tag string
	SHA string // the commit that it marks
	// At is the time of the tag, or of its commit for a lightweight tag.
	At time.Time
}

// maxNew bounds how many new commits one look lists, so that a branch that is
// exchanged for a huge one does not drown the service.
const maxNew = 1000

// ErrNoSource: the project's configuration names no source.
var ErrNoSource = errors.New("the project has no commit source")

// Opener opens the sources that configurations name.
type Opener struct {
	// CacheDir holds mirrors of remote repositories.
	CacheDir string
	// Environ is this process's environment. Git is given only what it needs of it.
	Environ []string
	// Timeout bounds one look; 0: 10 minutes.
	Timeout time.Duration
}

// Open gives the source that a configuration names. It does not look yet.
func (o Opener) Open(s bench.CommitSource) (Source, error) {
	if !s.Configured() {
		return nil, ErrNoSource
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return newGit(s, o), nil
}
