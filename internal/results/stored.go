package results

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// storedComparisons reads the stored comparisons of two artifacts, as seen from the pair's baseline, the newest first.
func storedComparisons(ctx context.Context, record Record, pair Pair) ([]store.Comparison, error) {
	comparisons, err := record.Comparisons(ctx, pair.Project, pair.A, pair.B)
	for i, c := range comparisons {
		if c.Baseline != pair.A {
			comparisons[i] = mirrored(c)
		}
	}
	return comparisons, err
}

// mirrored returns a comparison as seen from the other side.
func mirrored(c store.Comparison) store.Comparison {
	inverse := func(change float64) float64 { return math.Expm1(-math.Log1p(change)) }
	c.Baseline, c.Tag = c.Tag, c.Baseline
	var rows []store.ComparisonRow
	for _, row := range c.Rows {
		if row.Against != "" && row.Against != c.Tag {
			continue // about a third artifact
		}
		if row.Verdict != nil {
			v := *row.Verdict
			v.Change = inverse(v.Change)
			if v.Interval != nil {
				v.Interval = &stats.Interval{Low: inverse(v.Interval.High), High: inverse(v.Interval.Low), Confidence: v.Interval.Confidence}
			}
			if v.Kind == verdict.Undecided && v.Interval != nil {
				v.Reason += " (the other way round)"
			}
			row.Verdict = &v
		}
		row.Against = c.Baseline
		rows = append(rows, row)
	}
	c.Rows = rows
	return c
}

// decisions holds the stored verdicts on two artifacts. The zero value stands for artifacts without any.
type decisions struct {
	// rows holds the decisions on each test case, count in all.
	rows  map[bench.TestCase][]decision
	count int
	// comparisons holds the IDs of all valid comparisons.
	comparisons map[int64]bool
	// noise holds the noise of each series in the surroundings in which it was measured.
	noise map[seriesKey][]store.SeriesNoise
}

// decision is a row of a stored comparison.
type decision struct {
	*store.ComparisonRow
	comparison int64
	baseline   string
}

// decisionsOf takes each row from the newest comparison that is deciding it or has decided it, else from the newest that
// tried, else from the newest.
func decisionsOf(newestFirst []store.Comparison) decisions {
	most := 0
	for _, c := range newestFirst {
		most += len(c.Rows)
	}
	d := decisions{rows: make(map[bench.TestCase][]decision), comparisons: make(map[int64]bool)}
	all := make([]decision, 0, most) // those of a test case follow one another
	for _, c := range newestFirst {
		d.comparisons[c.ID] = true
		for from := 0; from < len(c.Rows); {
			to := from + 1
			for to < len(c.Rows) && c.Rows[to].TestCase == c.Rows[from].TestCase {
				to++
			}
			testCase := c.Rows[from].TestCase
			known := d.rows[testCase]
			at := len(all)
			all = append(all, known...)
			for ; from < to; from++ {
				row := &c.Rows[from]
				switch i := slices.IndexFunc(all[at:], func(k decision) bool { return k.Metric == row.Metric }); {
				case i < 0:
					all = append(all, decision{row, c.ID, c.Baseline})
				case rank(row) < rank(all[at+i].ComparisonRow):
					all[at+i] = decision{row, c.ID, c.Baseline}
				}
			}
			d.rows[testCase], d.count = all[at:len(all):len(all)], d.count+len(all)-at-len(known)
		}
	}
	return d
}

// row returns the stored verdict on a series.
func (d decisions) row(k seriesKey) (row decision, stored bool) {
	for _, row := range d.rows[k.testCase] {
		if row.Metric == k.metric {
			return row, true
		}
	}
	return decision{}, false
}

// rank orders rows by how much they tell: decided or being decided, tried, not suspected.
func rank(row *store.ComparisonRow) int {
	switch {
	case !leftOpen(row):
		return 0
	case row.Verdict.Kind == verdict.Undecided:
		return 1
	default:
		return 2
	}
}

// leftOpen reports whether a row was given a verdict that decides nothing.
func leftOpen(row *store.ComparisonRow) bool {
	return row.Verdict != nil && (row.Verdict.Kind == verdict.Undecided || row.Verdict.Kind == verdict.NoSuspicion)
}

// decide gives a series the stored verdict, kept in told, and the sessions that it rests on. What else was measured in
// turns decides what the stored comparison left open.
func (d decisions) decide(s *report.Series, k seriesKey, sessions []Session, told *report.Stored) {
	row, stored := d.row(k)
	model := d.model(k, row.ComparisonRow, sessions)
	s.Noise = noiseOf(model)
	looks, others := d.split(sessions, row.comparison)
	if !stored || leftOpen(row.ComparisonRow) && len(others) > 0 {
		s.Evidence.Sessions = pairsOf(others)
		if s.Evidence.BimodalBySession = model.Has(noise.BimodalBySession); model.Logarithms {
			s.Evidence.SigmaWithin, s.Evidence.Tau = model.SigmaWithin, model.Tau
		}
		if model.Has(noise.Exact) {
			s.Evidence.Exact, s.Evidence.Delta = true, verdict.Delta(s.Metric, true)
		}
		return
	}
	s.Evidence = verdict.Evidence{
		Exact: row.Exact, Delta: row.Delta, SigmaWithin: row.SigmaWithin, Tau: row.Tau, BimodalBySession: row.Bimodal, Sessions: pairsOf(looks),
	}
	s.Stored = told
	*told = report.Stored{Suspicion: row.Suspicion, Provisional: row.Verdict == nil}
	if row.Against != "" && row.Against != row.baseline {
		s.Stored.Against = row.Against
	}
	if row.Verdict != nil {
		s.Stored.Verdict = *row.Verdict
	}
}

// model returns the noise of a series where it was measured for a stored comparison or in turns, else where a comparison
// would take its results from.
func (d decisions) model(k seriesKey, row *store.ComparisonRow, sessions []Session) noise.Model {
	var best store.SeriesNoise
	for i, n := range d.noise[k] {
		switch {
		case row != nil && n.Surrounding == row.Surrounding, row == nil && len(sessions) > 0 && n.Surrounding == sessions[0].Surrounding:
			return n.Model
		case i == 0, n.Before(best.Surrounding):
			best = n
		}
	}
	return best.Model
}

// noiseOf says what is remarkable about the noise of a series.
func noiseOf(m noise.Model) string {
	var words []string
	for _, label := range m.Labels {
		words = append(words, string(label))
	}
	if m.Lenders > 0 {
		words = append(words, "as in other series")
	}
	return strings.Join(words, ", ")
}

// noisePerSeries reads the noise of series on the targets of some, where a verdict depends on it or it is notable.
func noisePerSeries(ctx context.Context, record Record, project string, stored []stats.Series, sessions []Session) (map[seriesKey][]store.SeriesNoise, error) {
	targets := make(map[bench.Target]bool)
	for i := range stored {
		if i == 0 || stored[i].Target != stored[i-1].Target {
			targets[bench.Target(stored[i].Target)] = true
		}
	}
	inTurns := make(map[bench.TestCase]bool)
	for _, s := range sessions {
		targets[s.TestCase.Target], inTurns[s.TestCase] = true, true
	}
	if len(targets) == 0 {
		return nil, nil
	}
	models, err := record.NotableNoise(ctx, project, slices.Sorted(maps.Keys(targets)), slices.SortedFunc(maps.Keys(inTurns), bench.CompareTestCases))
	if err != nil || len(models) == 0 {
		return nil, err
	}
	out := make(map[seriesKey][]store.SeriesNoise, len(models))
	for _, m := range models {
		k := seriesKey{m.TestCase, m.Metric}
		out[k] = append(out[k], m)
	}
	return out, nil
}

// split separates the sessions of a comparison's looks from those that belong to no comparison. Those of other comparisons
// were judged there, and those of superseded ones are not to count.
func (d decisions) split(sessions []Session, comparison int64) (looks, others []Session) {
	for _, s := range sessions {
		switch {
		case s.Comparison == 0 || len(d.comparisons) == 0:
			others = append(others, s)
		case s.Comparison == comparison:
			looks = append(looks, s)
		}
	}
	return looks, others
}

func pairsOf(sessions []Session) [][]verdict.Pair {
	var out [][]verdict.Pair
	for _, session := range sessions {
		var pairs []verdict.Pair
		for i := range session.A {
			pairs = append(pairs, verdict.Pair{A: session.A[i], B: session.B[i], Disturbed: session.Disturbed[i] && session.Metric.Disturbable()})
		}
		out = append(out, pairs)
	}
	return out
}

// Tally counts the verdicts of a stored comparison. Rows that are being measured count as undecided.
func Tally(c store.Comparison) report.Tally {
	rows := make([]report.Row, len(c.Rows))
	for i, row := range c.Rows {
		told := report.Stored{Provisional: row.Verdict == nil}
		if row.Verdict != nil {
			told.Verdict = *row.Verdict
		}
		better := stats.LowerIsBetter
		if row.Metric.Direction() == bench.HigherIsBetter {
			better = stats.HigherIsBetter
		}
		rows[i] = report.Told(better, told)
	}
	return report.Count(rows)
}

// standing describes stored comparisons as a whole: the newest, unless another one is being decided.
func standing(newestFirst []store.Comparison) report.Standing {
	if len(newestFirst) == 0 {
		return report.Standing{}
	}
	c := newestFirst[0]
	if i := slices.IndexFunc(newestFirst, func(c store.Comparison) bool { return !c.Decided }); i >= 0 {
		c = newestFirst[i]
	}
	return report.Standing{
		Rule: c.RuleVersion, Family: c.FamilySize, Provisional: !c.Decided, Looks: c.Look,
		OwnSeconds: c.OwnSeconds, SpentSeconds: c.SpentSeconds, BudgetSeconds: c.BudgetSeconds,
	}
}
