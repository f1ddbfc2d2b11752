package report

import (
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Series is one series of a comparison: one metric of one test case.
type Series struct {
	// Series holds the stored values of both sides. Sides that were only measured in turns have none.
	stats.Series
	// Deciding is set for a metric that verdicts are given on.
	Deciding bool
	// Evidence holds what was measured in turns, and what is known of the noise. Delta is always set. Exact may also be set for
	// a series of another metric that has shown no noise.
	Evidence verdict.Evidence
	// Noise names what is remarkable about the noise, such as "skewed"; empty if nothing is.
	Noise string
	// Stored is the stored verdict; nil if there is none.
	Stored *Stored
}

// Stored is a verdict that was given before, or is yet to be given.
type Stored struct {
	verdict.Verdict
	// Suspicion is the reason why the series was suspected; empty if it was not.
	Suspicion string
	// Provisional is set while the series is being decided.
	Provisional bool
	// Against is the artifact that the verdict is about if that is not the baseline: several artifacts in a row may differ
	// from those before.
	Against string
}

// Turns describes what was measured in turns.
type Turns struct {
	A stats.Side `json:"a"`
	B stats.Side `json:"b"`
	// Change is the estimate of the relative change from the pairs, Interval its interval; nil if there is none.
	Change   float64         `json:"change"`
	Interval *stats.Interval `json:"interval,omitempty"`
	// Pairs counts the pairs of iterations, Disturbed those among them during which something else used the machine;
	// Sessions counts the runs that measured them.
	Pairs     int `json:"pairs"`
	Sessions  int `json:"sessions"`
	Disturbed int `json:"disturbed"`
	// P is the p value of the paired test and Level the level that it must be below.
	P     float64 `json:"p"`
	Level float64 `json:"level"`
}

// Row is the comparison of one series.
type Row struct {
	stats.Key
	Unit     string         `json:"unit"`
	Better   stats.Better   `json:"better"`
	Exact    bool           `json:"exact"`
	Precise  bool           `json:"precise"`
	Category stats.Category `json:"category"`
	// Deciding is set for a metric that verdicts are given on. Others explain and have no verdict.
	Deciding bool `json:"deciding"`

	// Verdict is the conclusion; nil for an explaining metric.
	Verdict *verdict.Kind `json:"verdict,omitempty"`
	// Significant is set if the verdict is "changed"; Direction then says in which direction.
	Significant bool      `json:"significant"`
	Direction   Direction `json:"direction,omitempty"`
	// Provisional is set while pairs are being measured: the verdict may change once more.
	Provisional bool `json:"provisional,omitempty"`
	// Reason says how the verdict came about, or why there is none yet; Needs what would decide it.
	Reason string `json:"reason,omitempty"`
	Needs  string `json:"needs,omitempty"`
	// Suspicion is the reason why a difference was suspected; empty if none was.
	Suspicion string `json:"suspicion,omitempty"`
	// Against is the artifact that the verdict is about if that is not the baseline.
	Against string `json:"against,omitempty"`
	// Delta is the least relevant relative change, Sees the least that would have been seen; 0 if that is not known.
	Delta float64 `json:"delta"`
	Sees  float64 `json:"sees,omitempty"`
	// Noise names the series' noise, such as "skewed".
	Noise string `json:"noise,omitempty"`

	// A and B describe the stored values of both sides, Change compares their aggregates, MedianChange their medians, and
	// Interval belongs to the values as a whole; it is nil for the reason in NoInterval. They describe and decide nothing. If not
	// both sides have stored values, A and B describe the values measured in turns.
	A            stats.Side      `json:"a"`
	B            stats.Side      `json:"b"`
	Change       stats.Change    `json:"change"`
	MedianChange stats.Change    `json:"median_change"`
	Interval     *stats.Interval `json:"interval,omitempty"`
	NoInterval   string          `json:"no_interval,omitempty"`
	// OnlyInTurns is set if not both sides have stored values.
	OnlyInTurns bool `json:"only_in_turns,omitempty"`
	// InTurns is set if there are pairs, which Turns describes.
	InTurns  bool     `json:"in_turns,omitempty"`
	Turns    *Turns   `json:"turns,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Direction is the direction of a change in the eyes of its metric.
type Direction string

// The directions of a change.
const (
	Regression  Direction = "regression"
	Improvement Direction = "improvement"
)

// Is reports whether the row has the given verdict.
func (r Row) Is(k verdict.Kind) bool { return r.Verdict != nil && *r.Verdict == k }

// Estimate returns the best estimate of the relative change: from pairs if there are any, else from stored values.
func (r Row) Estimate() stats.Change {
	if r.Turns != nil {
		return stats.Change{Value: r.Turns.Change}
	}
	return r.Change
}

// Remarkable reports whether the row is shown even where only what matters is shown: something was suspected or measured
// in turns, or changed.
func (r Row) Remarkable() bool {
	return r.Verdict != nil && !r.Is(verdict.NoSuspicion) && !(r.Exact && r.Is(verdict.NoDifference))
}

// Report is a comparison of two artifacts with its verdicts.
type Report struct {
	// Rows are sorted by metric, then test case.
	Rows []Row `json:"results"`
	// Rule is the version of the rule by which the verdicts were given, Family the number of series that were judged together.
	Rule   int `json:"rule"`
	Family int `json:"family"`
	// Provisional is set while suspects are being measured in turns.
	Provisional bool `json:"provisional"`
	// Looks is the number of looks of a stored comparison so far. They took SpentSeconds of machine time, of at most
	// BudgetSeconds; the request's own jobs took OwnSeconds.
	Looks         int     `json:"looks,omitempty"`
	OwnSeconds    float64 `json:"own_seconds,omitempty"`
	SpentSeconds  float64 `json:"spent_seconds,omitempty"`
	BudgetSeconds float64 `json:"budget_seconds,omitempty"`
	// Hint says how a person gets verdicts on what is only suspected; empty if there is nothing to decide.
	Hint string `json:"hint,omitempty"`

	hidden []Row
}

// Select returns the report without the rows for which keep is false. Their verdicts still stand: none changes.
func (r Report) Select(keep func(Row) bool) Report {
	out := r
	out.Rows, out.hidden = nil, slices.Clone(r.hidden)
	for _, row := range r.Rows {
		if keep(row) {
			out.Rows = append(out.Rows, row)
		} else {
			out.hidden = append(out.hidden, row)
		}
	}
	return out
}

// Regressions returns the number of rows that changed for the worse.
func (r Report) Regressions() int {
	n := 0
	for _, row := range r.Rows {
		if row.Direction == Regression {
			n++
		}
	}
	return n
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
