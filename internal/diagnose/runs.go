package diagnose

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Run is one attempt at a job.
type Run struct {
	ID        bench.RunID
	Number    int
	Reason    bench.RunReason
	Collector string
	SizeClass bench.SizeClass
	Outcome   bench.RunOutcome
	Message   string
	Started   time.Time
	Finished  time.Time // zero: it still runs
	// Timeout of the whole run, by its size class; 0: none.
	Timeout time.Duration
	Probe   bool
	// PeakMemory in bytes; 0: not known.
	PeakMemory int64
}

// RunCost is one attempt at a job with its cost.
type RunCost struct {
	ID             bench.RunID      `json:"id"`
	Number         int              `json:"number"`
	Reason         bench.RunReason  `json:"reason" doc:"Why it was made."`
	Collector      string           `json:"collector"`
	SizeClass      bench.SizeClass  `json:"size_class"`
	Outcome        bench.RunOutcome `json:"outcome" doc:"Empty while it runs."`
	Message        string           `json:"message,omitempty"`
	StartedAt      time.Time        `json:"started_at"`
	Seconds        float64          `json:"seconds" doc:"How long it took, or has taken so far."`
	CoreSeconds    float64          `json:"core_seconds" doc:"Time by size class."`
	TimeoutSeconds float64          `json:"timeout_seconds,omitempty" doc:"Of the whole run, by its size class; absent: none."`
	Probe          bool             `json:"probe,omitempty" doc:"It ran where it ran to learn from it."`
	PeakMemory     int64            `json:"peak_memory,omitempty" doc:"In bytes; absent: not known."`
}

// Cost of all attempts at a job.
type Cost struct {
	CoreSeconds float64 `json:"core_seconds" doc:"Time by size class, of all runs."`
	Wasted      float64 `json:"wasted_core_seconds" doc:"Of attempts that have ended without success."`
}

// costs returns the cost of each run until now.
func costs(runs []Run, now time.Time) []RunCost {
	out := make([]RunCost, len(runs))
	for i, r := range runs {
		end := r.Finished
		if end.IsZero() {
			end = now
		}
		took := max(0, end.Sub(r.Started).Seconds())
		out[i] = RunCost{
			ID: r.ID, Number: r.Number, Reason: r.Reason, Collector: r.Collector, SizeClass: r.SizeClass, Outcome: r.Outcome, Message: r.Message,
			StartedAt: r.Started, Seconds: took, CoreSeconds: took * float64(r.SizeClass), TimeoutSeconds: r.Timeout.Seconds(), Probe: r.Probe,
			PeakMemory: r.PeakMemory,
		}
	}
	return out
}

func total(runs []RunCost) Cost {
	var c Cost
	for _, r := range runs {
		c.CoreSeconds += r.CoreSeconds
		if r.Outcome != bench.RunRunning && r.Outcome != bench.RunSuccess {
			c.Wasted += r.CoreSeconds
		}
	}
	return c
}
