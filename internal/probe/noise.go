package probe

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Noise describes how noisy a machine is.
type Noise struct {
	Elapsed time.Duration `json:"elapsed_ns"`
	// Comparisons of the program with itself were made, with Pairs in all.
	Comparisons int      `json:"comparisons"`
	Pairs       int      `json:"pairs"`
	Metrics     []Metric `json:"metrics"`
	// Disturbed iterations of all Iterations; Causes counts them by cause, most frequent first. An iteration may have several.
	Iterations int     `json:"iterations"`
	Disturbed  int     `json:"disturbed"`
	Causes     []Cause `json:"causes,omitempty"`
	// NotRead says which readings the machine lacks, and why.
	NotRead map[machine.Quantity]string `json:"not_read,omitempty"`
}

// Metric describes the noise of one metric. Shares are of 1.
type Metric struct {
	Name bench.Metric `json:"name"`
	// Spread is the coefficient of variation within a session.
	Spread float64 `json:"spread"`
	// SessionOffset is the distance between sessions, SideOffset that between the two sides of a session, as standard
	// deviations in units of that within a session. Nil: there were too few sessions to tell.
	SessionOffset *float64 `json:"session_offset,omitempty"`
	SideOffset    *float64 `json:"side_offset,omitempty"`
	// Labels name noise that is not normal.
	Labels []noise.Label `json:"labels,omitempty"`
	// Sees is the smallest relative change that would have been seen, median of the comparisons; 0 if none would have been.
	Sees float64 `json:"sees"`
	// Changed comparisons are wrong: the program was the same.
	Changed      int `json:"changed"`
	NoDifference int `json:"no_difference"`
	Undecided    int `json:"undecided"`
}

// Cause counts iterations that were disturbed in one way.
type Cause struct {
	Cause      machine.Cause `json:"cause"`
	Iterations int           `json:"iterations"`
}

// assess describes the noise in comparisons of a program with itself.
func assess(family verdict.Family, all []comparison, elapsed time.Duration) Noise {
	n := Noise{Elapsed: elapsed, Comparisons: len(all)}
	var deltas []machine.Delta
	for _, c := range all {
		for _, s := range c {
			for _, p := range s {
				deltas = append(deltas, p[0].delta, p[1].delta)
			}
		}
	}
	n.Pairs = len(deltas) / 2
	norms := machine.NormsOf(deltas)
	n.count(deltas, norms)
	for _, m := range deciding() {
		if measured(all, m) {
			n.Metrics = append(n.Metrics, metricOf(family, all, m, norms))
		}
	}
	return n
}

// measured reports whether the machine has the metric.
func measured(all []comparison, m bench.Metric) bool {
	for _, c := range all {
		for _, s := range c {
			if slices.ContainsFunc(s, func(p pair) bool { return p[0].values[m] > 0 && p[1].values[m] > 0 }) {
				return true
			}
		}
	}
	return false
}

func (n *Noise) count(deltas []machine.Delta, norms machine.Norms) {
	n.Iterations = len(deltas)
	causes := map[machine.Cause]int{}
	for _, d := range deltas {
		reasons := machine.Judge(d, norms)
		n.Disturbed += min(1, len(reasons))
		for _, r := range reasons {
			causes[r.Cause]++
		}
		for q, why := range d.Absent {
			if n.NotRead == nil {
				n.NotRead = map[machine.Quantity]string{}
			}
			n.NotRead[q] = why
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		n.Causes = append(n.Causes, Cause{cause, causes[cause]})
	}
	slices.SortStableFunc(n.Causes, func(a, b Cause) int { return cmp.Compare(b.Iterations, a.Iterations) })
}

func metricOf(family verdict.Family, all []comparison, m bench.Metric, norms machine.Norms) Metric {
	out := Metric{Name: m}
	var sessions []noise.Session
	var canaries []noise.Canary
	var sees []float64
	for _, c := range all {
		e := verdict.Evidence{Delta: verdict.Delta(string(m), false)}
		for _, s := range c {
			pairs := make([]verdict.Pair, len(s))
			// Time only orders the sessions.
			session, canary := noise.Session{At: time.Unix(int64(len(sessions)), 0)}, noise.Canary{}
			for i, p := range s {
				a, b := p[0].values[m], p[1].values[m]
				pairs[i] = verdict.Pair{A: a, B: b, Disturbed: disturbed(p, norms)}
				if a > 0 && b > 0 {
					session.Values = append(session.Values, a, b)
					canary.A, canary.B = append(canary.A, a), append(canary.B, b)
				}
			}
			e.Sessions, sessions, canaries = append(e.Sessions, pairs), append(sessions, session), append(canaries, canary)
		}
		sees = append(sees, family.Judge(e).Sees)
		switch outcome(family, e) {
		case verdict.Changed:
			out.Changed++
		case verdict.NoDifference:
			out.NoDifference++
		default:
			out.Undecided++
		}
	}
	slices.Sort(sees)
	model := noise.Fit(sessions)
	out.Sees, out.Spread, out.Labels = sees[len(sees)/2], math.Expm1(model.SigmaWithin), model.Labels
	if !model.Assumed {
		out.SessionOffset = &model.Kappa
	}
	if tau, ok := noise.Tau(canaries); ok {
		out.SideOffset = &tau
	}
	return out
}

func disturbed(p pair, norms machine.Norms) bool {
	return len(machine.Judge(p[0].delta, norms)) > 0 || len(machine.Judge(p[1].delta, norms)) > 0
}

// outcome returns the verdict as it would have been given: after the first look
// that decides.
func outcome(family verdict.Family, e verdict.Evidence) verdict.Kind {
	whole := e.Sessions
	for n := range whole {
		e.Sessions = whole[:n+1]
		if family.Settled(e) {
			break
		}
	}
	return family.Judge(e).Kind
}
