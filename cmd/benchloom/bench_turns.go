package main

import (
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/inturns"
	"github.com/benchloom/benchloom/internal/jobrun"
)

// turns decides how a comparison goes on, and shows how far its decision is.
type turns struct {
	// pairs is the number of --iterations; 0 means looks until all is decided.
	pairs    int
	progress *benchProgress
}

// next returns the next look at what is not decided yet.
func (t turns) next(r *jobrun.LocalResults) (jobrun.Look, error) {
	judged, err := cli.JudgeLocal(r, t.pairs)
	if err != nil {
		return jobrun.Look{}, err
	}
	look := judged.Next()
	if len(look.TestCases) > 0 && t.pairs == 0 {
		t.progress.beginLook(judged, r.Results)
	}
	return look, nil
}

// beginLook shows what the looks so far have decided.
func (p *benchProgress) beginLook(judged inturns.Judgement, results []jobrun.LocalResult) {
	p.look = fmt.Sprintf("look %d of at most %d", judged.Looks+1, len(judged.Family.Looks))
	if judged.Looks > 0 {
		p.look += fmt.Sprintf(": %d of %s decided, at most %s to go", judged.Decided(), cli.Plural(len(judged.Rows), "row"),
			judged.AtMost(results).Round(time.Second))
	}
	if p.screen == nil {
		p.line(p.look)
	}
}
