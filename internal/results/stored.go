package results

import (
	"context"
	"errors"
	"math"

	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// storedComparison reads the comparison that is stored of two artifacts, whichever of them is its baseline; nil if there is
// none.
func storedComparison(ctx context.Context, record Record, pair Pair) (*store.Comparison, error) {
	c, err := record.Comparison(ctx, pair.Project, pair.A, pair.B)
	if errors.Is(err, store.ErrNotFound) {
		if c, err = record.Comparison(ctx, pair.Project, pair.B, pair.A); err == nil {
			c = mirrored(c)
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &c, nil
}

// mirrored returns a comparison as told from the other side.
func mirrored(c store.Comparison) store.Comparison {
	inverse := func(change float64) float64 { return math.Expm1(-math.Log1p(change)) }
	c.Baseline, c.Tag = c.Tag, c.Baseline
	rows := make([]store.ComparisonRow, len(c.Rows))
	for i, row := range c.Rows {
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
		rows[i] = row
	}
	c.Rows = rows
	return c
}

// decisions are the rows of a stored comparison. The zero value is that of artifacts without one.
type decisions struct {
	comparison int64
	rows       map[seriesKey]store.ComparisonRow
}

func decisionsOf(c *store.Comparison) decisions {
	if c == nil {
		return decisions{}
	}
	d := decisions{comparison: c.ID, rows: make(map[seriesKey]store.ComparisonRow, len(c.Rows))}
	for _, row := range c.Rows {
		d.rows[seriesKey{row.TestCase, row.Metric}] = row
	}
	return d
}

// decide gives a series the stored verdict and the sessions that it rests on. What was measured in turns besides decides
// what the stored comparison left open.
func (d decisions) decide(s *report.Series, k seriesKey, sessions []Session) {
	row, stored := d.rows[k]
	looks, others := d.split(sessions)
	if !stored || leftOpen(row) && len(others) > 0 {
		s.Evidence.Sessions = pairsOf(others)
		return
	}
	s.Evidence = verdict.Evidence{
		Exact: row.Exact, Delta: row.Delta, SigmaWithin: row.SigmaWithin, Tau: row.Tau, BimodalBySession: row.Bimodal, Sessions: pairsOf(looks),
	}
	s.Stored = &report.Stored{Suspicion: row.Suspicion, Provisional: row.Verdict == nil}
	if row.Verdict != nil {
		s.Stored.Verdict = *row.Verdict
	}
}

// leftOpen reports whether a row has its verdict, and that it is none.
func leftOpen(row store.ComparisonRow) bool {
	return row.Verdict != nil && (row.Verdict.Kind == verdict.Undecided || row.Verdict.Kind == verdict.NoSuspicion)
}

// split separates the sessions of the comparison's looks from those that belong to no valid comparison.
func (d decisions) split(sessions []Session) (looks, others []Session) {
	for _, s := range sessions {
		switch {
		case d.comparison == 0 || s.Comparison == 0:
			others = append(others, s)
		case s.Comparison == d.comparison:
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
			pairs = append(pairs, verdict.Pair{A: session.A[i], B: session.B[i], Disturbed: session.Disturbed[i]})
		}
		out = append(out, pairs)
	}
	return out
}

// standing describes a stored comparison as a whole.
func standing(c *store.Comparison) report.Standing {
	if c == nil {
		return report.Standing{}
	}
	return report.Standing{
		Rule: c.RuleVersion, Family: c.FamilySize, Provisional: !c.Decided, Looks: c.Look,
		OwnSeconds: c.OwnSeconds, SpentSeconds: c.SpentSeconds, BudgetSeconds: c.BudgetSeconds,
	}
}
