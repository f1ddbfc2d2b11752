package simulate

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Judge decides a series of a family after the pairs so far. The rule is [verdict.Family.Judge].
type Judge func(verdict.Family, verdict.Evidence) verdict.Verdict

// row is a series that is measured in turns.
type row struct {
	suspicion
	evidence verdict.Evidence
	pairs    int
	settled  bool
	stopped  bool // by the budget
	verdict  verdict.Verdict
}

// verify measures suspects in turns until they are decided or the budget is used up, as the service does: the most
// suspicious first, all that go on in the same look. It returns them with their verdicts, and the number of extra runs.
func (p *project) verify(suspects []suspicion, budget int, judge Judge) (rows []*row, runs int, err error) {
	family, err := verdict.NewFamily(max(len(suspects), 1))
	if err != nil {
		return nil, 0, fmt.Errorf("a family of %d suspects: %w", len(suspects), err)
	}
	left := budget
	each := 2 * family.Confirms()
	reserved := reservation{budget: budget, each: each}
	for _, s := range suspects {
		if reserved.take(s) {
			rows = append(rows, p.row(s))
		}
	}
	if family, err = verdict.NewFamily(max(len(rows), 1)); err != nil {
		return nil, 0, fmt.Errorf("a family of %d suspects: %w", len(rows), err)
	}
	for range family.Looks {
		measured := map[measurement]bool{}
		for _, r := range rows {
			if r.settled || r.stopped {
				continue
			}
			more, ok := family.NextLook(r.pairs)
			if !ok {
				continue
			}
			if m := r.measurement(); !measured[m] {
				if 2*more > left {
					r.stopped = true
					continue
				}
				measured[m] = true
				left -= 2 * more
			}
			p.look(r, more)
			r.verdict = judge(family, r.evidence)
			r.settled = r.verdict.Kind != verdict.Undecided || family.Settled(r.evidence)
		}
	}
	return rows, budget - left, nil
}

// measurement is what one series of pairs serves: all metrics of a test case at two commits.
type measurement struct{ testCase, baseline int }

func (s suspicion) measurement() measurement { return measurement{s.series.testCase, s.baseline} }

// reservation keeps runs for as many pairs of each test case as can confirm a change.
type reservation struct {
	budget, each int
	taken        []measurement
}

func (r *reservation) take(s suspicion) bool {
	m := s.measurement()
	switch {
	case slices.Contains(r.taken, m):
		return true
	case (len(r.taken)+1)*r.each > r.budget:
		return false
	}
	r.taken = append(r.taken, m)
	return true
}

// row prepares the evidence of a suspect from what is known of its noise.
func (p *project) row(s suspicion) *row {
	model := noise.Fit(p.sessions(s.series, p.commit-1))
	return &row{suspicion: s, evidence: verdict.Evidence{
		Delta: s.series.metric.delta, SigmaWithin: model.SigmaWithin, Tau: p.tau,
		BimodalBySession: model.Has(noise.BimodalBySession),
	}}
}

// look measures a session of pairs.
func (p *project) look(r *row, pairs int) {
	a, b := make([]float64, pairs), make([]float64, pairs)
	p.turns(r.series, r.baseline, a, b)
	session := make([]verdict.Pair, pairs)
	for i := range session {
		session[i] = verdict.Pair{A: a[i], B: b[i]}
	}
	r.evidence.Sessions = append(r.evidence.Sessions, session)
	r.pairs += pairs
}

// remember records what became of a suspicion: one that was not reproduced keeps quiet for some commits.
func (p *project) remember(r *row) {
	h := &r.series.history
	h.tried = slices.DeleteFunc(h.tried, func(t tried) bool { return p.commit-t.commit > longest })
	if r.settled || !r.stopped {
		h.tried = append(h.tried, tried{p.commit, r.T, r.Change > 0})
	}
}

// verifyEverything measures all deciding metrics in turns until each is decided or has had all looks, as a comparison does
// that is asked for. There is no budget, and nothing raises a suspicion.
func (p *project) verifyEverything(judge Judge) (rows []*row, runs int, err error) {
	var suspects []suspicion
	for i := range p.series {
		if s := &p.series[i]; s.metric.deciding {
			suspects = append(suspects, suspicion{series: s, baseline: p.commit - 1})
		}
	}
	return p.verify(suspects, math.MaxInt, judge)
}
