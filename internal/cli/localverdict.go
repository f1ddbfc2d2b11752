package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/inturns"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/verdict"
)

// LocalVerdict is the verdict on one series that two artifacts have.
type LocalVerdict struct {
	TestCase bench.TestCase `json:"test_case"`
	Metric   bench.Metric   `json:"metric"`
	verdict.Verdict
}

// JudgeLocal judges the looks of a local run so far. pairs is their fixed number; 0 means looks until all is decided.
func JudgeLocal(r *jobrun.LocalResults, pairs int) (inturns.Judgement, error) {
	c := inturns.Comparison{TestCases: r.TestCases, Pairs: pairs}
	if len(r.Subjects) == 2 {
		c.A, c.B = r.Subjects[0].Name, r.Subjects[1].Name
	}
	judged, err := c.Judge(r.Results)
	if err != nil {
		return judged, fmt.Errorf("comparing in turns: %w", err)
	}
	return judged, nil
}

// Judged adds the verdicts of a judgement on the metrics asked for, on all if none are.
func (r *LocalReport) Judged(j inturns.Judgement, asked []string) {
	for _, row := range j.Rows {
		if len(asked) > 0 && !slices.ContainsFunc(asked, func(name string) bool { return match(name, row.Metric) }) {
			continue
		}
		r.Verdicts = append(r.Verdicts, LocalVerdict{row.TestCase, row.Metric, row.Verdict})
	}
}

// Regression reports whether the series has changed for the worse.
func (v LocalVerdict) Regression() bool {
	if v.Kind != verdict.Changed {
		return false
	}
	return v.Change < 0 == (v.Metric.Direction() == bench.HigherIsBetter)
}

// Regressions returns the number of series that have changed for the worse.
func (r LocalReport) Regressions() int {
	n := 0
	for _, v := range r.Verdicts {
		if v.Regression() {
			n++
		}
	}
	return n
}

func (r LocalReport) writeVerdicts(w io.Writer) error {
	var b strings.Builder
	for i, v := range r.Verdicts {
		if i == 0 {
			b.WriteString("\nVerdicts\n")
		}
		fmt.Fprintf(&b, "  %s: %s of %s, %+.2f %%: %s\n", v.Kind, v.Metric, Printable(v.TestCase.String()), 100*v.Change, v.Reason)
	}
	return write(w, b.String())
}
