package store

import (
	"context"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// preview tells what measuring again would cost: the time that each job's last success took,
// by its share of test cases, each time that it runs. takes also counts jobs that never
// succeeded, by their last run.
func (o reopening) preview(ctx context.Context, lacking []lackingJob, commands []bench.Job) (out *Preview, takes time.Duration, err error) {
	jobs := make([]PreviewedJob, 0, len(lacking)+len(commands))
	for _, j := range lacking {
		jobs = append(jobs, PreviewedJob{Job: j.Job, TestCases: len(j.cases)})
	}
	for _, j := range commands {
		jobs = append(jobs, PreviewedJob{Job: j, TestCases: 1})
	}
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i] = j.Job.ID
	}
	type lasted struct {
		JobID   int64
		Seconds float64
		Passed  bool
	}
	past, err := all[lasted](ctx, o.tx, `
		select distinct on (n.job_id) n.job_id, extract(epoch from n.finished_at - n.started_at)::float8 as seconds, n.outcome = 'success' as passed
		from job_run n where n.job_id = any($1) and n.outcome <> '' order by n.job_id, n.outcome = 'success' desc, n.number desc`, ids)
	if err != nil {
		return nil, 0, err
	}
	took := make(map[int64]lasted, len(past))
	for _, p := range past {
		took[p.JobID] = p
	}
	out = &Preview{}
	times := float64(o.options.again() + 1)
	for i := range jobs {
		j := &jobs[i]
		last := took[j.Job.ID]
		seconds := last.Seconds * times
		if all := len(j.Job.TestCases); all > 0 && j.TestCases < all {
			seconds *= float64(j.TestCases) / float64(all)
		}
		takes += time.Duration(seconds * float64(time.Second))
		if !last.Passed {
			out.Unknown++
			continue
		}
		j.Seconds = seconds
		out.MachineSeconds += seconds
	}
	out.Jobs = jobs[:min(len(jobs), shownPreview)]
	return out, takes, nil
}
