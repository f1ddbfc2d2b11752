package main

import (
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/inturns"
	"github.com/benchloom/benchloom/internal/jobrun"
)

// turns decides how a comparison goes on, and shows its progress.
type turns struct {
	// pairs is the number of --iterations; 0 means looks until everything is decided.
	pairs int
	// most is the time of --max-time; 0 means no limit. stopped is set once the limit has ended the comparison.
	most     time.Duration
	stopped  bool
	began    time.Time
	progress *benchProgress
}

// next returns the next look at the undecided test cases.
func (t *turns) next(r *jobrun.LocalResults) (jobrun.Look, error) {
	judged, err := cli.JudgeLocal(r, t.pairs)
	if err != nil {
		return jobrun.Look{}, err
	}
	if judged.Looks == 0 {
		t.began = time.Now()
	}
	look := judged.Next()
	if len(look.TestCases) == 0 || t.pairs > 0 {
		return look, nil
	}
	if judged.Looks > 0 && t.most > 0 && time.Since(t.began)+judged.NextTakes(r.Results) > t.most {
		t.stopped = true
		return jobrun.Look{}, nil
	}
	t.progress.beginLook(judged, r.Results)
	return look, nil
}

// judge returns the verdicts on the results; nil for a family that is too large, which has ended the run.
func (t *turns) judge(r *jobrun.LocalResults) *inturns.Judgement {
	judged, err := cli.JudgeLocal(r, t.pairs)
	if err != nil {
		return nil
	}
	if t.stopped {
		judged.OverBudget(fmt.Sprintf("the next look would not end within --max-time %s", t.most), "a longer --max-time")
	}
	return &judged
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
