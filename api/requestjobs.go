package api

import (
	"context"
	"strconv"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

type listRequestJobs struct {
	Request string          `path:"request" doc:"ID of the request, or project:tag of its artifact." example:"go:1.26.0"`
	Status  bench.JobStatus `query:"status" enum:"queued,handed_out,in_progress,success,failure,cancelled" doc:"Only those with this status."`
	Limit   int             `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	After   string          `query:"after" doc:"The value of next from the page before."`
}

func (s *requestHandlers) listRequestJobs(ctx context.Context, in *listRequestJobs) (*body[apiclient.JobList], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	page := store.JobPage{Status: in.Status, Limit: in.Limit}
	if in.After != "" {
		if page.After, err = strconv.ParseInt(in.After, 10, 64); err != nil || page.After < 0 {
			return nil, invalid("after is %.40q; give what the page before named as next, or nothing for the first page", in.After)
		}
	}
	jobs, err := s.record.RequestJobPage(ctx, r.ID, page)
	if err != nil {
		return nil, err
	}
	list := apiclient.JobList{Jobs: make([]apiclient.Job, 0, len(jobs))}
	for _, j := range jobs {
		list.Jobs = append(list.Jobs, jobOf(j))
	}
	if err := expect(ctx, s.record, jobs, list.Jobs); err != nil {
		return nil, err
	}
	if len(jobs) == in.Limit {
		list.Next = strconv.FormatInt(jobs[len(jobs)-1].ID, 10)
	}
	return answer(list, nil)
}

// TypicalRecord knows how long jobs take.
type TypicalRecord interface {
	// TypicalSeconds returns how long jobs are expected to take, by their row IDs. A job that no other
	// is like is absent.
	TypicalSeconds(ctx context.Context, jobs []int64) (map[int64]float64, error)
}

// expect adds to jobs how long they are expected to take. Both lists have the same order.
func expect(ctx context.Context, record TypicalRecord, jobs []bench.Job, shown []apiclient.Job) error {
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	typical, err := record.TypicalSeconds(ctx, ids)
	for i, id := range ids {
		shown[i].ExpectedSeconds = typical[id]
	}
	return err
}
