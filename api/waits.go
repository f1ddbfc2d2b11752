package api

import (
	"context"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

// explainWaiting says of each job that nobody carries out what it waits for.
func (s *server) explainWaiting(ctx context.Context, jobs []apiclient.Job, runs []apiclient.Run) error {
	running := make(map[bench.JobKey]bool)
	for _, r := range runs {
		running[r.Job] = running[r.Job] || r.Outcome == bench.RunRunning
	}
	waiting := make(map[bench.JobKey]*apiclient.Job)
	var keys []bench.JobKey
	for i := range jobs {
		if j := &jobs[i]; j.Status.Open() && !running[j.Key] {
			where := "pool " + j.TaskQueue
			if bench.IsSet(j.TaskQueue) {
				where = "the set of collectors that can run it, " + j.TaskQueue
			}
			j.Waits = "an idle collector of " + where
			if j.Status == bench.JobQueued {
				j.Waits = "its turn at " + where
			}
			waiting[j.Key] = j
			keys = append(keys, j.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	stranded, err := s.stranded(ctx, keys...)
	if err != nil {
		return err
	}
	for key, words := range stranded {
		waiting[key].Waits = words
	}
	return s.explainHeld(ctx, waiting, stranded)
}

// explainHeld says of those jobs that are rows and that a pause or a limit holds that
// it does: in the words of their explanation, and as there before all else or, a
// limit, behind that nobody at their task queue lives.
func (s *server) explainHeld(ctx context.Context, waiting map[bench.JobKey]*apiclient.Job, stranded map[bench.JobKey]string) error {
	keys := make([]bench.JobKey, 0, len(waiting))
	for key, j := range waiting {
		if j.Status == bench.JobQueued {
			keys = append(keys, key)
		}
	}
	submitters, err := s.Store.Submitters(ctx, keys)
	if err != nil {
		return err
	}
	pauses := make(map[string]*store.Pause)
	accounts := make(map[string]diagnose.Account)
	for key, submitter := range submitters {
		j := waiting[key]
		pause, known := pauses[j.Project]
		if !known {
			if pause, err = s.Store.QueuePause(ctx, j.Project); err != nil {
				return err
			}
			pauses[j.Project] = pause
		}
		account, known := accounts[submitter]
		if !known {
			hold, err := s.Store.AccountHold(ctx, submitter, "")
			if err != nil {
				return err
			}
			account = diagnose.Account{Name: submitter, MaxRunning: hold.MaxRunning, UnderWay: hold.UnderWay, Stranded: hold.Stranded}
			accounts[submitter] = account
		}
		switch {
		case pause != nil:
			j.Waits = diagnose.Pause{Who: pause.By, Why: pause.Reason}.Words(j.Project)
		case account.Full() && stranded[key] == "":
			j.Waits = account.Words()
		}
	}
	return nil
}

// stranded says of those of the jobs at whose pool nobody lives what becomes of
// them.
func (s *server) stranded(ctx context.Context, keys ...bench.JobKey) (map[bench.JobKey]string, error) {
	stranded, err := s.Store.StrandedJobs(ctx, keys...)
	if err != nil || len(stranded) == 0 {
		return nil, err
	}
	fleet, err := s.Store.Fleet(ctx, s.OfflineAfter)
	if err != nil {
		return nil, err
	}
	all := make(map[bench.JobKey]string, len(stranded))
	for _, j := range stranded {
		words, err := s.strandedWords(ctx, j, fleet)
		if err != nil {
			return nil, err
		}
		if words != "" {
			all[j.Key] = words
		}
	}
	return all, nil
}

func (s *server) strandedWords(ctx context.Context, j store.WaitingJob, fleet plan.Fleet) (string, error) {
	p, err := s.Store.Project(ctx, j.Project)
	if err != nil {
		return "", err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		config = bench.ProjectConfig{FailoverAfter: bench.NoFailover} // nothing moves until it is corrected
	}
	plan := placement.PlanFailover(fleet, placement.Waiting{
		At: j.At(), Pinned: j.Pinned || config.Size.Pin() != 0, After: config.Failover(), Requirements: j.Requirements(),
	})
	return plan.Words(j.At(), s.Now()), nil
}
