package inspect

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

// Waits says in one line what each open job without a run waits for. Jobs that run or
// have ended are left out.
func (i *Inspector) Waits(ctx context.Context, jobs []bench.Job, running map[bench.JobKey]bool) (map[bench.JobKey]string, error) {
	waits := make(map[bench.JobKey]string)
	var open, queued []bench.JobKey
	projects := make(map[bench.JobKey]string)
	for _, j := range jobs {
		if !j.Status.Open() || running[j.Key] {
			continue
		}
		waits[j.Key] = diagnose.Turn(j.Status, j.TaskQueue)
		open = append(open, j.Key)
		if j.Status == bench.JobQueued {
			queued = append(queued, j.Key)
			projects[j.Key] = j.Project
		}
	}
	if len(open) == 0 {
		return waits, nil
	}
	stranded, err := i.stranded(ctx, open...)
	if err != nil {
		return nil, err
	}
	for key, words := range stranded {
		waits[key] = words
	}
	submitters, err := i.Record.Submitters(ctx, queued)
	if err != nil {
		return nil, err
	}
	inputs, err := i.Record.MissingInputs(ctx, queued...)
	if err != nil {
		return nil, err
	}
	for key, of := range inputs {
		waits[key] = diagnose.InputWords(of)
	}
	held := holds{inspector: i, pauses: make(map[string]*diagnose.Pause), accounts: make(map[string]diagnose.Account)}
	for key, submitter := range submitters {
		words, err := held.words(ctx, projects[key], submitter, stranded[key] != "" || len(inputs[key]) > 0)
		if err != nil {
			return nil, err
		}
		if words != "" {
			waits[key] = words
		}
	}
	return waits, nil
}

// holds reads pauses and limits, each once.
type holds struct {
	inspector *Inspector
	pauses    map[string]*diagnose.Pause // by project
	accounts  map[string]diagnose.Account
}

// words returns the pause or limit that holds a waiting job, worded as in its explanation;
// empty: none. A pause takes precedence over everything; a stranded task queue, or an input
// that has not ended, takes precedence over a limit.
func (h holds) words(ctx context.Context, project, submitter string, otherwise bool) (string, error) {
	pause, known := h.pauses[project]
	if !known {
		var err error
		if pause, err = h.inspector.pause(ctx, project); err != nil {
			return "", err
		}
		h.pauses[project] = pause
	}
	account, known := h.accounts[submitter]
	if !known {
		var err error
		if account, err = h.inspector.account(ctx, submitter, ""); err != nil {
			return "", err
		}
		h.accounts[submitter] = account
	}
	switch {
	case pause != nil:
		return pause.Words(project), nil
	case account.Full() && !otherwise:
		return account.Words(), nil
	}
	return "", nil
}

// stranded describes the failover of the jobs whose task queue no live collector serves.
func (i *Inspector) stranded(ctx context.Context, keys ...bench.JobKey) (map[bench.JobKey]string, error) {
	stranded, err := i.Record.StrandedJobs(ctx, keys...)
	if err != nil || len(stranded) == 0 {
		return nil, err
	}
	fleet, err := i.fleet(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[bench.JobKey]string, len(stranded))
	for _, j := range stranded {
		words, err := i.failover(ctx, j, fleet)
		if err != nil {
			return nil, err
		}
		if words != "" {
			all[j.Key] = words
		}
	}
	return all, nil
}

// failover says where a job moves, and when.
func (i *Inspector) failover(ctx context.Context, j store.WaitingJob, fleet plan.Fleet) (string, error) {
	p, err := i.Record.Project(ctx, j.Project)
	if err != nil {
		return "", err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		config = bench.ProjectConfig{FailoverAfter: bench.NoFailover} // nothing moves until it is corrected
	}
	move := placement.PlanFailover(fleet, placement.Waiting{
		At: j.At(), Pinned: j.Pinned || config.Size.Pin() != 0, After: config.Failover(), Requirements: j.Requirements(),
	})
	return move.Words(j.At(), i.Now()), nil
}
