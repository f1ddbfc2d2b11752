package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/store"
)

// QueueAccessRecord reads the queues that a caller may name, and the caller's limits.
type QueueAccessRecord interface {
	// Queue returns known false, without an error, for a queue that is neither
	// configured nor built in.
	Queue(ctx context.Context, name string) (q fairshare.Queue, known bool, err error)
	Queues(ctx context.Context) ([]store.QueueState, error)
	Limits(ctx context.Context, account string) (fairshare.Limits, error)
}

// queueAccess decides which queues a caller's jobs may wait in.
type queueAccess struct {
	names  lookup
	queues QueueAccessRecord
}

// queueGuard returns a check of the queues that the caller's jobs of a branch name. It
// looks up each name once: thousands of jobs may name the same.
func (s queueAccess) queueGuard(ctx context.Context, branch string) func(queue string) error {
	known := make(map[string]error)
	return func(queue string) error {
		err, there := known[queue]
		if !there && queue != "" {
			err = s.mayUse(ctx, queue, branch)
			known[queue] = err
		}
		return err
	}
}

// mayUse refuses unknown queues, those of other accounts, and those of an earlier level
// than the caller's limits allow. The caller's own queue always exists.
func (s queueAccess) mayUse(ctx context.Context, name, branch string) error {
	account := caller(ctx).Owner
	if err := bench.CheckQueue(name); err != nil {
		return err
	}
	if name == fairshare.OfUser(account) {
		return nil
	}
	if strings.HasPrefix(name, bench.UserQueue) {
		return problemf(http.StatusUnprocessableEntity, "not-your-queue", "queue %s belongs to another account; leave the queue out for your own, %s", name, fairshare.OfUser(account))
	}
	project, ofProject := strings.CutPrefix(name, bench.ProjectQueue)
	if ofProject {
		if err := mayChange(ctx, project); err != nil {
			return err
		}
	}
	q, known, err := s.queues.Queue(ctx, name)
	if err != nil {
		return err
	}
	if ofProject && !known {
		if _, err := s.names.project(ctx, project, http.StatusUnprocessableEntity); err != nil {
			return err
		}
		known = true
	}
	if !known {
		return s.unknownQueue(ctx, name)
	}
	limits, err := s.queues.Limits(ctx, account)
	if err != nil {
		return err
	}
	if first := limits.FirstLevel(account, branch); first > q.Level {
		of := ""
		if branch != "" {
			of = " on branch " + branch
		}
		return problemf(http.StatusUnprocessableEntity, "queue-too-early",
			"queue %s goes at level %d, and jobs of %s%s go at level %d at the earliest (first_level of the limits of accounts); leave the queue out, or name one of level %d or later ('benchloom queue list')",
			name, q.Level, account, of, first, first)
	}
	return nil
}

func (s queueAccess) unknownQueue(ctx context.Context, name string) error {
	states, err := s.queues.Queues(ctx)
	if err != nil {
		return err
	}
	names := []string{fairshare.OfUser(caller(ctx).Owner) + " (yours)"}
	for _, q := range states {
		if !strings.HasPrefix(q.Name, bench.UserQueue) {
			names = append(names, q.Name)
		}
	}
	return problemf(http.StatusUnprocessableEntity, "unknown-queue", "there is no queue %q; the queues are %s; an administrator makes one with 'benchloom queue apply'", name, strings.Join(names, ", "))
}

// standing checks the queue and branch that a request names.
func (s queueAccess) standing(ctx context.Context, r apiclient.NewRequest) error {
	if r.Branch != "" {
		if err := fairshare.CheckBranch(r.Branch); err != nil {
			return err
		}
	}
	return s.queueGuard(ctx, r.Branch)(r.Queue)
}

// queueOf names the queue of a request's jobs that name none themselves.
func queueOf(r bench.Request, config bench.ProjectConfig) string {
	return fairshare.OfRequest(r.Queue, r.Submitter, r.Project, r.Type, config)
}
