package simulate

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/suspect"
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
// promising first, all that go on in the same look. It returns them with their verdicts, and the number of extra runs.
func (p *project) verify(suspects []suspicion, budget int, judge Judge) (rows []*row, runs int, err error) {
	for _, s := range suspects {
		rows = append(rows, p.row(s))
	}
	one, err := verdict.NewFamily(1)
	if err != nil {
		return nil, 0, err
	}
	rows = slices.DeleteFunc(rows, func(r *row) bool { return !one.Decidable(r.evidence) })
	left := budget
	choose(rows, 0, left)
	rows = slices.DeleteFunc(rows, func(r *row) bool { return r.stopped })
	family, err := verdict.NewFamily(max(len(rows), 1))
	if err != nil {
		return nil, 0, fmt.Errorf("a family of %d suspects: %w", len(rows), err)
	}
	pairs := 0
	for range family.Looks {
		more, ok := family.NextLook(pairs)
		if !ok {
			break
		}
		choose(rows, pairs, left)
		measured := map[measurement]bool{}
		for _, r := range rows {
			if r.settled || r.stopped {
				continue
			}
			if m := r.measurement(); !measured[m] {
				measured[m] = true
				left -= 2 * more
			}
			p.look(r, more)
			r.verdict = judge(family, r.evidence)
			r.settled = r.verdict.Kind != verdict.Undecided || family.Hopeless(r.evidence)
		}
		pairs += more
	}
	return rows, budget - left, nil
}

// choose stops the rows that the budget does not suffice for after a number of pairs.
func choose(rows []*row, pairs, budget int) {
	var candidates []verdict.Candidate
	at := map[measurement]int{}
	for _, r := range rows {
		if r.settled || r.stopped {
			continue
		}
		prospect := r.T
		if pairs > 0 {
			prospect = r.evidence.Prospect(math.Copysign(r.T, r.Change))
		}
		i, known := at[r.measurement()]
		if !known {
			i = len(candidates)
			at[r.measurement()] = i
			candidates = append(candidates, verdict.Candidate{Cost: 2})
		}
		candidates[i].Prospect = max(candidates[i].Prospect, prospect)
	}
	chosen := verdict.Choose(candidates, pairs, float64(budget))
	for _, r := range rows {
		if !r.settled && !r.stopped {
			r.stopped = !chosen[at[r.measurement()]]
		}
	}
}

// measurement identifies a series of pairs, which serves all metrics of a test case at two commits.
type measurement struct{ testCase, baseline int }

func (s suspicion) measurement() measurement { return measurement{s.series.testCase, s.baseline} }

// row prepares the evidence of a suspect from what is known of its noise: nothing if everything is measured in turns.
func (p *project) row(s suspicion) *row {
	r := &row{suspicion: s, evidence: verdict.Evidence{Delta: s.series.metric.delta, Tau: p.tau}}
	if !p.noise.everything {
		model := noise.Fit(p.sessions(s.series, p.commit-1))
		r.evidence.SigmaWithin, r.evidence.BimodalBySession = model.SigmaWithin, model.Has(noise.BimodalBySession)
		r.evidence.Young = verdict.Young(model.Sessions)
	}
	return r
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
	h.tried = append(h.tried, tried{p.commit, suspect.Tried{T: r.T, Up: r.Change > 0, Change: r.verdict.Change, P: r.verdict.P, Open: r.stopped}})
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
