package apiclient

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// ProfileReceipt says what became of an upload of samples.
type ProfileReceipt struct {
	Stored   int `json:"stored" doc:"Number of values that were stored."`
	Repeated int `json:"repeated" doc:"Number of batches that were stored before; they have changed nothing."`
}

// ProfileState says how far the sampling of a run has come.
type ProfileState string

// The states of sampling.
const (
	// ProfileNone: nothing has arrived.
	ProfileNone ProfileState = "none"
	// ProfileRecording: something has, and more may.
	ProfileRecording ProfileState = "recording"
	// ProfileFinished: something has, and nothing more will.
	ProfileFinished ProfileState = "finished"
)

// Profile lists what was sampled during a run.
type Profile struct {
	Run      bench.RunID      `json:"run"`
	State    ProfileState     `json:"state" enum:"none,recording,finished" doc:"none: nothing has arrived; finished: nothing more will."`
	Over     bool             `json:"over" doc:"Nothing more will arrive, also if nothing has."`
	Attempts []ProfileAttempt `json:"attempts" doc:"In the order of their beginning."`
}

// ProfileAttempt lists what one attempt at a run has sent.
type ProfileAttempt struct {
	Attempt      string             `json:"attempt"`
	Host         string             `json:"host"`
	BeganAt      time.Time          `json:"began_at" doc:"When its first upload arrived."`
	Partial      bool               `json:"partial,omitempty" doc:"It was cut off: what it had not sent is missing."`
	DroppedTotal int64              `json:"dropped_total" doc:"Values that were measured and lost."`
	Absent       []profiler.Absence `json:"absent" doc:"Metrics that the machine or the job's control group does not have."`
	Series       []ProfileSeries    `json:"series"`
}

// ProfileSeries is a series of an attempt.
type ProfileSeries struct {
	profiler.Series
	Unit   profiler.Unit `json:"unit"`
	Values int           `json:"values" doc:"Number of values."`
}

// ProfileMetrics is a page of samples.
type ProfileMetrics struct {
	State     ProfileState     `json:"state" enum:"none,recording,finished"`
	Batches   []profiler.Batch `json:"batches" doc:"In the order of their arrival."`
	Summaries []ProfileSummary `json:"summaries,omitempty" doc:"Of the attempts that have ended since."`
	Next      int              `json:"next" doc:"Value of from for what comes after."`
	More      bool             `json:"more,omitempty" doc:"There is more already: ask again with next."`
}

// ProfileSummary is the summary of an attempt.
type ProfileSummary struct {
	Attempt string `json:"attempt"`
	profiler.Summary
}

// Profile lists the series of a run.
func (c *Client) Profile(ctx context.Context, run bench.RunID) (Profile, error) {
	return get[Profile](ctx, c, v1("runs", string(run), "profile", "series"), nil)
}

// ProfileMetrics reads a page of a run's samples: those after from, which is Next of the page before; without series, of all.
func (c *Client) ProfileMetrics(ctx context.Context, run bench.RunID, from int, series ...string) (ProfileMetrics, error) {
	query := url.Values{"series": series}
	if from > 0 {
		query.Set("from", strconv.Itoa(from))
	}
	return get[ProfileMetrics](ctx, c, v1("runs", string(run), "profile", "metrics"), query)
}
