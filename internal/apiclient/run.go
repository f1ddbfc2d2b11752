package apiclient

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// RunDetail is a run with its surroundings and failures.
type RunDetail struct {
	Run
	Project    string          `json:"project"`
	Tag        string          `json:"tag,omitempty"`
	Kind       bench.JobKind   `json:"kind"`
	Target     bench.Target    `json:"target"`
	Status     bench.JobStatus `json:"status" doc:"Of its job."`
	Version    string          `json:"version" doc:"Of the collector."`
	HardwareID string          `json:"hardware_id"`
	Segment    bench.Segment   `json:"segment,omitempty" doc:"Kernel, governor, microcode, boot options, turbo and SMT of the machine; an empty part is not known."`
	Facts      json.RawMessage `json:"facts,omitempty" doc:"Facts of the machine when the run began."`
	// LogBytes is the size of the whole output, also of what was not kept.
	LogBytes        int64      `json:"log_bytes" doc:"Size of its output, also of what was not kept."`
	OutputRemovedAt *time.Time `json:"output_removed_at,omitempty" doc:"When its output was removed for its age; absent: it is kept."`
	Results         int        `json:"results" doc:"Test cases with a result of this run."`
	Errors          []RunError `json:"errors" doc:"At most 100, the first ones first."`
}

// RunResultList is a page of the results of a run, in the order of their arrival.
type RunResultList struct {
	Results []RunResult `json:"results"`
	Next    string      `json:"next,omitempty" doc:"Value of after for the next page; absent on the last one."`
}

// RunResult sums up a run's measurements of a test case of one artifact.
type RunResult struct {
	TestCase bench.TestCase `json:"test_case"`
	Tag      string         `json:"tag"`
	Skipped  string         `json:"skipped,omitempty" doc:"Reason for leaving it out; absent: it was measured."`
	Invalid  *string        `json:"invalid,omitempty" doc:"Why it no longer counts; absent: it does."`
	Probe    bool           `json:"probe,omitempty" doc:"It enters no comparison."`
	// Disturbed counts iterations.
	Disturbed    int            `json:"disturbed,omitempty" doc:"Number of iterations that were disturbed."`
	DisturbedBy  string         `json:"disturbed_by,omitempty" doc:"Most frequent cause."`
	TooDisturbed bool           `json:"too_disturbed,omitempty" doc:"So many that no verdict uses it."`
	Values       []MetricValues `json:"values" doc:"By metric."`
}

// MetricValues are the values of one metric.
type MetricValues struct {
	Metric bench.Metric `json:"metric"`
	Unit   string       `json:"unit,omitempty" doc:"Of the values, such as sec or B; absent: they have none."`
	Count  int          `json:"count" doc:"Number of iterations."`
	Median float64      `json:"median"`
	Least  float64      `json:"least"`
	Most   float64      `json:"most"`
	Values []float64    `json:"values" doc:"Of the first iterations, at most 100."`
}

// Run reads a run.
func (c *Client) Run(ctx context.Context, id bench.RunID) (RunDetail, error) {
	return get[RunDetail](ctx, c, v1("runs", string(id)), nil)
}

// RunResults reads a page of a run's results. after is Next of the page before.
func (c *Client) RunResults(ctx context.Context, id bench.RunID, after string) (RunResultList, error) {
	query := url.Values{}
	set(query, "after", after)
	return get[RunResultList](ctx, c, v1("runs", string(id), "results"), query)
}
