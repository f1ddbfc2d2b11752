package orchestration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// NextLook advances the comparison of a request with its baseline as far as possible without
// measuring. The first call records the comparison with its suspects; when a look has ended,
// NextLook judges its pairs and writes the next look, unless each row has its verdict. It
// reads everything from the record, so calling it again changes nothing.
func (a *Activities) NextLook(ctx context.Context, ref protocol.RequestRef) (protocol.LookResult, error) {
	stop := beat(ctx)
	defer stop()
	decided := protocol.LookResult{Decided: true}
	for range maxSteps {
		r, err := a.Store.Request(ctx, ref.ID)
		if err != nil {
			return protocol.LookResult{}, found(err, "reading the request")
		}
		if r.Status == bench.Completed {
			return decided, nil
		}
		c, err := a.Store.ComparisonOf(ctx, r.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			begun, err := a.beginComparison(ctx, r)
			if err != nil {
				return protocol.LookResult{}, err
			}
			if !begun {
				return decided, nil
			}
			continue
		case err != nil:
			return protocol.LookResult{}, err
		case c.Decided:
			return decided, nil
		}
		look, err := a.look(ctx, r, c)
		if err != nil || look.Counts.Open > 0 {
			return look, err
		}
		// A conflict or a stale comparison: it was ended or continued meanwhile. Look again.
		if err := a.judge(ctx, r, c); err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrStale) {
			return protocol.LookResult{}, err
		}
	}
	return protocol.LookResult{}, errors.New("the comparison of request " + string(ref.ID) + " changes all the time")
}

// maxSteps bounds how often NextLook reads the record again: once for each thing that it
// can do, and a few times more for what others do meanwhile.
const maxSteps = 10

// look describes the last look of a comparison, and hands out its jobs.
func (a *Activities) look(ctx context.Context, r bench.Request, c store.Comparison) (protocol.LookResult, error) {
	family, err := familyOf(c)
	if err != nil {
		return protocol.LookResult{}, permanent(err)
	}
	open := openRows(c)
	out := protocol.LookResult{Look: c.Look, Looks: len(family.Looks), Rows: len(open), Suspects: suspects(open), Baseline: against(open)}
	if out.HandedOut, err = a.handOutTo(ctx, r, bench.StageVerify); err != nil {
		return out, err
	}
	p, err := a.Store.StageProgress(ctx, r.ID, bench.StageVerify, false)
	if out.Counts = counts(p); err != nil || out.Counts.Open == 0 {
		return out, err
	}
	return out, a.Store.SetRequestMessage(ctx, r.ID, out.Text())
}

// suspects names the test cases of rows: by their benchmarks if those are few, else by their number.
func suspects(rows []store.ComparisonRow) string {
	const few = 3
	var benchmarks []string
	cases := make(map[bench.TestCase]bool)
	for _, row := range rows {
		if cases[row.TestCase] = true; !slices.Contains(benchmarks, row.TestCase.Benchmark) {
			benchmarks = append(benchmarks, row.TestCase.Benchmark)
		}
	}
	if len(cases) > len(benchmarks) || len(benchmarks) > few {
		return fmt.Sprintf("%d test cases", len(cases))
	}
	slices.Sort(benchmarks)
	return strings.Join(benchmarks, ", ")
}

// against names the artifacts that rows are measured in turns with.
func against(rows []store.ComparisonRow) string {
	var tags []string
	for _, row := range rows {
		if !slices.Contains(tags, row.Against) {
			tags = append(tags, row.Against)
		}
	}
	return strings.Join(tags, ", ")
}

// openRows returns the rows without a verdict.
func openRows(c store.Comparison) []store.ComparisonRow {
	return slices.DeleteFunc(slices.Clone(c.Rows), func(r store.ComparisonRow) bool { return r.Verdict != nil })
}

// judge stores the verdicts that the pairs so far allow, and writes the next look of the
// rows that need one.
func (a *Activities) judge(ctx context.Context, r bench.Request, c store.Comparison) error {
	family, err := familyOf(c)
	if err != nil {
		return permanent(err)
	}
	evidence, err := a.evidence(ctx, r, c)
	if err != nil {
		return err
	}
	before, more, next := nextLook(family, c.Look)
	var settled, open []store.ComparisonRow
	for _, row := range openRows(c) {
		e := evidence[rowKey{row.TestCase, row.Metric}]
		v := family.Judge(e.of(row))
		switch {
		case c.Look > 0 && e.last < c.Look:
			why, err := a.lookFailure(ctx, c)
			if err != nil {
				return err
			}
			v.Reason, v.Needs = why, "measuring it again with 'benchloom submit --adhoc "+r.Project+" "+c.Tag+" --vs "+c.Baseline+"'"
		case c.Look > 0 && family.Settled(e.of(row)), !next:
		default:
			open = append(open, row)
			continue
		}
		settled = append(settled, withVerdict(row, v))
	}
	open, left := goingOn(c, open)
	for _, row := range left {
		settled = append(settled, withVerdict(row, family.Judge(evidence[rowKey{row.TestCase, row.Metric}].of(row))))
	}
	look := lookPlan{comparison: c, request: r, before: before, pairs: more, family: family, evidence: evidence}
	jobs, given, err := a.planLook(ctx, look, open)
	if err != nil {
		return err
	}
	building, failed, err := a.buildSides(ctx, r, jobs)
	if err != nil {
		return err
	}
	if failed != "" {
		jobs, given = nil, look.undecided(open, "it cannot be measured again: "+failed, "")
	}
	a.Points.Reach(ctx, failpoint.Judging)
	if settled = append(settled, given...); len(settled) > 0 {
		if err := a.Store.Settle(ctx, r.ID, c.ID, told(c, settled)); err != nil {
			return err
		}
	}
	if len(jobs) == 0 || building {
		return nil
	}
	a.Points.Reach(ctx, failpoint.Repeating)
	return a.Store.BeginLook(ctx, r.ID, c.ID, c.Look+1, jobs)
}

func withVerdict(row store.ComparisonRow, v verdict.Verdict) store.ComparisonRow {
	row.Verdict = &v
	return row
}

// nextLook returns the pairs after a number of looks and those that the next look adds;
// ok is false after the last.
func nextLook(family verdict.Family, looks int) (before, more int, ok bool) {
	for range looks {
		if more, ok = family.NextLook(before); !ok {
			return before, 0, false
		}
		before += more
	}
	more, ok = family.NextLook(before)
	return before, more, ok
}

// rowKey names a row of a comparison.
type rowKey struct {
	testCase bench.TestCase
	metric   bench.Metric
}

// rowPairs holds the pairs of a row, and the last look that has any.
type rowPairs struct {
	sessions [][]verdict.Pair
	last     int
	// young is set if the row's series has too few sessions of history.
	young bool
}

// of returns the evidence for a row.
func (p rowPairs) of(row store.ComparisonRow) verdict.Evidence {
	return verdict.Evidence{
		Exact: row.Exact, Delta: row.Delta, Sessions: p.sessions, SigmaWithin: row.SigmaWithin, Tau: row.Tau, BimodalBySession: row.Bimodal, Young: p.young,
	}
}

func (a *Activities) evidence(ctx context.Context, r bench.Request, c store.Comparison) (map[rowKey]rowPairs, error) {
	pairs, err := a.Store.PairsOf(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	young, err := a.young(ctx, r, c)
	if err != nil {
		return nil, err
	}
	out := make(map[rowKey]rowPairs)
	for _, p := range pairs {
		session := make([]verdict.Pair, len(p.A))
		for i := range p.A {
			session[i] = verdict.Pair{A: p.A[i], B: p.B[i], Disturbed: p.Disturbed[i] && p.Metric.Disturbable()}
		}
		key := rowKey{p.TestCase, p.Metric}
		row := out[key]
		row.sessions, row.last, row.young = append(row.sessions, session), max(row.last, p.Look), young[key]
		out[key] = row
	}
	return out, nil
}

// young returns the open rows whose series have too few sessions of history, not counting the
// request's own. A person's request has no history to rest on and is judged by its pairs.
func (a *Activities) young(ctx context.Context, r bench.Request, c store.Comparison) (map[rowKey]bool, error) {
	if r.InTurns() != "" {
		return nil, nil
	}
	where := make(map[rowKey]bench.Surrounding)
	var targets []bench.Target
	for _, row := range openRows(c) {
		where[rowKey{row.TestCase, row.Metric}] = row.Surrounding
		if !slices.Contains(targets, row.TestCase.Target) {
			targets = append(targets, row.TestCase.Target)
		}
	}
	young := make(map[rowKey]bool)
	for _, target := range targets {
		models, err := a.Store.Noise(ctx, r.Project, target)
		if err != nil {
			return nil, err
		}
		for _, m := range models {
			key := rowKey{m.TestCase, m.Metric}
			if surrounding, open := where[key]; open && m.Collector == "" && m.Surrounding == surrounding {
				young[key] = verdict.Young(m.Model.Sessions - 1)
			}
		}
	}
	return young, nil
}

// lookFailure says why the last look has no pairs of a row.
func (a *Activities) lookFailure(ctx context.Context, c store.Comparison) (string, error) {
	jobs, err := a.Store.LookJobs(ctx, c.ID, c.Look)
	if err != nil {
		return "", err
	}
	for _, j := range jobs {
		switch j.Status {
		case bench.JobCancelled:
			return fmt.Sprintf("look %d was cancelled: %s", c.Look, j.Message), nil
		case bench.JobFailure:
			return fmt.Sprintf("look %d failed: %s", c.Look, j.Message), nil
		}
	}
	return fmt.Sprintf("look %d has no values of it", c.Look), nil
}

// lookPlan holds the facts from which the next look is planned.
type lookPlan struct {
	comparison store.Comparison
	request    bench.Request
	before     int // pairs that rows have before the look
	pairs      int // of the look
	family     verdict.Family
	evidence   map[rowKey]rowPairs
}

// undecided returns rows with the verdict that they have so far, and a reason why they are
// not measured again.
func (p lookPlan) undecided(rows []store.ComparisonRow, reason, needs string) []store.ComparisonRow {
	var out []store.ComparisonRow
	for _, row := range rows {
		v := p.family.Judge(p.evidence[rowKey{row.TestCase, row.Metric}].of(row))
		v.Reason, v.Needs = reason, needs
		out = append(out, withVerdict(row, v))
	}
	return out
}

// planLook plans the jobs that measure the test cases of rows again, within the budget. It
// returns the other rows with their verdicts.
func (a *Activities) planLook(ctx context.Context, p lookPlan, rows []store.ComparisonRow) ([]bench.PlannedJob, []store.ComparisonRow, error) {
	if len(rows) == 0 {
		return nil, nil, nil
	}
	seconds, err := a.Store.IterationSeconds(ctx, p.request.ID)
	if err != nil {
		return nil, nil, err
	}
	afford, rest := choose(rows, p.before, remaining(p.comparison), func(row store.ComparisonRow) verdict.Candidate {
		if companion(p.comparison, row) {
			return verdict.Candidate{Prospect: math.Inf(-1), Cost: 2 * seconds[row.TestCase]}
		}
		evidence := p.evidence[rowKey{row.TestCase, row.Metric}].of(row)
		return verdict.Candidate{Prospect: evidence.Prospect(math.Copysign(row.Score, row.SuspectedChange)), Cost: 2 * seconds[row.TestCase]}
	})
	given := p.undecided(rest, overBudget(p.comparison), largerBudget)
	if len(afford) == 0 {
		return nil, given, nil
	}
	jobs, err := a.lookJobs(ctx, p, afford)
	if why := incurable(err); why != "" { // no collector can run them any more, or the suite has changed
		return nil, append(given, p.undecided(afford, "it cannot be measured again: "+why, "")...), nil
	} else if err != nil {
		return nil, nil, err
	}
	planned := make(map[measured]bool)
	for _, j := range jobs {
		for _, tc := range j.TestCases {
			planned[measured{tc, j.Versus}] = true
		}
	}
	gone := slices.DeleteFunc(slices.Clone(afford), func(row store.ComparisonRow) bool { return planned[measuredAs(row)] })
	return jobs, append(given, p.undecided(gone, "it cannot be measured again: the suite no longer has it", "")...), nil
}

// lookJobs plans the jobs of a look, for each artifact that rows are measured in turns with.
func (a *Activities) lookJobs(ctx context.Context, p lookPlan, rows []store.ComparisonRow) ([]bench.PlannedJob, error) {
	f, err := a.facts(ctx, p.request, bench.StageVerify)
	if err != nil {
		return nil, err
	}
	cases := make(map[string]map[bench.TestCase]bool)
	for _, row := range rows {
		if cases[row.Against] == nil {
			cases[row.Against] = make(map[bench.TestCase]bool)
		}
		cases[row.Against][row.TestCase] = true
	}
	var jobs []bench.PlannedJob
	for _, against := range slices.Sorted(maps.Keys(cases)) {
		look, err := f.Look(against, cases[against], p.pairs)
		if err != nil {
			return nil, planned(err)
		}
		jobs = append(jobs, look...)
	}
	return jobs, nil
}

// incurable returns the text of an error that no retry cures; else "".
func incurable(err error) string {
	if unplaceable := plan.Unplaceable(err); unplaceable != nil {
		return unplaceable.Error()
	}
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok && application.NonRetryable() {
		return application.Message()
	}
	return ""
}

// remaining returns the machine time that a comparison may still take, in seconds.
func remaining(c store.Comparison) float64 {
	if c.BudgetSeconds == 0 {
		return math.Inf(1)
	}
	return c.BudgetSeconds - c.SpentSeconds
}

// largerBudget would decide what the budget leaves undecided.
const largerBudget = "a larger verify_budget or verify_at_least"

func overBudget(c store.Comparison) string {
	return fmt.Sprintf("%s: measuring again has taken %.0f s of machine time, of %.0f s", verdict.Budget, c.SpentSeconds, c.BudgetSeconds)
}

// measured is a test case that is measured in turns with an artifact.
type measured struct {
	testCase bench.TestCase
	against  string
}

func measuredAs(row store.ComparisonRow) measured { return measured{row.TestCase, row.Against} }

// choose divides rows into those whose test cases take the next look after a number of pairs, within a time in seconds, and
// the others. A test case is measured once for all its rows.
func choose(rows []store.ComparisonRow, pairs int, seconds float64, as func(store.ComparisonRow) verdict.Candidate) (afford, rest []store.ComparisonRow) {
	var candidates []verdict.Candidate
	at := make(map[measured]int)
	for _, row := range rows {
		c := as(row)
		if i, known := at[measuredAs(row)]; known {
			candidates[i].Prospect = max(candidates[i].Prospect, c.Prospect)
			continue
		}
		at[measuredAs(row)] = len(candidates)
		candidates = append(candidates, c)
	}
	chosen := verdict.Choose(candidates, pairs, seconds)
	for _, row := range rows {
		if chosen[at[measuredAs(row)]] {
			afford = append(afford, row)
		} else {
			rest = append(rest, row)
		}
	}
	return afford, rest
}
