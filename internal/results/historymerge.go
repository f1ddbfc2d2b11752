package results

import (
	"cmp"
	"math"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/history"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// merging makes the points of a series from its histories in several surroundings: those in the surrounding that
// comparisons prefer. It uses the same memory for each series.
type merging struct {
	// ids of the artifacts, ascending, and numbers their numbers in the part.
	ids     []int64
	numbers []int
	// number returns the number of a place; place is that of the last origin and surrounding.
	number      func(history.Place) int
	origin      *packed.Origin
	surrounding bench.Surrounding
	place       int
	// By the number of an artifact: which history has been chosen, counted from 1, and its point.
	chosen []int
	of     []history.Point
	line   mergedLine
}

// mergedLine holds one series as read; it is valid until the next is read.
type mergedLine struct {
	points []history.Point
	// odd are the artifacts with values that are not finite.
	odd []int
}

func newMerging(ids []int64, number func(history.Place) int) *merging {
	m := &merging{
		ids: make([]int64, len(ids)), numbers: make([]int, len(ids)), number: number, place: -1, chosen: make([]int, len(ids)), of: make([]history.Point, len(ids)),
	}
	for i := range ids {
		m.numbers[i] = i
	}
	slices.SortFunc(m.numbers, func(a, b int) int { return cmp.Compare(ids[a], ids[b]) })
	for i, number := range m.numbers {
		m.ids[i] = ids[number]
	}
	return m
}

// merge returns the line of a series.
func (m *merging) merge(histories []store.History, aggregation suite.Aggregation) mergedLine {
	clear(m.chosen)
	for k, h := range histories {
		i := 0
		for j := range h.Points {
			p := &h.Points[j]
			for i < len(m.ids) && m.ids[i] < p.Artifact {
				i++
			}
			if i == len(m.ids) || m.ids[i] != p.Artifact {
				continue
			}
			at := m.numbers[i]
			if c := m.chosen[at]; c > 0 && !h.Before(histories[c-1].Surrounding) {
				continue
			}
			m.chosen[at] = k + 1
			m.of[at] = history.Point{
				At: at, Value: aggregate(aggregation, p), Low: p.LowerQuartile, High: p.UpperQuartile, Min: p.Min, Max: p.Max, N: p.N,
				Place: m.placeOf(p.Origin, h.Surrounding),
			}
		}
	}
	m.line.points, m.line.odd = m.line.points[:0], m.line.odd[:0]
	for at, c := range m.chosen {
		switch {
		case c == 0:
		case finite(m.of[at].Min) && finite(m.of[at].Max):
			m.line.points = append(m.line.points, m.of[at])
		default:
			m.line.odd = append(m.line.odd, at)
		}
	}
	return m.line
}

// placeOf returns the number of a place, mostly that of the point before.
func (m *merging) placeOf(origin *packed.Origin, surrounding bench.Surrounding) int {
	if m.place < 0 || origin != m.origin && *origin != *m.origin || surrounding != m.surrounding {
		m.origin, m.surrounding = origin, surrounding
		m.place = m.number(history.Place{Surrounding: surrounding, Segment: origin.Segment, Suite: origin.Suite})
	}
	return m.place
}

// aggregate returns the aggregate of a point's values that comparisons use.
func aggregate(a suite.Aggregation, p *packed.Point) float64 {
	switch a {
	case suite.AggregateMedian:
		return p.Median
	case suite.AggregateMean:
		return p.Mean
	case suite.AggregateMax:
		return p.Max
	}
	return p.Min
}

// aggregateFields returns the fields of summaries that [aggregate] needs.
func aggregateFields(a suite.Aggregation) packed.Fields {
	switch a {
	case suite.AggregateMedian:
		return packed.MedianFields
	case suite.AggregateMean, suite.AggregateMax:
		return packed.AllFields
	}
	return packed.MinField
}

func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }
