package store

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

// preview tells what measuring again would cost: the time that each job's last success took,
// by its share of test cases.
func (o reopening) preview(ctx context.Context, lacking []lackingJob, commands []bench.Job) (*Preview, error) {
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
	}
	past, err := all[lasted](ctx, o.tx, `
		select distinct on (n.job_id) n.job_id, extract(epoch from n.finished_at - n.started_at)::float8 as seconds
		from job_run n where n.job_id = any($1) and n.outcome = 'success' order by n.job_id, n.number desc`, ids)
	if err != nil {
		return nil, err
	}
	took := make(map[int64]float64, len(past))
	for _, p := range past {
		took[p.JobID] = p.Seconds
	}
	out := &Preview{}
	for i := range jobs {
		j := &jobs[i]
		seconds, known := took[j.Job.ID]
		if !known {
			out.Unknown++
			continue
		}
		if all := len(j.Job.TestCases); all > 0 && j.TestCases < all {
			seconds *= float64(j.TestCases) / float64(all)
		}
		j.Seconds = seconds
		out.MachineSeconds += seconds
	}
	out.Jobs = jobs[:min(len(jobs), shownPreview)]
	return out, nil
}
