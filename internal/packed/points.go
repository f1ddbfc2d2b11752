package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// SheetPoints reads the points of series out of a sheet, without unpacking what is not asked for.
type SheetPoints struct {
	artifact int64
	fields   Fields
	r        reader
	// left counts the series whose heads have not been read. ahead is set if the values after the last head are still to come.
	left  int
	ahead bool
	head  seriesHead
	// values hold the values of the last point.
	values []float64
}

// seriesHead holds what precedes the iterations of a series.
type seriesHead struct {
	id     int64
	n      int
	origin *Origin
	flags  byte
}

// PointsOf returns the points of an artifact's sheet, with some fields of their summaries. Errors wrap [ErrCorrupt].
func PointsOf(artifact int64, sheet []byte, fields Fields) (SheetPoints, error) {
	p := SheetPoints{artifact: artifact, fields: fields, r: reader{rest: sheet}}
	p.r.head(Version)
	if p.left = p.r.count(leastSeries); p.r.err != nil {
		return SheetPoints{}, fmt.Errorf("reading a sheet: %w", p.r.err)
	}
	return p, nil
}

// Of returns the point of a series; known is false if the sheet has none. Series must be asked for in the order of their IDs.
// Errors wrap [ErrCorrupt].
func (p *SheetPoints) Of(series int64) (point Point, known bool, err error) {
	for p.head.id < series && p.left > 0 && p.r.err == nil {
		if p.ahead {
			p.skip()
		}
		p.head = p.r.series(p.head.id)
		p.ahead = true
		p.left--
	}
	if p.r.err == nil && p.ahead && p.head.id == series {
		point, known = p.point(), true
	}
	if p.r.err != nil {
		return Point{}, false, fmt.Errorf("reading a sheet: %w", p.r.err)
	}
	return point, known, nil
}

// skip passes over the values of a series.
func (p *SheetPoints) skip() {
	p.r.passIterations(p.head.n, p.head.flags&gaps != 0)
	if p.head.flags&marks != 0 {
		p.r.bytes((p.head.n + 7) / 8)
	}
	p.r.bytes(8 * p.head.n)
	p.ahead = false
}

// point sums up the values of a series.
func (p *SheetPoints) point() Point {
	n := p.head.n
	out := Point{Artifact: p.artifact, Origin: p.head.origin, N: n}
	p.r.passIterations(n, p.head.flags&gaps != 0)
	if p.head.flags&marks != 0 {
		for _, b := range p.r.bytes((n + 7) / 8) {
			out.Disturbed += bits.OnesCount8(b)
		}
	}
	p.values = p.values[:0]
	for packed := p.r.bytes(8 * n); len(packed) > 0; packed = packed[8:] {
		p.values = append(p.values, math.Float64frombits(binary.LittleEndian.Uint64(packed)))
	}
	out.Summary = summarize(p.values, p.fields)
	p.ahead = false
	return out
}
