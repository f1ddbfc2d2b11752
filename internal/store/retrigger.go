package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graphset"
)

// Retriggers: jobs of a request that a person chooses by its graphs run again, with those
// that need them if the person says so. They are a graph of their own in the request's set.

// repetition returns the chosen part of the graphs of the locked request. It returns
// ErrNotFound if the request has no such graph.
func (o reopening) repetition(ctx context.Context) (graphset.Repetition, error) {
	now, err := value[time.Time](ctx, o.tx, `select now()`)
	if err != nil {
		return graphset.Repetition{}, err
	}
	set, err := o.skip(ctx, now)
	if err != nil {
		return graphset.Repetition{}, err
	}
	number := o.options.Retrigger.Number
	if len(set.Graphs) == 0 || number > 0 && !slices.ContainsFunc(set.Graphs, func(g graphset.Graph) bool { return g.Number == number }) {
		return graphset.Repetition{}, fmt.Errorf("%w: request %s has no such graph", ErrNotFound, o.request.ID)
	}
	type row struct {
		Key        bench.JobKey
		Benchmarks []string
	}
	if len(o.options.Retrigger.Select.Benchmarks) == 0 {
		return set.Repeat(*o.options.Retrigger, nil, now)
	}
	rows, err := all[row](ctx, o.tx, `
		select j.key, array_agg(distinct tc.benchmark) as benchmarks
		from request_job rj join job_queue j on j.id = rj.job_id join job_test_case t on t.job_id = j.id join test_case tc on tc.id = t.test_case_id
		where rj.request_id = $1 group by j.key`, o.request.ID)
	if err != nil {
		return graphset.Repetition{}, err
	}
	benchmarks := make(map[bench.JobKey][]string, len(rows))
	for _, r := range rows {
		benchmarks[r.Key] = r.Benchmarks
	}
	return set.Repeat(*o.options.Retrigger, benchmarks, now)
}

// skip records which nodes are skipped by now, as the request does when it counts, and then
// reads its graphs: only what has ended runs again.
func (o reopening) skip(ctx context.Context, now time.Time) (graphset.Set, error) {
	set, err := o.set(ctx)
	if err != nil || o.request.Template == nil {
		return set, err
	}
	if !slices.ContainsFunc(set.Nodes, func(n graphset.Node) bool { return n.Status == bench.JobQueued }) {
		return set, nil // nothing waits
	}
	var ends []NodeEnd
	for _, s := range set.Due(now).Skipped {
		ends = append(ends, SkippedNode(s))
	}
	if len(ends) == 0 {
		return set, nil
	}
	if _, _, err = endNodes(ctx, o.tx, o.request.ID, ends); err != nil {
		return set, err
	}
	return o.set(ctx)
}

// set reads the graphs of the request.
func (o reopening) set(ctx context.Context) (graphset.Set, error) {
	sets, err := graphSets(ctx, o.tx, []bench.RequestID{o.request.ID})
	return sets[o.request.ID], err
}

// chosen maps the jobs of a repetition by their keys.
func chosen(r graphset.Repetition) map[bench.JobKey]graphset.Again {
	out := make(map[bench.JobKey]graphset.Again, len(r.Chosen)+len(r.Dependents))
	for _, list := range [][]graphset.Again{r.Chosen, r.Dependents} {
		for _, a := range list {
			out[a.Job] = a
		}
	}
	return out
}

// only lists the jobs that may be replaced; empty: all.
func (o reopening) only() []string {
	keys := []string{}
	if o.options.Job != "" {
		keys = append(keys, string(o.options.Job))
	}
	for key := range o.again {
		keys = append(keys, string(key))
	}
	return keys
}

// newestGraph returns the ID of the request's newest graph.
func (o reopening) newestGraph(ctx context.Context) (string, error) {
	number, err := value[int](ctx, o.tx, `select max(number) from graph where request_id = $1`, o.request.ID)
	return bench.GraphID{Request: o.request.ID, Number: number}.String(), err
}

// also says what becomes of the jobs downstream, as the end of a sentence.
func also(r graphset.Repetition) string {
	var parts []string
	if n := len(r.Dependents); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of them downstream", n))
	}
	if r.Open > 0 {
		parts = append(parts, count(r.Open, "more job")+" downstream not ended yet")
	}
	if r.Left > 0 {
		parts = append(parts, count(r.Left, "job")+" downstream left alone")
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, "; ")
}
