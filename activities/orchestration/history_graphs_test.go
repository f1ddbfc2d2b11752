package orchestration_test

import (
	"errors"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/store"
)

// checkGraphs checks that the graphs of all requests agree with their jobs: each job is
// written for one graph of its request, the state of its node is that of the job for the
// request, nothing waits for itself, and what waits has a reason.
func (h *chronicle) checkGraphs() {
	h.t.Helper()
	for _, m := range h.machines {
		r := h.request(m.ref.ID)
		jobs, err := h.store.RequestJobs(h.ctx, r.ID)
		h.ok(err)
		set, err := h.store.GraphSet(h.ctx, r.ID)
		if errors.Is(err, store.ErrNotFound) {
			h.equal(0, len(jobs), "request "+string(r.ID)+" has jobs and no graph")
			continue
		}
		h.ok(err)
		h.checkGraphSet(r, jobs, set)
	}
}

func (h *chronicle) checkGraphSet(r bench.Request, jobs []bench.Job, set graphset.Set) {
	h.t.Helper()
	states := set.States(time.Now())
	nodes := make(map[bench.JobKey]int)
	for _, n := range set.Whole().Nodes {
		nodes[n.Job]++
	}
	h.equal(len(jobs), len(nodes), "jobs of request "+string(r.ID)+" with a node")
	for _, j := range jobs {
		h.equal(1, nodes[j.Key], "graphs that were written for job "+string(j.Key)+" of request "+string(r.ID))
		state, known := states[j.Key]
		h.equal(true, known, "job "+string(j.Key)+" has a state: nothing waits for itself")
		early := r.Status == bench.Completed && (r.Outcome == bench.Cancelled || r.Outcome == bench.Expired) &&
			(j.CompletedAt == nil || j.CompletedAt.After(*r.CompletedAt))
		var want []graph.Status
		switch {
		case early:
			want = []graph.Status{graph.Cancelled}
		case j.Status == bench.JobQueued:
			want = []graph.Status{graph.Ready, graph.Blocked}
		case j.Status == bench.JobHandedOut:
			want = []graph.Status{graph.Ready, graph.Blocked} // blocked: another request runs it
		default:
			want = []graph.Status{map[bench.JobStatus]graph.Status{
				bench.JobInProgress: graph.Running, bench.JobSuccess: graph.Success, bench.JobFailure: graph.Failure, bench.JobCancelled: graph.Cancelled,
			}[j.Status]}
		}
		fits := false
		for _, s := range want {
			fits = fits || s == state.Status
		}
		h.equal(true, fits, "job "+string(j.Key)+" of request "+string(r.ID)+" is "+string(j.Status)+", its node "+string(state.Status))
		h.equal(state.Status == graph.Blocked, state.Reason.Code != "", "what is blocked has a reason")
	}
	for _, n := range set.Nodes {
		h.equal(true, nodes[n.Job] == 1 || !n.Input, "input "+string(n.Job)+" was written for an earlier graph")
	}
	all, of := set.Sums(states)
	total := 0
	for _, sum := range of {
		total += sum.Jobs
	}
	h.equal(all.Jobs, total, "each job counts once")
}
