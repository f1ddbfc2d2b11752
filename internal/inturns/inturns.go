// Package inturns judges two artifacts that are measured in turns on this machine, look by look, and says what is still to
// be measured. It is pure: of jobrun it uses only the types of looks and results. It must not know how values are measured
// or how verdicts are shown.
package inturns

import (
	"cmp"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Comparison is the wish to compare artifact B with the baseline A.
type Comparison struct {
	// A and B are the names of the subjects.
	A, B string
	// TestCases are those selected, in the order of measurement.
	TestCases []bench.TestCase
	// Pairs fixes the number of pairs of each test case; with 0, they are measured in looks until they are decided.
	Pairs int
	// Exact reports whether a metric has no noise; nil: by its kind alone.
	Exact func(bench.Metric) bool
}

// exact reports whether a metric has no noise.
func (c Comparison) exact(metric bench.Metric) bool {
	if c.Exact == nil {
		return metric.Exact()
	}
	return c.Exact(metric)
}

// Row is a series with its verdict.
type Row struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	Verdict  verdict.Verdict
}

// Judgement holds the verdicts after the looks so far.
type Judgement struct {
	Family verdict.Family
	// Looks is the number of looks so far; Pairs is that of the pairs that an open test case has in them.
	Looks, Pairs int
	// Rows are sorted by test case and metric.
	Rows []Row
	// Open are the test cases that need a further look, unless there was the last one.
	Open []bench.TestCase
}

// Judge judges the looks so far, of which there may be none. The family is fixed by the first look, which is too short to
// confirm anything: every deciding metric of each of its test cases. A series keeps the verdict of the look that settled it.
//
// The error is a [*verdict.TooLargeError] for a family that cannot be decided. It is given before anything is measured if
// the number of test cases alone is too large.
func (c Comparison) Judge(results []jobrun.LocalResult) (Judgement, error) {
	found := c.collect(results)
	size := 0
	for _, s := range found.series {
		if !s.late {
			size++
		}
	}
	if len(results) == 0 {
		size = len(c.TestCases) // each has one metric at least
	}
	j := Judgement{Looks: len(found.looks)}
	for _, pairs := range found.looks {
		j.Pairs += pairs
	}
	var err error
	if j.Family, err = c.family(max(1, size)); err != nil {
		return j, err
	}
	open := make(map[bench.TestCase]bool)
	for _, s := range found.series {
		row, settled := s.judge(j.Family)
		j.Rows = append(j.Rows, row)
		if !settled && !found.failed[s.testCase] {
			open[s.testCase] = true
		}
	}
	for _, tc := range c.TestCases {
		if open[tc] || len(results) == 0 {
			j.Open = append(j.Open, tc)
		}
	}
	slices.SortFunc(j.Rows, func(x, y Row) int {
		return cmp.Or(bench.CompareTestCases(x.TestCase, y.TestCase), cmp.Compare(x.Metric, y.Metric))
	})
	return j, nil
}

func (c Comparison) family(size int) (verdict.Family, error) {
	if c.Pairs > 0 {
		return verdict.NewFixedFamily(size, c.Pairs)
	}
	return verdict.NewFamily(size)
}

// Next returns the next look, at the open test cases; it has none if all are settled or if there was the last look.
func (j Judgement) Next() jobrun.Look {
	more, ok := j.Family.NextLook(j.Pairs)
	if !ok || j.Looks == len(j.Family.Looks) {
		return jobrun.Look{}
	}
	return jobrun.Look{TestCases: j.Open, Iterations: more}
}

// Decided returns the number of rows that are changed or have no difference.
func (j Judgement) Decided() int {
	n := 0
	for _, r := range j.Rows {
		if r.Verdict.Kind != verdict.Undecided {
			n++
		}
	}
	return n
}

// AtMost returns how long the open test cases take at most from now on, going by the iterations so far.
func (j Judgement) AtMost(results []jobrun.LocalResult) time.Duration {
	return j.takes(results, j.Family.Looks[len(j.Family.Looks)-1]-j.Pairs)
}

// NextTakes returns how long the next look takes, going by the iterations so far.
func (j Judgement) NextTakes(results []jobrun.LocalResult) time.Duration {
	return j.takes(results, j.Next().Iterations)
}

// takes returns how long a number of pairs of each open test case takes.
func (j Judgement) takes(results []jobrun.LocalResult, pairs int) time.Duration {
	var total time.Duration
	for _, tc := range j.Open {
		var spent time.Duration
		iterations := 0
		for _, r := range results {
			if r.TestCase != tc {
				continue
			}
			iterations += len(r.Collections)
			for _, c := range r.Collections {
				spent += c.Duration
			}
		}
		if iterations > 0 {
			total += spent * time.Duration(2*pairs) / time.Duration(iterations)
		}
	}
	return total
}

// OverBudget gives the undecided rows of open test cases the reason that measuring ended before they were decided, and
// what is needed to go on.
func (j Judgement) OverBudget(why, needs string) {
	for i, r := range j.Rows {
		if r.Verdict.Kind == verdict.Undecided && slices.Contains(j.Open, r.TestCase) {
			j.Rows[i].Verdict.Reason = verdict.Budget + ": " + why + "; so far " + r.Verdict.Reason
			j.Rows[i].Verdict.Needs = needs
		}
	}
}

type key struct {
	testCase bench.TestCase
	metric   bench.Metric
}

// series is the evidence of one series.
type series struct {
	key
	evidence verdict.Evidence
	// late is set if the first look, which fixes the family, has no values of it.
	late bool
}

// judge returns the verdict of the first look that settles the series, or else that of all looks.
func (s series) judge(family verdict.Family) (row Row, settled bool) {
	if s.late {
		v := verdict.Verdict{P: 1, Reason: verdict.TooFewValues + ": the first look, which fixes what is decided, has none"}
		return Row{TestCase: s.testCase, Metric: s.metric, Verdict: v}, true
	}
	all := s.evidence.Sessions
	for n := range all {
		s.evidence.Sessions = all[:n+1]
		if settled = family.Settled(s.evidence); settled {
			break
		}
	}
	return Row{TestCase: s.testCase, Metric: s.metric, Verdict: family.Judge(s.evidence)}, settled
}

// found holds the measurements of a run.
type found struct {
	series []series
	// looks holds the pairs of each look.
	looks  []int
	failed map[bench.TestCase]bool
}

func (c Comparison) collect(results []jobrun.LocalResult) found {
	type place struct {
		testCase bench.TestCase
		look     int
	}
	out := found{failed: make(map[bench.TestCase]bool)}
	baseline := make(map[place][]jobrun.Collection)
	for _, r := range results {
		if r.Subject == c.A {
			baseline[place{r.TestCase, r.Look}] = r.Collections
		}
		out.failed[r.TestCase] = out.failed[r.TestCase] || r.Failure != nil
	}
	at := make(map[key]int)
	for _, r := range results {
		if r.Subject != c.B {
			continue
		}
		look := max(1, r.Look)
		for len(out.looks) < look {
			out.looks = append(out.looks, 0)
		}
		for metric, pairs := range pair(baseline[place{r.TestCase, r.Look}], r.Collections) {
			out.looks[look-1] = max(out.looks[look-1], len(pairs))
			k := key{r.TestCase, metric}
			i, known := at[k]
			switch {
			case known:
			case !verdict.Deciding(string(metric)):
				continue
			default:
				i = len(out.series)
				at[k] = i
				out.series = append(out.series, c.newSeries(k, look > 1))
			}
			out.series[i].evidence.Sessions = append(out.series[i].evidence.Sessions, pairs)
		}
	}
	return out
}

func (c Comparison) newSeries(k key, late bool) series {
	exact := c.exact(k.metric)
	return series{k, verdict.Evidence{Exact: exact, Delta: verdict.Delta(string(k.metric), exact)}, late}
}

// pair returns the pairs of each metric that both sides have.
func pair(a, b []jobrun.Collection) map[bench.Metric][]verdict.Pair {
	pairs := make(map[bench.Metric][]verdict.Pair)
	for i := range min(len(a), len(b)) {
		for metric, value := range b[i].Metrics {
			if baseline, ok := a[i].Metrics[metric]; ok {
				disturbed := len(a[i].Disturbed)+len(b[i].Disturbed) > 0 && metric.Disturbable()
				pairs[metric] = append(pairs[metric], verdict.Pair{A: baseline, B: value, Disturbed: disturbed})
			}
		}
	}
	return pairs
}
