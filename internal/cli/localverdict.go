package cli

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/inturns"
	"github.com/benchloom/benchloom/internal/jobrun"
)

// JudgeLocal judges the looks of a local run so far. pairs is their fixed number; 0 means looks until everything is decided.
func JudgeLocal(r *jobrun.LocalResults, pairs int) (inturns.Judgement, error) {
	c := inturns.Comparison{TestCases: r.TestCases, Pairs: pairs, Exact: r.Suite.Exact}
	if len(r.Subjects) == 2 {
		c.A, c.B = r.Subjects[0].Name, r.Subjects[1].Name
	}
	judged, err := c.Judge(r.Results)
	if err != nil {
		return judged, fmt.Errorf("comparing in turns: %w", err)
	}
	return judged, nil
}
