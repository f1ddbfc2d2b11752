package simulate

import (
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Change is a kind of real change that is planted.
type Change struct {
	ID     string // for names of benchmarks
	Name   string
	Metric string
	By     float64 // relative change; 0: twice the least relevant one
	// Spread is the coefficient of variation of the series; 0: the one it has anyway.
	Spread float64
}

// Kinds of changes.
const (
	Instructions  = iota // +0.2 % at a coefficient of variation of 0.1 %
	WallTime             // +2 % at 1 %
	TwiceRelevant        // any deciding metric, at any coefficient of variation
	kinds
)

// Changes returns the kinds of changes, which are planted in turn.
func Changes() [kinds]Change {
	return [...]Change{
		Instructions:  {ID: "instructions-0.2", Name: "+0.2 % instructions, CV 0.1 %", Metric: string(bench.Instructions), By: 0.002, Spread: 0.001},
		WallTime:      {ID: "wall-time-2", Name: "+2 % wall time, CV 1 %", Metric: string(bench.WallTime), By: 0.02, Spread: 0.01},
		TwiceRelevant: {ID: "twice-relevant", Name: "twice the least relevant change"},
	}
}

// lasting is the number of commits within which a change is to be found.
const lasting = 3

// plants are the real changes of a project: one with each commit, each for three commits, in different test cases.
type plants struct {
	*project
	open []*plant
	made int
}

type plant struct {
	series     *series
	kind       int
	remeasured bool
	found      bool
}

func newPlants(p *project) *plants { return &plants{project: p} }

// next plants a change that comes with the next commit, and removes those that were found or have lasted.
func (p *plants) next(f *Figures) {
	coming := p.commit + 1
	var open []*plant
	for _, planted := range p.open {
		if planted.found || coming-planted.series.planted.commit >= lasting {
			p.end(planted, f)
		} else {
			open = append(open, planted)
		}
	}
	kind := p.made % kinds
	p.made++
	p.open = append(open, p.plant(kind, coming))
}

func (p *plants) plant(kind, commit int) *plant {
	c := Changes()[kind]
	for {
		s := &p.series[int(p.random.Float64()*float64(len(p.series)))]
		if !s.metric.deciding || s.planted.factor != 0 || c.Metric != "" && s.metric.name != c.Metric {
			continue
		}
		s.planted = change{commit: commit, factor: 1 + c.By}
		if c.By == 0 {
			s.planted.factor = 1 + 2*s.metric.delta
		}
		if c.Spread != 0 { // it has always been so
			s.spread = c.Spread
			for past := p.first(); past <= p.commit; past++ {
				p.measure(s, past)
			}
		}
		s.history.tried = nil
		return &plant{series: s, kind: kind}
	}
}

// end counts what became of a change and removes it, also from the history.
func (p *plants) end(planted *plant, f *Figures) {
	s := planted.series
	figures := &f.Planted[planted.kind]
	figures.Planted++
	if planted.remeasured {
		figures.Remeasured++
	}
	if planted.found {
		figures.Found++
	}
	from := s.planted.commit
	s.planted = change{}
	for commit := from; commit <= p.commit; commit++ {
		p.measure(s, commit)
	}
	s.history.tried = nil
}

// count counts the verdict on a row with a real change between the two commits that were measured; ok is false if it has
// none.
func (p *plants) count(r *row, f *Figures) (ok bool) {
	for _, planted := range p.open {
		if planted.series != r.series || r.baseline >= r.series.planted.commit {
			continue
		}
		planted.remeasured = true
		figures := &f.Planted[planted.kind]
		switch r.verdict.Kind {
		case verdict.Changed:
			figures.Changed++
			planted.found = true
		case verdict.NoDifference:
			figures.NoDifference++
		case verdict.Undecided, verdict.NoSuspicion:
			figures.Undecided++
			if r.stopped {
				figures.Stopped++
			}
		}
		return true
	}
	return false
}
