package api

import (
	"context"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
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
			j.Waits = "an idle collector of pool " + j.TaskQueue
			if j.Status == bench.JobQueued {
				j.Waits = "its turn at pool " + j.TaskQueue
			}
			waiting[j.Key] = j
			keys = append(keys, j.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	stranded, err := s.Store.StrandedJobs(ctx, keys...)
	if err != nil || len(stranded) == 0 {
		return err
	}
	counts, err := s.Store.LivePools(ctx, s.OfflineAfter)
	if err != nil {
		return err
	}
	pools := make([]placement.Pool, len(counts))
	for i, c := range counts {
		pools[i] = placement.Pool{Pool: c.Pool, Live: c.Live, Total: c.Total, Away: c.Away}
	}
	for _, j := range stranded {
		words, err := s.strandedWords(ctx, j, pools)
		if err != nil {
			return err
		}
		if words != "" {
			waiting[j.Key].Waits = words
		}
	}
	return nil
}

func (s *server) strandedWords(ctx context.Context, j store.WaitingJob, pools []placement.Pool) (string, error) {
	p, err := s.Store.Project(ctx, j.Project)
	if err != nil {
		return "", err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		config = bench.ProjectConfig{FailoverAfter: bench.NoFailover} // nothing moves until it is corrected
	}
	plan := placement.PlanFailover(pools, placement.Waiting{Pool: j.At(), Pinned: j.Pinned || config.Size.Class != 0, After: config.Failover()})
	return plan.Words(j.At(), s.Now()), nil
}
