// Package commits reads a project's commits from its repository: a branch's
// first-parent history and the tags that are releases.
//
// It only reads: the caller decides which commits are requested and recorded.
// It must not know the database, Temporal or requests.
package commits

import (
	"context"
	"errors"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Source provides commits. It is safe for concurrent use.
type Source interface {
	// Read fetches new commits and reads the branch and the tags. Its errors
	// are for people: they name the repository, the reason and the remedy. They
	// wrap the context's error only when the caller's context has ended.
	Read(ctx context.Context, q Query) (History, error)
	// OnBranch reports which of the commits are in the first-parent history of
	// head, as returned by an earlier Read.
	OnBranch(ctx context.Context, head string, shas []string) (map[string]bool, error)
}

// Query selects the commits and tags to read.
type Query struct {
	// Known is the branch's head at the previous reading; empty for the first.
	Known string
	// Most and Since limit the number and age of listed commits that are
	// reachable from Known, or of all commits if Known is empty. The head is
	// always listed.
	Most  int
	Since time.Time
	// Releases is a pattern for [path.Match]; if empty, tags are not read.
	Releases string
}

// History is the result of a reading.
type History struct {
	// Head is the branch's newest commit; empty if the repository is empty.
	Head string
	// Commits of the branch, newest first, each followed by its first parent.
	Commits []Commit
	// New counts the Commits that are not reachable from Known; all of them if
	// Known is empty.
	New int
	// Rewritten is set if Known is no longer part of the branch, Lost if the
	// repository does not have it at all.
	Rewritten, Lost bool
	// Releases by tag.
	Releases []Release
	// Remarks are notes for people.
	Remarks []string
}

// Commit of a branch.
type Commit struct {
	SHA string
	// Parent is the first parent; empty if there is none or the repository
	// lacks it.
	Parent      string
	CommittedAt time.Time
	Author      string // name
	Subject     string // first line of the message
}

// Release is a tag.
type Release struct {
	Tag string
	SHA string // the tagged commit
	// At is the time of the tag, or of its commit for a lightweight tag.
	At time.Time
}

// maxNew limits the number of new commits per look, so that replacing a branch
// by a huge one does not flood the service.
const maxNew = 1000

// ErrNoSource: the project's configuration names no source.
var ErrNoSource = errors.New("the project has no commit source")

// Opener opens the commit sources of projects.
type Opener struct {
	// CacheDir holds mirrors of remote repositories.
	CacheDir string
	// Environ is this process's environment. Git sees only the variables it
	// needs.
	Environ []string
	// Timeout limits one look; 0 means 10 minutes.
	Timeout time.Duration
}

// Open returns the configured source. It does not access it yet.
func (o Opener) Open(s bench.CommitSource) (Source, error) {
	if !s.Configured() {
		return nil, ErrNoSource
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return newGit(s, o), nil
}
