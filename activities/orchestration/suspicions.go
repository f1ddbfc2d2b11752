package orchestration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// historyLength bounds the sessions of a series that are read: the newest 60 and, for what
// drifts slowly, 20 before them.
const historyLength = 80

// beginComparison records the comparison of a request with its baseline: which rows are
// suspected, and which of them are measured again within the budget. begun is false if
// there is nothing to compare.
func (a *Activities) beginComparison(ctx context.Context, r bench.Request) (begun bool, err error) {
	c := store.Comparison{Request: r.ID, Tag: r.Tag, RuleVersion: verdict.RuleVersion}
	if r.InTurns() != "" {
		err = a.inTurns(ctx, r, &c)
	} else {
		err = a.suspect(ctx, r, &c)
	}
	if err != nil || len(c.Rows) == 0 {
		return false, err
	}
	if err := a.chooseFamily(ctx, r, &c); err != nil {
		return false, err
	}
	a.Points.Reach(ctx, failpoint.Suspecting)
	err = a.Store.BeginComparison(ctx, c)
	if errors.Is(err, store.ErrConflict) {
		return true, nil // the request has ended
	}
	return true, err
}

// suspect compares a release, a commit or a try build with its baseline: the rows that its
// history makes suspicious are measured again. The comparison has no rows if there is
// nothing to compare.
func (a *Activities) suspect(ctx context.Context, r bench.Request, c *store.Comparison) error {
	project, config, err := a.config(ctx, r.Project)
	if err != nil {
		return err
	}
	c.Mode = config.VerifyMode()
	if c.Mode == bench.VerifyOff || !r.Type.Tracked() {
		return nil
	}
	if c.Baseline, err = a.baseline(ctx, r); err != nil || c.Baseline == "" {
		return err
	}
	histories, err := a.histories(ctx, r, c.Baseline, config)
	if err != nil || len(histories) == 0 {
		return err
	}
	if err := a.detect(ctx, project.SuiteHash, histories); err != nil {
		return err
	}
	if err := a.Store.PutNoise(ctx, r.Project, models(histories)); err != nil {
		return err
	}
	for _, h := range histories {
		c.Rows = append(c.Rows, h.row(c.Mode))
	}
	own, err := a.Store.StageSeconds(ctx, r.ID, bench.StageOwn)
	c.BudgetSeconds = config.VerifyTime(time.Duration(own * float64(time.Second))).Seconds()
	return err
}

// inTurns compares what a person has measured in turns: the request's own jobs were the first
// look and, if the number of iterations was fixed, the only one. The person waits for the
// verdicts, so there is no budget.
func (a *Activities) inTurns(ctx context.Context, r bench.Request, c *store.Comparison) error {
	rows, err := a.Store.RowsInTurns(ctx, r.ID)
	if err != nil {
		return err
	}
	project, _, err := a.config(ctx, r.Project)
	if err != nil {
		return err
	}
	loaded, err := a.Suites.Suite(ctx, project.SuiteHash)
	if err != nil {
		return found(err, "loading the suite")
	}
	c.Mode, c.Baseline, c.Look, c.Pairs = bench.VerifyAll, r.InTurns(), 1, r.Selection.Iterations
	for _, row := range rows {
		exact := loaded.Exact(row.Metric)
		c.Rows = append(c.Rows, store.ComparisonRow{
			TestCase: row.TestCase, Metric: row.Metric, Surrounding: row.Surrounding, Exact: exact, Delta: verdict.Delta(string(row.Metric), exact),
		})
	}
	return nil
}

// familyOf returns the family of a comparison's rows.
func familyOf(c store.Comparison) (verdict.Family, error) {
	if c.Pairs > 0 {
		return verdict.NewFixedFamily(c.FamilySize, c.Pairs)
	}
	return verdict.NewFamily(c.FamilySize)
}

// chooseFamily fixes the rows that are measured again: all that need it, as far as the budget
// goes. The others are undecided.
func (a *Activities) chooseFamily(ctx context.Context, r bench.Request, c *store.Comparison) error {
	if err := setAside(c); err != nil {
		return err
	}
	open := openRows(*c)
	if len(open) == 0 {
		return nil
	}
	seconds, err := a.Store.IterationSeconds(ctx, r.ID)
	if err != nil {
		return err
	}
	c.FamilySize = len(open)
	_, tooLarge := familyOf(*c)
	c.FamilySize = 0
	var chosen map[bench.TestCase]bool
	var reason string
	if tooLarge != nil {
		reason = tooLarge.Error()
	} else {
		afford, _ := choose(open, 0, remaining(*c), func(row store.ComparisonRow) verdict.Candidate {
			return verdict.Candidate{Prospect: row.Score, Cost: 2 * seconds[row.TestCase]}
		})
		chosen = make(map[bench.TestCase]bool, len(afford))
		for _, row := range afford {
			chosen[row.TestCase] = true
		}
		reason = fmt.Sprintf("%s: %.0f s of machine time are too little to measure all suspects again", verdict.Budget, c.BudgetSeconds)
	}
	for i, row := range c.Rows {
		switch {
		case row.Verdict != nil:
		case chosen[row.TestCase]:
			c.Rows[i].Measured = true
			c.FamilySize++
		case !row.Suspected && r.InTurns() == "":
			c.Rows[i] = withVerdict(row, notSuspected(row))
		default:
			c.Rows[i] = withVerdict(row, verdict.Verdict{P: 1, Reason: reason, Needs: largerBudget})
		}
	}
	return addCompanions(c)
}

// addCompanions lets the other metrics of test cases that are measured again be judged by
// the same pairs, which cost nothing more, unless the larger family would confirm later.
func addCompanions(c *store.Comparison) error {
	together := make(map[measured]bool)
	for _, row := range c.Rows {
		if row.Measured {
			together[measuredAs(row)] = true
		}
	}
	var at []int
	for i, row := range c.Rows {
		if companion(*c, row) && together[measuredAs(row)] {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil
	}
	suspects, err := verdict.NewFamily(c.FamilySize)
	if err != nil {
		return permanent(err)
	}
	all, err := verdict.NewFamily(c.FamilySize + len(at))
	if err != nil || all.Confirms() != suspects.Confirms() {
		return nil //nolint:nilerr // the family would be too large
	}
	c.FamilySize += len(at)
	for _, i := range at {
		c.Rows[i].Measured, c.Rows[i].Verdict = true, nil
	}
	return nil
}

// companion reports whether a row of a comparison is measured only beside suspects, if at
// all.
func companion(c store.Comparison, row store.ComparisonRow) bool {
	return c.Mode == bench.VerifySuspects && !row.Suspected && (row.Verdict == nil || row.Verdict.Kind == verdict.NoSuspicion)
}

// goingOn divides rows without a verdict into suspects with their companions, and
// companions without a suspect left.
func goingOn(c store.Comparison, rows []store.ComparisonRow) (on, left []store.ComparisonRow) {
	suspected := make(map[measured]bool)
	for _, row := range rows {
		if !companion(c, row) {
			suspected[measuredAs(row)] = true
		}
	}
	for _, row := range rows {
		if suspected[measuredAs(row)] {
			on = append(on, row)
		} else {
			left = append(left, row)
		}
	}
	return on, left
}

// told returns rows with verdicts as they are stored: an undecided companion stays without
// suspicion.
func told(c store.Comparison, rows []store.ComparisonRow) []store.ComparisonRow {
	for i, row := range rows {
		if row.Verdict.Kind == verdict.Undecided && c.Mode == bench.VerifySuspects && !row.Suspected {
			rows[i] = withVerdict(row, notSuspected(row))
		}
	}
	return rows
}

// setAside gives a verdict to the rows that no look can decide, before anything is spent on
// them.
func setAside(c *store.Comparison) error {
	family, err := verdict.NewFamily(1)
	if err != nil {
		return err
	}
	for i, row := range c.Rows {
		if e := (rowPairs{}).of(row); row.Verdict == nil && c.Pairs == 0 && !family.Decidable(e) {
			c.Rows[i] = withVerdict(row, family.Undecidable())
		}
	}
	return nil
}

// histories reads the histories of all series that the request shares with its baseline.
// A test case that was measured in several surroundings has the one that comparisons
// prefer.
func (a *Activities) histories(ctx context.Context, r bench.Request, baseline string, config bench.ProjectConfig) ([]history, error) {
	line, err := a.Store.Line(ctx, r, historyLength, admission.CompareVersions)
	if err != nil {
		return nil, err
	}
	// The baseline is always part of the line.
	if !slices.Contains(line, baseline) {
		line = slices.Insert(line, len(line)-1, baseline)
	}
	targets, err := a.Store.MeasuredTargets(ctx, r.Project, r.Tag)
	if err != nil {
		return nil, err
	}
	var out []history
	for _, target := range targets {
		if slices.Contains(config.OptionalTargets, target) {
			continue
		}
		sessions, err := a.Store.Sessions(ctx, r.Project, target, line)
		if err != nil {
			return nil, err
		}
		out = append(out, historiesOf(sessions, line, baseline)...)
	}
	past, err := a.Store.PastSuspicions(ctx, r.Project, line)
	if err != nil {
		return nil, err
	}
	earlier := make(map[rowKey]map[string]store.PastSuspicion)
	for _, p := range past {
		key := rowKey{p.TestCase, p.Metric}
		if earlier[key] == nil {
			earlier[key] = make(map[string]store.PastSuspicion)
		}
		earlier[key][p.Tag] = p
	}
	for i, h := range out {
		out[i].past = earlier[rowKey{h.testCase, h.metric}]
		out[i].sessions = out[i].settled()
	}
	return out, nil
}

// historiesOf divides sessions, which are in the order of series, into histories.
func historiesOf(sessions []store.Session, line []string, baseline string) []history {
	var out []history
	at := make(map[rowKey]int)
	for len(sessions) > 0 {
		first := sessions[0]
		end := slices.IndexFunc(sessions, func(s store.Session) bool {
			return s.TestCase != first.TestCase || s.Metric != first.Metric || s.Surrounding != first.Surrounding
		})
		if end < 0 {
			end = len(sessions)
		}
		h := history{testCase: first.TestCase, metric: first.Metric, Surrounding: first.Surrounding, sessions: sessions[:end:end]}
		sessions = sessions[end:]
		before := slices.IndexFunc(h.sessions, func(s store.Session) bool { return s.Tag == baseline })
		if before < 0 || h.own().Index != len(line)-1 || !verdict.Deciding(string(h.metric)) {
			continue
		}
		h.baseline = h.sessions[before]
		key := rowKey{h.testCase, h.metric}
		if i, known := at[key]; !known {
			at[key] = len(out)
			out = append(out, h)
		} else if h.Surrounding.Before(out[i].Surrounding) {
			out[i] = h
		}
	}
	return out
}

// settled returns the sessions that are a history of the last one: those since the last
// confirmed change, measured under the same settings of the machine. The baseline's session
// stays, whatever has changed since.
func (h history) settled() []store.Session {
	last := len(h.sessions) - 1
	from := 0
	for i, s := range h.sessions[:last] {
		if h.past[s.Tag].Changed {
			from = i
		}
	}
	var out []store.Session
	for i, s := range h.sessions {
		if s.Tag == h.baseline.Tag || i >= from && !s.Segment.Differs(h.own().Segment) {
			out = append(out, s)
		}
	}
	return out
}
