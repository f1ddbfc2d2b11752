package simulate

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
)

// former is the rule that [stats.Compare] implements, as it was used before there were verdicts: the commit's values
// against its parent's, all metrics in one family.
type former struct {
	series []stats.Series
	a, b   []float64 // of all series, if measured in turns
}

func newFormer(p *project) *former {
	f := &former{series: make([]stats.Series, len(p.series))}
	for i := range p.series {
		s := &p.series[i]
		f.series[i] = stats.Series{
			Key: s.key, Unit: s.metric.unit, Precise: s.metric.name == string(bench.Instructions), Threshold: s.metric.least,
			InTurns: p.noise.everything,
		}
	}
	if p.noise.everything {
		f.a, f.b = make([]float64, len(p.series)*sessionSize), make([]float64, len(p.series)*sessionSize)
	}
	return f
}

// count compares the newest commit with its parent and counts the rows that the rule calls a relevant change.
func (f *former) count(p *project) (int, error) {
	for i := range p.series {
		s := &p.series[i]
		a, b := s.session(p.commit-1), s.session(p.commit)
		if p.noise.everything {
			a, b = f.a[i*sessionSize:(i+1)*sessionSize], f.b[i*sessionSize:(i+1)*sessionSize]
			p.turns(s, p.commit-1, a, b)
		}
		f.series[i].A, f.series[i].B = a, b
	}
	c, err := stats.Compare(f.series, stats.DefaultOptions())
	if err != nil {
		return 0, fmt.Errorf("comparing by the former rule: %w", err)
	}
	rows := 0
	for i := range c.Results {
		if c.Results[i].Relevant {
			rows++
		}
	}
	return rows, nil
}
