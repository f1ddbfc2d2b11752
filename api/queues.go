package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/store"
)

// QueueRecord stores the fair-share queues and the limits of accounts.
type QueueRecord interface {
	Queues(ctx context.Context) ([]store.QueueState, error)
	Accounts(ctx context.Context) ([]store.AccountState, error)
	// ApplyQueues applies a configuration as a whole; with replace, everything that it
	// does not name returns to its default.
	ApplyQueues(ctx context.Context, c fairshare.Config, replace bool, act store.Act) (store.Operation, error)
	// QueueKnown reports whether a queue is configured, belongs to an account or a project, or
	// had a job.
	QueueKnown(ctx context.Context, name string) (bool, error)
	// SetWeight returns store.ErrStrict for a strict queue.
	SetWeight(ctx context.Context, name string, weight float64, act store.Act) (store.Operation, error)
}

// queueHandlers serve the fair-share queues.
type queueHandlers struct {
	*base
	record QueueRecord
}

func (s *queueHandlers) register() {
	handle(s.base, operation{id: "list-queues", method: http.MethodGet, path: "/queues", need: toRead, tag: "queues",
		summary: "List queues", description: "Queues in the order in which they are served, each with its backlog, and the limits of accounts."}, s.listQueues)
	handle(s.base, operation{id: "apply-queues", method: http.MethodPut, path: "/queues", need: toAdmin, tag: "queues", maxBody: s.MaxBody,
		summary: "Configure queues and limits of accounts", description: "The configuration is applied as a whole or not at all. It takes effect for jobs that are not handed out yet; new levels also for jobs that wait for a collector."}, s.applyQueues)
	handle(s.base, operation{id: "set-weight", method: http.MethodPut, path: "/queues/{queue}/weight", need: toAdmin, tag: "queues",
		summary: "Change the weight of a queue"}, s.setWeight)
}

func (s *queueHandlers) listQueues(ctx context.Context, _ *none) (*body[apiclient.FairQueues], error) {
	states, err := s.record.Queues(ctx)
	if err != nil {
		return nil, err
	}
	accounts, err := s.record.Accounts(ctx)
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
			Name: q.Name, Class: q.Class, Weight: q.Weight, Level: q.Level, WaitObjective: q.Objective().Seconds(), Queued: q.Queued, HandedOut: q.HandedOut, Running: q.Running,
			Warning: fairshare.Warning(q.Queue, all), UpdatedBy: q.By, UpdatedAt: q.At,
		}
	}
	for i, a := range accounts {
		out.Accounts[i] = apiclient.Account{AccountLimit: a.AccountLimit, Queued: a.Queued, Running: a.Running, UpdatedBy: a.By, UpdatedAt: a.At}
	}
	return answer(out, nil)
}

type applyQueues struct{ Body apiclient.QueueConfig }

func (s *queueHandlers) applyQueues(ctx context.Context, in *applyQueues) (*body[apiclient.Operation], error) {
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
	done, err := s.record.ApplyQueues(ctx, config, in.Body.Replace, who)
	return s.reconfigured(ctx, done, err)
}

// faults returns a problem that lists all errors of a configuration.
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

func (s *queueHandlers) setWeight(ctx context.Context, in *setWeight) (*body[apiclient.Operation], error) {
	who, err := act(ctx, in.Body.Act)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(bench.CheckQueue(in.Queue), fairshare.CheckWeight(in.Queue, in.Body.Weight)); err != nil {
		return nil, err
	}
	known, err := s.record.QueueKnown(ctx, in.Queue)
	if err != nil {
		return nil, err
	}
	if !known && !in.Body.Create {
		return nil, problemf(http.StatusUnprocessableEntity, "unknown-queue",
			"there is no queue %q: it is not configured, belongs to no known account or project, and never had a job; correct the name ('benchloom queue list'), or add --create (create: true) for a new one", in.Queue)
	}
	done, err := s.record.SetWeight(ctx, in.Queue, in.Body.Weight, who)
	if errors.Is(err, store.ErrStrict) {
		return nil, problemf(http.StatusConflict, "strict-queue", "queue %s is strict: its level decides whose turn it is, not a weight; make it weighted with 'benchloom queue apply'", in.Queue)
	}
	return s.reconfigured(ctx, done, err)
}

// reconfigured answers a change, and applies it to waiting jobs.
func (s *queueHandlers) reconfigured(ctx context.Context, done store.Operation, err error) (*body[apiclient.Operation], error) {
	if err == nil && done.Result.Changed && done.ID != 0 {
		s.reach(ctx, "hand out by the new configuration", "", s.dispatcher.Sweep)
	}
	return answer(operationOf(done), err)
}
