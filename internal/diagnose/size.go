package diagnose

import (
	"fmt"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

// Size holds the facts about a job's size class.
type Size struct {
	Class bench.SizeClass
	// Shape that its history is kept under; empty: its class is not selected.
	Shape string
	// Pinned names the request or project that pins the class; empty: none does.
	Pinned string
	// Selected is the time of the selection; zero: none yet.
	Selected time.Time
	// Why is the reason recorded with the selection; may be empty.
	Why     string
	Probe   bool
	Timeout time.Duration // of the whole job on this class; 0: none
	// Now is the selection that would be made now; nil: none.
	Now *sizeclass.Selection
}

// SizeReasons explains a job's size class.
type SizeReasons struct {
	Class          bench.SizeClass `json:"class"`
	Why            string          `json:"why"`
	Shape          string          `json:"shape,omitempty" doc:"What its history is kept under: 'benchloom sizeclass show SHAPE'."`
	SelectedAt     *time.Time      `json:"selected_at,omitempty"`
	Probe          bool            `json:"probe,omitempty" doc:"It runs there to learn; its results are not compared."`
	TimeoutSeconds float64         `json:"timeout_seconds,omitempty" doc:"Bounds the whole job on this class; absent: nothing does."`
	Choices        []SizeChoice    `json:"choices" doc:"What is known of each class now, for a job whose class is selected."`
}

// SizeChoice weighs one class for jobs of a shape.
type SizeChoice struct {
	Class             bench.SizeClass `json:"class"`
	Probability       float64         `json:"probability" doc:"That the next run is sent there; 1 in all."`
	AcceptableSeconds float64         `json:"acceptable_seconds" doc:"A run that takes longer is too slow for the class."`
	TimeoutSeconds    float64         `json:"timeout_seconds"`
	MedianSeconds     float64         `json:"median_seconds,omitempty" doc:"Of the successes; absent without one."`
	Succeeded         int             `json:"succeeded" doc:"Samples that succeeded."`
	TooSmall          int             `json:"too_small" doc:"Samples for which the class was too small."`
	Objective         float64         `json:"objective,omitempty" doc:"Expected time by class to the policy's exponent; the least is best. Absent: not known."`
	Verdict           string          `json:"verdict"`
}

func choicesOf(s sizeclass.Selection) []SizeChoice {
	out := make([]SizeChoice, len(s.Choices))
	for i, c := range s.Choices {
		out[i] = SizeChoice{
			Class: c.Class, Probability: c.Probability, AcceptableSeconds: c.Acceptable.Seconds(), TimeoutSeconds: c.Timeout.Seconds(),
			MedianSeconds: c.Median.Seconds(), Succeeded: c.Succeeded, TooSmall: c.TooSmall, Objective: c.Objective, Verdict: c.Verdict,
		}
	}
	return out
}

// size explains a job's class by its selection and its runs since.
func (c JobCase) size() SizeReasons {
	s := c.Size
	r := SizeReasons{Class: s.Class, Shape: s.Shape, Probe: s.Probe, TimeoutSeconds: s.Timeout.Seconds(), Choices: []SizeChoice{}}
	if !s.Selected.IsZero() {
		r.SelectedAt = &s.Selected
	}
	if s.Now != nil {
		r.Choices = choicesOf(*s.Now)
	}
	smaller := c.smaller()
	switch {
	case s.Pinned != "":
		r.Why = "it was pinned by " + s.Pinned
	case smaller != nil:
		r.Why = fmt.Sprintf("class %d was too small: run %s ended as %s there", smaller.SizeClass, smaller.ID, strings.ReplaceAll(string(smaller.Outcome), "_", " "))
	case s.Shape == "":
		r.Why = "it is the class on which its results are compared, or the largest that can run it"
	case s.Selected.IsZero() && s.Now == nil:
		r.Why = "it is selected when the job is handed out"
	case s.Selected.IsZero():
		r.Why = fmt.Sprintf("it is selected when the job is handed out, by what is known now class %d: %s", s.Now.Class, s.Now.Why)
	case s.Why != "":
		r.Why = "it was selected when the job was handed out: " + s.Why
	case s.Probe:
		r.Why = "it was selected to learn whether this class is better than the best known"
	default:
		r.Why = "it was selected from the history of its shape, as it was then"
	}
	return r
}

// smaller returns the last run that failed on a class below the job's; nil: none did.
func (c JobCase) smaller() *Run {
	for i := len(c.Runs) - 1; i >= 0; i-- {
		switch r := c.Runs[i]; {
		case r.SizeClass >= c.Size.Class, r.Outcome == bench.RunRunning, r.Outcome == bench.RunSuccess, r.Outcome == bench.RunLost, r.Outcome == bench.RunCancelled:
		default:
			return &c.Runs[i]
		}
	}
	return nil
}
