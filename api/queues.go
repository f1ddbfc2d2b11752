package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/store"
)

// Queues reads and configures queues and the limits of accounts.
type Queues interface {
	Queues(ctx context.Context) ([]store.QueueState, error)
	Queue(ctx context.Context, name string) (q fairshare.Queue, known bool, err error)
	Accounts(ctx context.Context) ([]store.AccountState, error)
	Limits(ctx context.Context, account string) (fairshare.Limits, error)
	ApplyQueues(ctx context.Context, c fairshare.Config, replace bool, act store.Act) (store.Operation, error)
	QueueKnown(ctx context.Context, name string) (bool, error)
	SetWeight(ctx context.Context, name string, weight float64, act store.Act) (store.Operation, error)
}

func (s *server) registerQueues() {
	handle(s, operation{id: "list-queues", method: http.MethodGet, path: "/queues", need: toRead, tag: "queues",
		summary: "The queues in which jobs wait for their turn", description: "In the order in which they go, each with its backlog; and the limits of accounts."}, s.listQueues)
	handle(s, operation{id: "apply-queues", method: http.MethodPut, path: "/queues", need: toAdmin, tag: "queues",
		summary: "Configure queues and limits of accounts", description: "All of it is taken or nothing. It holds for all that is not handed out yet; new levels also for what waits for a collector."}, s.applyQueues)
	handle(s, operation{id: "set-weight", method: http.MethodPut, path: "/queues/{queue}/weight", need: toAdmin, tag: "queues",
		summary: "Give a weighted queue another weight"}, s.setWeight)
}

func (s *server) listQueues(ctx context.Context, _ *none) (*body[apiclient.FairQueues], error) {
	states, err := s.Store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	accounts, err := s.Store.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]fairshare.Queue, len(states))
	for i, q := range states {
		all[i] = q.Queue
	}
	out := apiclient.FairQueues{Queues: make([]apiclient.FairQueue, len(states)), Accounts: make([]apiclient.Account, len(accounts))}
	for i, q := range states {
		out.Queues[i] = apiclient.FairQueue{
			Name: q.Name, Class: q.Class, Weight: q.Weight, Level: q.Level, Queued: q.Queued, HandedOut: q.HandedOut, Running: q.Running,
			Warning: fairshare.Warning(q.Queue, all), UpdatedBy: q.By, UpdatedAt: q.At,
		}
	}
	for i, a := range accounts {
		out.Accounts[i] = apiclient.Account{AccountLimit: a.AccountLimit, Queued: a.Queued, Running: a.Running, UpdatedBy: a.By, UpdatedAt: a.At}
	}
	return answer(out, nil)
}

type applyQueues struct{ Body apiclient.QueueConfig }

func (s *server) applyQueues(ctx context.Context, in *applyQueues) (*body[apiclient.Operation], error) {
	who, err := act(ctx, in.Body.Act)
	if err != nil {
		return nil, err
	}
	who.DryRun = in.Body.DryRun
	file := fairshare.File{Queues: in.Body.Queues, Accounts: in.Body.Accounts}
	if file.Empty() && !in.Body.Replace {
		return nil, invalid("the configuration names no queue and no account; write some under queues or accounts")
	}
	config, err := file.Check()
	if err != nil {
		return nil, faults(err)
	}
	done, err := s.Store.ApplyQueues(ctx, config, in.Body.Replace, who)
	return s.reconfigured(ctx, done, err)
}

// faults is a problem that lists everything that is wrong with a configuration.
func faults(err error) error {
	var several interface{ Unwrap() []error }
	if !errors.As(err, &several) || len(several.Unwrap()) == 1 {
		return err
	}
	p := invalid("nothing was changed: the configuration has %s", count(len(several.Unwrap()), "error"))
	for _, e := range several.Unwrap() {
		p.Errors = append(p.Errors, &huma.ErrorDetail{Message: plain(e)})
	}
	return p
}

type setWeight struct {
	Queue string `path:"queue" doc:"Name of the queue." example:"user:ada"`
	Body  apiclient.QueueWeight
}

func (s *server) setWeight(ctx context.Context, in *setWeight) (*body[apiclient.Operation], error) {
	who, err := act(ctx, in.Body.Act)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(bench.CheckQueue(in.Queue), fairshare.CheckWeight(in.Queue, in.Body.Weight)); err != nil {
		return nil, err
	}
	known, err := s.Store.QueueKnown(ctx, in.Queue)
	if err != nil {
		return nil, err
	}
	if !known && !in.Body.Create {
		return nil, problemf(http.StatusUnprocessableEntity, "unknown-queue",
			"there is no queue %q: nobody has configured it, it is no known account's or project's, and no job was ever in it; correct the name ('benchloom queue list'), or add --create (create: true) for a new one", in.Queue)
	}
	done, err := s.Store.SetWeight(ctx, in.Queue, in.Body.Weight, who)
	if errors.Is(err, store.ErrStrict) {
		return nil, problemf(http.StatusConflict, "strict-queue", "queue %s is strict: its level decides whose turn it is, not a weight; make it weighted with 'benchloom queue apply'", in.Queue)
	}
	return s.reconfigured(ctx, done, err)
}

// reconfigured lets a change reach what waits.
func (s *server) reconfigured(ctx context.Context, done store.Operation, err error) (*body[apiclient.Operation], error) {
	if err == nil && done.Result.Changed && done.ID != 0 {
		s.reach(ctx, "hand out by the new configuration", "", s.Dispatcher.Sweep)
	}
	return answer(operationOf(done), err)
}

// queueGuard tells whether the caller may put jobs of a branch into queues by name.
// Each name is looked up once: thousands of jobs may name the same.
func (s *server) queueGuard(ctx context.Context, branch string) func(queue string) error {
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

// mayUse refuses a queue that is not there, that is another account's, or that goes
// before what the caller's limits allow. One's own is always there.
func (s *server) mayUse(ctx context.Context, name, branch string) error {
	account := caller(ctx).Owner
	if err := bench.CheckQueue(name); err != nil {
		return err
	}
	if name == fairshare.OfUser(account) {
		return nil
	}
	if strings.HasPrefix(name, bench.UserQueue) {
		return problemf(http.StatusUnprocessableEntity, "not-your-queue", "queue %s is that of another account; leave the queue out for your own, %s", name, fairshare.OfUser(account))
	}
	q, known, err := s.Store.Queue(ctx, name)
	if err != nil {
		return err
	}
	if project, ofProject := strings.CutPrefix(name, bench.ProjectQueue); ofProject && !known {
		if _, err := s.project(ctx, project, http.StatusUnprocessableEntity); err != nil {
			return err
		}
		known = true
	}
	if !known {
		return s.unknownQueue(ctx, name)
	}
	limits, err := s.Store.Limits(ctx, account)
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

func (s *server) unknownQueue(ctx context.Context, name string) error {
	states, err := s.Store.Queues(ctx)
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

// standing checks in which queue a request's jobs are to wait, and of which branch
// they are.
func (s *server) standing(ctx context.Context, r apiclient.NewRequest) error {
	if r.Branch != "" {
		if err := fairshare.CheckBranch(r.Branch); err != nil {
			return err
		}
	}
	return s.queueGuard(ctx, r.Branch)(r.Queue)
}
