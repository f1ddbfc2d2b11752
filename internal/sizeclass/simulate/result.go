package simulate

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/benchloom/benchloom/internal/bench"
)

// Result is the outcome of a simulation.
type Result struct {
	Runs    []Run   `json:"runs"`
	Summary []Phase `json:"summary"`

	attempts [][]Attempt
}

// Run is one run with all its attempts.
type Run struct {
	// Class and Outcome of the last attempt.
	Class   bench.SizeClass `json:"class"`
	Outcome string          `json:"outcome"`
	// LatencySeconds is the time from start to end; CoreSeconds the sum of time
	// × class over all attempts.
	LatencySeconds float64 `json:"latency_seconds"`
	CoreSeconds    float64 `json:"core_seconds"`
}

// Phase sums up consecutive runs.
type Phase struct {
	Runs  string `json:"runs"` // such as "1-10"
	First int    `json:"first"`
	Last  int    `json:"last"`
	// LatencySeconds and CoreSeconds are means.
	LatencySeconds float64 `json:"latency_seconds"`
	CoreSeconds    float64 `json:"core_seconds"`
	// Escalated counts the runs with more than one attempt, Probes those that
	// were probes, Failed those that did not succeed.
	Escalated int `json:"escalated"`
	Probes    int `json:"probes"`
	Failed    int `json:"failed"`
	// Ended counts the runs by the class on which they ended.
	Ended []Share `json:"ended"`
}

// Share counts the runs that ended on a class.
type Share struct {
	Class bench.SizeClass `json:"class"`
	Runs  int             `json:"runs"`
}

// Attempts returns the attempts of each run, in order.
func (r Result) Attempts() [][]Attempt { return r.attempts }

func newRun(attempts []Attempt) Run {
	var r Run
	for _, a := range attempts {
		r.CoreSeconds += a.Seconds * float64(a.Class)
		if !a.Background {
			r.LatencySeconds += a.Seconds
			r.Class, r.Outcome = a.Class, a.Outcome
		}
	}
	return r
}

// phaseEnds lists the last runs of all phases but the last.
var phaseEnds = []int{10, 50}

func summarise(runs []Run, attempts [][]Attempt) []Phase {
	var phases []Phase
	first := 0
	for _, end := range append(slices.Clone(phaseEnds), len(runs)) {
		end = min(end, len(runs))
		if first < end {
			phases = append(phases, newPhase(first, runs[first:end], attempts[first:end]))
		}
		first = end
	}
	return phases
}

func newPhase(before int, runs []Run, attempts [][]Attempt) Phase {
	p := Phase{First: before + 1, Last: before + len(runs)}
	p.Runs = strconv.Itoa(p.First) + "-" + strconv.Itoa(p.Last)
	ended := make(map[bench.SizeClass]int)
	for i, r := range runs {
		p.LatencySeconds += r.LatencySeconds / float64(len(runs))
		p.CoreSeconds += r.CoreSeconds / float64(len(runs))
		ended[r.Class]++
		if len(attempts[i]) > 1 {
			p.Escalated++
		}
		if attempts[i][0].Probe {
			p.Probes++
		}
		if r.Outcome != Success {
			p.Failed++
		}
	}
	for class, n := range ended {
		p.Ended = append(p.Ended, Share{class, n})
	}
	slices.SortFunc(p.Ended, func(a, b Share) int { return cmp.Compare(a.Class, b.Class) })
	return p
}
