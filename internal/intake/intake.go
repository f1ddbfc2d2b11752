// Package intake records new requests. With a request it records the requests of its
// missing ancestors, and it ends the older builds that the request supersedes.
//
// Everything that makes requests (the API, the watcher of commit sources) uses it. The
// package must not know workflows: it returns which to start and cancel, and the caller,
// or later the reconciliation, does so.
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

// Record stores requests and commits; *store.Store implements it. It is called without
// any lock. Each method is a transaction, and repeating a call changes nothing. It must
// not be nil.
type Record interface {
	CreateWithAncestors(ctx context.Context, r bench.Request, c store.Creation) (stored bench.Request, created []bench.Request, err error)
	NotifyArtifacts(ctx context.Context, id bench.RequestID, notice store.Notice, lineage store.Lineage) (store.NoticeReceipt, error)
	Commit(ctx context.Context, project, sha string) (store.Commit, error)
	MissingAncestors(ctx context.Context, project, sha string, most int, since time.Time) ([]store.Commit, error)
	RequestByTag(ctx context.Context, project, tag string) (bench.Request, error)
	SupersedeBuilds(ctx context.Context, r bench.Request) ([]bench.Request, error)
}

// Intake records requests.
type Intake struct {
	Record Record
	// Random is the source of the IDs of new requests.
	Random io.Reader
	Now    func() time.Time
	// Limited is set if the requests come from people: their accounts' limits on
	// waiting jobs apply.
	Limited bool
}

// Taken is the result of recording a request.
type Taken struct {
	Request bench.Request
	// Created lists the new requests, ancestors first, including Request if it is new.
	// The caller must start their workflows.
	Created []bench.Request
	// Superseded lists the older builds that were ended. The caller must cancel their
	// workflows.
	Superseded []bench.Request
}

// IsNew reports whether the request itself is new.
func (t Taken) IsNew() bool {
	for _, r := range t.Created {
		if r.ID == t.Request.ID {
			return true
		}
	}
	return false
}

// Create records a request under a new ID. A missing parent and date are filled in from
// the commit source. Errors are those of [store.Store.CreateRequest]; with
// store.ErrConflict the conflicting request is returned.
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
	// Also for an existing request: its creation may have been cut off before this.
	if t.Request.Type == bench.Try && t.Request.PR != 0 && config.Queue.Supersede && t.Request.Status != bench.Completed {
		t.Superseded, err = i.Record.SupersedeBuilds(ctx, t.Request)
	}
	return t, err
}

// ArtifactsReady records that a request's artifacts are ready.
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

// fromCommit fills in parent and date from the commit source.
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
	// The ancestors of a completed parent were requested before, or never will be.
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
