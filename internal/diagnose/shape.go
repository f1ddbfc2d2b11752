package diagnose

import (
	"math"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

// ShapeExplanation says which size class the jobs of a shape need, judged by their runs.
type ShapeExplanation struct {
	Project          string             `json:"project"`
	Shape            string             `json:"shape"`
	About            string             `json:"about" doc:"What the jobs are, in words."`
	UpdatedAt        time.Time          `json:"updated_at"`
	Unread           string             `json:"unread,omitempty" doc:"Why the statistics cannot be read: then nothing is known, and sizes are learned anew."`
	Next             NextSize           `json:"next"`
	Classes          []ClassHistory     `json:"classes" doc:"Ascending: those that jobs may run on now, and those with samples."`
	Runs             int                `json:"runs" doc:"That have ended: with a success, or on the largest class."`
	FailedOnLargest  *time.Time         `json:"failed_on_largest,omitempty" doc:"When a run failed on the largest class; absent when none has since the last success there."`
	Outstanding      []OutstandingProbe `json:"outstanding" doc:"Probes that have not ended."`
	Counts           sizeclass.Counts   `json:"counts" doc:"What became of probes since the statistics began."`
	CoreSeconds      float64            `json:"core_seconds" doc:"Of the latest runs; older ones fade."`
	ProbeCoreSeconds float64            `json:"probe_core_seconds" doc:"What of them probes cost more than the best class known would have."`
}

// NextSize is the size class that would be selected now.
type NextSize struct {
	Class           bench.SizeClass `json:"class,omitempty" doc:"Absent: no collector is registered that could run them."`
	Probe           bool            `json:"probe,omitempty"`
	ExpectedSeconds float64         `json:"expected_seconds,omitempty"`
	TimeoutSeconds  float64         `json:"timeout_seconds,omitempty"`
	Why             string          `json:"why"`
}

// ClassHistory holds the samples of one size class and the conclusions from them.
type ClassHistory struct {
	SizeChoice
	Available bool         `json:"available" doc:"A collector of it is registered that may run such jobs."`
	Samples   []SizeSample `json:"samples" doc:"The oldest first."`
}

// SizeSample is a recorded attempt.
type SizeSample struct {
	At         time.Time         `json:"at" doc:"When it ended."`
	Outcome    sizeclass.Outcome `json:"outcome"`
	Seconds    float64           `json:"seconds" doc:"How long it took; the timeout that applied, where it timed out."`
	Meaning    string            `json:"meaning" doc:"What it says about the class today."`
	Job        bench.JobKey      `json:"job,omitempty"`
	PeakMemory int64             `json:"peak_memory,omitempty" doc:"In bytes; absent: not known."`
	CPUSeconds float64           `json:"cpu_seconds,omitempty" doc:"Absent: not known."`
}

// Succeeded reports whether the attempt succeeded.
func (s SizeSample) Succeeded() bool { return s.Outcome == sizeclass.Succeeded }

// OutstandingProbe is a probe that has not ended.
type OutstandingProbe struct {
	Attempt   string          `json:"attempt" doc:"The job, or the run, that it is made for."`
	Class     bench.SizeClass `json:"class"`
	ExpiresAt time.Time       `json:"expires_at" doc:"From then on it blocks no other."`
}

// Shape explains statistics. now is the resulting selection; nil when no collector could
// run such jobs, which leaves only the samples.
func Shape(s sizeclass.Statistics, now *sizeclass.Selection) ShapeExplanation {
	e := ShapeExplanation{
		Classes: []ClassHistory{}, Runs: s.Runs, Outstanding: []OutstandingProbe{}, Counts: s.Counts, CoreSeconds: s.Spent.Total,
		ProbeCoreSeconds: s.Spent.Probes, Next: NextSize{Why: "no collector is registered that could run such jobs"},
	}
	if !s.FailedOnLargest.IsZero() {
		e.FailedOnLargest = &s.FailedOnLargest
	}
	for _, m := range s.Marks {
		e.Outstanding = append(e.Outstanding, OutstandingProbe{Attempt: m.ID, Class: m.Class, ExpiresAt: m.Expires})
	}
	var choices []SizeChoice
	if now != nil {
		e.Next = NextSize{Class: now.Class, Probe: now.Probe, ExpectedSeconds: now.Expected.Seconds(), TimeoutSeconds: now.Timeout.Seconds(), Why: now.Why}
		choices = choicesOf(*now)
	}
	// Both are in ascending order.
	for i, j := 0, 0; i < len(choices) || j < len(s.Classes); {
		var c ClassHistory
		switch {
		case j == len(s.Classes) || i < len(choices) && choices[i].Class < s.Classes[j].Class:
			c = ClassHistory{SizeChoice: choices[i], Available: true}
			i++
		case i == len(choices) || choices[i].Class > s.Classes[j].Class:
			c = ClassHistory{SizeChoice: SizeChoice{Class: s.Classes[j].Class, Verdict: "no collector of this class is registered"}}
			c.Samples = samplesOf(s.Classes[j], 0)
			j++
		default:
			c = ClassHistory{SizeChoice: choices[i], Available: true}
			acceptable := time.Duration(choices[i].AcceptableSeconds * float64(time.Second))
			if i == len(choices)-1 {
				acceptable = time.Duration(math.MaxInt64) // there is no faster one
			}
			c.Samples = samplesOf(s.Classes[j], acceptable)
			i, j = i+1, j+1
		}
		if c.Samples == nil {
			c.Samples = []SizeSample{}
		}
		e.Classes = append(e.Classes, c)
	}
	return e
}

// samplesOf interprets the samples of a class by its acceptable time; 0: not known.
func samplesOf(h sizeclass.History, acceptable time.Duration) []SizeSample {
	out := make([]SizeSample, len(h.Samples))
	for i, s := range h.Samples {
		out[i] = SizeSample{
			At: s.At, Outcome: s.Outcome, Seconds: s.Duration.Seconds(), Meaning: meaning(s, acceptable), Job: bench.JobKey(s.Job),
			PeakMemory: s.PeakMemory, CPUSeconds: s.CPUTime.Seconds(),
		}
	}
	return out
}

func meaning(s sizeclass.Sample, acceptable time.Duration) string {
	switch {
	case s.Pending:
		return "nothing yet: a larger class has to show whether the job fails by itself"
	case s.Outcome == sizeclass.Succeeded && acceptable == 0:
		return "large enough"
	case s.Outcome == sizeclass.Succeeded && s.Duration <= acceptable:
		return "good enough"
	case s.Outcome == sizeclass.Succeeded:
		return "large enough, but slower than acceptable"
	case s.OwnLimit:
		return "too small: it reached the job's own limit, and did not on a larger class"
	case s.Outcome == sizeclass.TimedOut && s.Duration < acceptable:
		return "nothing: it was stopped within the time that is acceptable today"
	}
	return "too small"
}
