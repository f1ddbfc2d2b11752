package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Standing sums up a comparison as a whole. The zero value stands for one that is not stored.
type Standing struct {
	// Rule is the version of the rule of stored verdicts; 0: that of package verdict.
	Rule int
	// Family is the size of the family of stored verdicts.
	Family int
	// Provisional is set while suspects are being measured in turns.
	Provisional bool
	// Looks is the number of looks so far. They took SpentSeconds of machine time, of at most BudgetSeconds; the request's own
	// jobs took OwnSeconds.
	Looks                                   int
	OwnSeconds, SpentSeconds, BudgetSeconds float64
	// Hint says how a person gets verdicts on what is left open.
	Hint string
}

// Reasons of rows without pairs.
const (
	notInTurns    = "not measured in turns: stored results raise a suspicion"
	needsTurns    = "measuring both in turns"
	needsValues   = "more values of both sides, or measuring both in turns"
	beingMeasured = "being measured in turns"
	withoutSign   = "stored results show no sign of a difference"
	explains      = "explains other metrics"
)

// New compares both sides of every series and gives the verdicts. Verdicts that are stored stay as they are; pairs without
// one are judged together, as one family; what has no pairs can only be suspected. The input is not changed.
//
// The error is for series that contradict each other ([stats.ErrInconsistent]).
func New(series []Series, standing Standing) (Report, error) {
	options := stats.DefaultOptions()
	ordered := inOrder(series)
	plain := make([]*stats.Series, len(ordered))
	for i, s := range ordered {
		plain[i] = &s.Series
	}
	described, err := stats.Differences(plain, options)
	if err != nil {
		return Report{}, err
	}
	j, err := newJudge(series, options)
	if err != nil {
		return Report{}, err
	}
	out := Report{
		Rule: cmp.Or(standing.Rule, verdict.RuleVersion), Family: cmp.Or(standing.Family, j.size), Provisional: standing.Provisional,
		Looks: standing.Looks, OwnSeconds: standing.OwnSeconds, SpentSeconds: standing.SpentSeconds, BudgetSeconds: standing.BudgetSeconds,
	}
	if len(ordered) > 0 {
		out.Rows = make([]Row, len(ordered))
	}
	for i, d := range described {
		out.Rows[i] = j.row(ordered[i], d)
	}
	if standing.Hint != "" && slices.ContainsFunc(out.Rows, func(r Row) bool { return r.Is(verdict.Undecided) && r.Turns == nil && !r.Provisional }) {
		out.Hint = standing.Hint
	}
	return out, nil
}

// inOrder returns series in the order of their keys, in which most are given.
func inOrder(series []Series) []*Series {
	out := make([]*Series, len(series))
	for i := range series {
		out[i] = &series[i]
	}
	slices.SortFunc(out, func(x, y *Series) int { return x.Key.Compare(y.Key) })
	return out
}

// judge gives the verdicts of one comparison.
type judge struct {
	options stats.Options
	// family sets the level for the series judged here, of which there are size; one judges a series alone, as far as that
	// does not depend on others.
	family, one verdict.Family
	size        int
	// refused is the reason why the family cannot be judged; empty if it can.
	refused string
}

func newJudge(series []Series, options stats.Options) (*judge, error) {
	j := &judge{options: options}
	for i := range series {
		if s := &series[i]; s.Deciding && s.Stored == nil && len(s.Evidence.Sessions) > 0 && !s.exact() {
			j.size++
		}
	}
	var err error
	if j.one, err = verdict.NewFamily(1); err != nil {
		return j, err
	}
	if j.family, err = verdict.NewFamily(max(1, j.size)); err != nil {
		j.refused = err.Error()
	}
	return j, nil
}

// exact reports whether any change of the series counts: its metric has no noise, and none was seen.
func (s *Series) exact() bool {
	steady := func(values []float64) bool { return len(values) == 0 || slices.Min(values) == slices.Max(values) }
	if !s.Exact && !s.Evidence.Exact || !steady(s.A) || !steady(s.B) {
		return false
	}
	a, b := s.inTurns()
	return steady(a) && steady(b)
}

// inTurns returns the values measured in turns.
func (s *Series) inTurns() (a, b []float64) {
	for _, session := range s.Evidence.Sessions {
		for _, p := range session {
			a, b = append(a, p.A), append(b, p.B)
		}
	}
	return a, b
}

func (j *judge) row(s *Series, described *stats.Difference) Row {
	r := Row{
		Key: s.Key, Unit: s.Unit, Better: s.Better, Exact: s.Exact || s.Evidence.Exact, Precise: s.Precise, Category: s.Category, Deciding: s.Deciding,
		Delta: s.Evidence.Delta, A: described.A, B: described.B, Change: described.Change, MedianChange: described.MedianChange,
		Interval: described.Interval, NoInterval: described.NoInterval, Warnings: described.Warnings, Noise: s.Noise,
	}
	if len(s.Evidence.Sessions) > 0 {
		j.describeTurns(&r, s)
	}
	if !s.Deciding {
		r.Reason = explains
		return r
	}
	switch {
	case s.Stored != nil:
		r.adopt(*s.Stored)
		if r.Sees == 0 && r.Is(verdict.NoSuspicion) {
			r.Sees = stats.SignOf(described.A, described.B, j.options, r.Delta).Sees
		}
	case s.exact():
		j.judgeExact(&r, s)
	case r.Turns != nil:
		if j.refused != "" {
			r.conclude(verdict.Undecided, 0)
			r.Reason, r.Needs = "too many series", j.refused
			break
		}
		r.adopt(Stored{Verdict: j.family.Judge(s.Evidence)})
	default:
		j.suspect(&r, described)
	}
	return r
}

// describeTurns fills in what the pairs say. Change and interval do not depend on the family.
func (j *judge) describeTurns(r *Row, s *Series) {
	a, b := s.inTurns()
	estimate := j.one.Judge(s.Evidence)
	r.InTurns = true
	r.Turns = &Turns{
		A: stats.Describe(a, s.Aggregation), B: stats.Describe(b, s.Aggregation),
		Change: estimate.Change, Interval: estimate.Interval, Pairs: estimate.Pairs, Sessions: estimate.Sessions, Disturbed: estimate.Disturbed,
		P: estimate.P, Level: estimate.Level,
	}
	if len(s.A) > 0 && len(s.B) > 0 {
		return
	}
	r.OnlyInTurns = true
	r.A, r.B, r.Change, r.MedianChange = r.Turns.A, r.Turns.B, stats.Change{Value: estimate.Change}, stats.Change{Value: estimate.Change}
	r.Interval, r.NoInterval, r.Warnings = nil, "only measured in turns", nil
}

// judgeExact gives the verdict on values without noise, for which one of each side is enough.
func (j *judge) judgeExact(r *Row, s *Series) {
	a, b := s.inTurns()
	a, b = slices.Concat(s.A, a), slices.Concat(s.B, b)
	if len(a) == 0 || len(b) == 0 || !r.A.Known() || !r.B.Known() {
		r.conclude(verdict.Undecided, 0)
		r.Reason = cmp.Or(r.Change.Undefined, "one side has no values")
		return
	}
	exact := verdict.Evidence{Exact: true, Delta: s.Evidence.Delta, Sessions: [][]verdict.Pair{{{A: a[0], B: b[0]}}}}
	v := j.one.Judge(exact)
	r.conclude(v.Kind, b[0]-a[0])
	r.Reason, r.Needs = v.Reason, v.Needs
}

// adopt takes over a stored verdict.
func (r *Row) adopt(s Stored) {
	change := s.Change
	if change == 0 {
		change = r.B.Value - r.A.Value // from zero, there is no relative change
	}
	r.conclude(s.Kind, change)
	r.Reason, r.Needs, r.Suspicion, r.Sees, r.Provisional = s.Reason, s.Needs, s.Suspicion, s.Sees, s.Provisional
	r.Against = s.Against
	if s.Provisional {
		r.Reason = cmp.Or(r.Reason, beingMeasured)
	}
	if s.Pairs == 0 || r.Exact && r.Turns == nil {
		return // one value of each side decides where there is no noise: those that are stored
	}
	// The evidence as it was judged, even if more was measured since, or some was found invalid.
	if r.InTurns = true; r.Turns == nil {
		r.Turns = &Turns{}
	}
	r.Turns.Change, r.Turns.Interval, r.Turns.P, r.Turns.Level = s.Change, s.Interval, s.P, s.Level
	r.Turns.Pairs, r.Turns.Sessions, r.Turns.Disturbed = s.Pairs, s.Sessions, s.Disturbed
}

// Told returns the row of a stored verdict, without descriptions of values.
func Told(better stats.Better, s Stored) Row {
	r := Row{Better: better, Deciding: true}
	r.adopt(s)
	return r
}

// conclude sets the verdict and, for a change, its direction.
func (r *Row) conclude(k verdict.Kind, change float64) {
	r.Verdict, r.Significant = &k, k == verdict.Changed
	if !r.Significant {
		return
	}
	r.Direction = Regression
	if (change < 0) == (r.Better == stats.LowerIsBetter) {
		r.Direction = Improvement
	}
}

// suspect says what stored results alone show. They never show a difference, nor that there is none.
func (j *judge) suspect(r *Row, described *stats.Difference) {
	sign := stats.SignOf(described.A, described.B, j.options, r.Delta)
	r.Sees = sign.Sees
	switch {
	case sign.Blind != "":
		r.conclude(verdict.Undecided, 0)
		r.Reason, r.Needs = "too few values: "+sign.Blind, needsValues
	case sign.Suspect:
		r.conclude(verdict.Undecided, 0)
		r.Reason, r.Needs = notInTurns, needsTurns
		r.Suspicion = fmt.Sprintf("stored results differ by %s or more", stats.Percent(sign.Sees))
	default:
		r.conclude(verdict.NoSuspicion, 0)
		r.Reason = withoutSign
	}
}
