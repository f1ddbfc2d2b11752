package pages

import (
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// laneWidth is the width of the drawing of a lane, in its own units.
const laneWidth = 1000

// lanes shows when each collector worked for a request: a lane per collector, with its runs
// and the gaps between them.
type lanes struct {
	// From and To are the beginning of the first run and the end of the last.
	From, To time.Time
	Rows     []lane
}

// lane sums up the runs of one collector.
type lane struct {
	Collector string
	Runs      []laneRun
	// Busy is the time of its runs, Idle the time between them.
	Busy, Idle time.Duration
	// Retries and Escalations count the runs with these reasons, Lost those that were lost.
	Retries, Escalations, Lost int
}

// laneRun is a run with its place in the drawing.
type laneRun struct {
	apiclient.Run
	X, Width int
	Class    string
}

// lanesOf draws the runs of a request's jobs.
func lanesOf(d apiclient.RequestDetail, now time.Time) lanes {
	var out lanes
	end := func(r apiclient.Run) time.Time {
		if r.FinishedAt != nil {
			return *r.FinishedAt
		}
		return now
	}
	by := make(map[string][]apiclient.Run)
	for _, r := range d.Runs {
		by[r.Collector] = append(by[r.Collector], r)
		if out.From.IsZero() || r.StartedAt.Before(out.From) {
			out.From = r.StartedAt
		}
		if e := end(r); e.After(out.To) {
			out.To = e
		}
	}
	whole := max(out.To.Sub(out.From), time.Second)
	x := func(t time.Time) int { return int(float64(laneWidth) * float64(t.Sub(out.From)) / float64(whole)) }
	for name, runs := range by {
		slices.SortFunc(runs, func(a, b apiclient.Run) int { return a.StartedAt.Compare(b.StartedAt) })
		row := lane{Collector: name}
		for i, r := range runs {
			from, to := r.StartedAt, end(r)
			row.Busy += to.Sub(from)
			if i > 0 {
				row.Idle += max(0, from.Sub(end(runs[i-1])))
			}
			switch r.Reason {
			case bench.Retry:
				row.Retries++
			case bench.Escalation:
				row.Escalations++
			}
			if r.Outcome == bench.RunLost {
				row.Lost++
			}
			word := string(r.Outcome)
			if r.Outcome == bench.RunRunning {
				word = "running"
			}
			row.Runs = append(row.Runs, laneRun{Run: r, X: x(from), Width: max(2, x(to)-x(from)), Class: styles[word].class})
		}
		out.Rows = append(out.Rows, row)
	}
	slices.SortFunc(out.Rows, func(a, b lane) int { return strings.Compare(a.Collector, b.Collector) })
	return out
}
