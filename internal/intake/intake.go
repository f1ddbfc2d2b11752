// Package intake takes wishes in: it writes the row of a request together with
// what it brings about, the requests of ancestors that nobody has asked for yet
// and the end of older builds that it replaces.
//
// Whoever makes requests (the API, the commit source's watcher) goes through it.
// The package must not know workflows: it says whose are to be started and
// cancelled, and the caller, or later the reconciliation, does that.
package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// Record keeps requests and commits; *store.Store implements it. It is called under no lock: each method is a transaction
// of its own, and repeating one changes nothing. It must not be nil.
type Record interface {
	CreateWithAncestors(ctx context.Context, r bench.Request, c store.Creation) (stored bench.Request, created []bench.Request, err error)
	NotifyArtifacts(ctx context.Context, id bench.RequestID, notice store.Notice, lineage store.Lineage) (store.NoticeReceipt, error)
	Commit(ctx context.Context, project, sha string) (store.Commit, error)
	MissingAncestors(ctx context.Context, project, sha string, most int, since time.Time) ([]store.Commit, error)
	RequestByTag(ctx context.Context, project, tag string) (bench.Request, error)
	SupersedeBuilds(ctx context.Context, r bench.Request) ([]bench.Request, error)
}

// Intake takes requests in.
type Intake struct {
	Record Record
	// Random is where the IDs of new requests come from.
	Random io.Reader
	Now    func() time.Time
	// Limited: requests come from people, whose limits on what waits hold.
	Limited bool
}

// Taken is what taking a request in did.
type Taken struct {
	Request bench.Request
	// Created are the requests that are new, this one among them, ancestors
	// first: their workflows are to be started.
	Created []bench.Request
	// Superseded are older builds that were ended: their workflows are to be
	// cancelled.
	Superseded []bench.Request
}

// IsNew tells whether the request itself was not there before.
func (t Taken) IsNew() bool {
	for _, r := range t.Created {
		if r.ID == t.Request.ID {
			return true
		}
	}
	return false
}

// Create takes a request in; r's ID is drawn here. What is known of its commit
// fills in the parent and the date that it does not name. Errors are those of
// [store.Store.CreateRequest]; with store.ErrConflict the request that is in the
// way is returned.
func (i Intake) Create(ctx context.Context, r bench.Request, config bench.ProjectConfig) (Taken, error) {
	var err error
	if r.ID, err = bench.NewRequestID(i.Random); err != nil {
		return Taken{}, err
	}
	if r.Type.HasParent() && r.Tag != "" {
		if r, err = i.fromCommit(ctx, r); err != nil {
			return Taken{}, err
		}
	}
	lineage, err := i.lineage(ctx, r, config)
	if err != nil {
		return Taken{}, err
	}
	t := Taken{}
	t.Request, t.Created, err = i.Record.CreateWithAncestors(ctx, r, store.Creation{Lineage: lineage, Limited: i.Limited})
	if err != nil {
		return t, err
	}
	// Also for one that was there: its first creation may have ended before this.
	if t.Request.Type == bench.Try && t.Request.PR != 0 && config.Queue.Supersede && t.Request.Status != bench.Completed {
		t.Superseded, err = i.Record.SupersedeBuilds(ctx, t.Request)
	}
	return t, err
}

// ArtifactsReady takes the notification in that a request's artifacts are ready.
func (i Intake) ArtifactsReady(ctx context.Context, r bench.Request, notice store.Notice, config bench.ProjectConfig) (store.NoticeReceipt, error) {
	asked := r
	asked.Tag = notice.Tag
	if notice.Parent != "" {
		asked.Parent = notice.Parent
	}
	asked, err := i.fromCommit(ctx, asked)
	if err != nil {
		return store.NoticeReceipt{}, err
	}
	notice.Parent = asked.Parent
	lineage, err := i.lineage(ctx, asked, config)
	if err != nil {
		return store.NoticeReceipt{}, err
	}
	return i.Record.NotifyArtifacts(ctx, r.ID, notice, lineage)
}

// fromCommit fills in what the commit source knows.
func (i Intake) fromCommit(ctx context.Context, r bench.Request) (bench.Request, error) {
	c, err := i.Record.Commit(ctx, r.Project, r.Tag)
	if errors.Is(err, store.ErrNotFound) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if r.Parent == "" {
		r.Parent = c.Parent
	}
	if r.CommitDate == nil {
		r.CommitDate = &c.CommittedAt
	}
	return r, nil
}

// lineage lists the ancestors that are still to be measured, within the project's
// look-back.
func (i Intake) lineage(ctx context.Context, r bench.Request, config bench.ProjectConfig) (store.Lineage, error) {
	if !r.Type.HasParent() || r.Parent == "" {
		return store.Lineage{}, nil
	}
	// Of one that has ended everything was asked for then, or never will be.
	switch parent, err := i.Record.RequestByTag(ctx, r.Project, r.Parent); {
	case err == nil && parent.Status == bench.Completed:
		return store.Lineage{}, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return store.Lineage{}, err
	}
	back := config.Source.LookBack
	l := store.Lineage{Note: fmt.Sprintf("its parent %s is not measured: nobody has asked for it, and the commit source does not know it; submit it, or name another parent, to have something to compare with", r.Parent)}
	parent, err := i.Record.Commit(ctx, r.Project, r.Parent)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return l, nil
	case err != nil:
		return l, err
	}
	since := back.Since(i.Now())
	if parent.CommittedAt.Before(since) {
		l.Note = fmt.Sprintf("its parent %s is not measured: it was committed on %s, before the look-back of the project begins (%s)", r.Parent, parent.CommittedAt.UTC().Format(time.DateOnly), since.UTC().Format(time.DateOnly))
		return l, nil
	}
	if r.Type == bench.Master && parent.Skipped {
		l.Note = fmt.Sprintf("its parent %s is not measured: the project began after it, and nobody has asked for it", r.Parent)
		return l, nil
	}
	above, err := i.Record.MissingAncestors(ctx, r.Project, r.Parent, back.Limit()-1, since)
	if err != nil {
		return l, err
	}
	for _, c := range append([]store.Commit{parent}, above...) {
		id, err := bench.NewRequestID(i.Random)
		if err != nil {
			return l, err
		}
		l.Missing = append(l.Missing, store.Ancestor{ID: id, Tag: c.SHA, Parent: c.Parent, CommitDate: c.CommittedAt})
	}
	return l, nil
}
