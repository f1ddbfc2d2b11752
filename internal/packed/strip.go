package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxPoints bounds the points of a strip. A new artifact rewrites the newest strip of each
// of its series: with 5,600 of them, 80 points of at most 53 bytes are 24 MB, and 28 MB in
// the log of Postgres, which after a checkpoint also holds the pages as they were.
const MaxPoints = 80

// Strip is a part of the history of one series in one surrounding: its points by ascending
// ID of their artifacts. A longer history has several.
type Strip []Point

// Point sums up the values of a series for one artifact.
type Point struct {
	Artifact int64
	// Origin is shared by the points of a run; it must not be changed.
	Origin *Origin
	// N is the number of values, of which Disturbed were disturbed.
	N, Disturbed int
	Summary
}

// Summary has every aggregate of some values that a suite can name, and their quartiles.
type Summary struct {
	Min, LowerQuartile, Median, UpperQuartile, Max, Mean float64
}

// NewPoint sums up a series of an artifact. It refers to the origin of the series.
func NewPoint(artifact int64, s *Series) Point {
	p := Point{Artifact: artifact, Origin: &s.Origin, N: len(s.Values), Summary: Summarize(s.Values)}
	for _, d := range s.Disturbed {
		if d {
			p.Disturbed++
		}
	}
	return p
}

// Summarize sums up at least one value. Quartiles lie between two values as in R's type 7
// (Hyndman and Fan, 1996). NaN has no order: with one among the values, all is NaN. With an
// infinite value, what depends on it is infinite or, between both infinities, NaN.
func Summarize(values []float64) Summary {
	if slices.ContainsFunc(values, math.IsNaN) {
		nan := math.NaN()
		return Summary{nan, nan, nan, nan, nan, nan}
	}
	var few [16]float64 // most have no more, and need no memory
	up := append(few[:0], values...)
	sortFew(up)
	mean := 0.0
	for _, v := range up {
		mean += v / float64(len(up)) // summed first, large values would overflow
	}
	// Rounding must not take the mean out of the values' range.
	mean = min(max(mean, up[0]), up[len(up)-1])
	s := Summary{
		Min: up[0], LowerQuartile: quantile(up, 0.25), Median: quantile(up, 0.5), UpperQuartile: quantile(up, 0.75), Max: up[len(up)-1], Mean: mean,
	}
	for _, v := range []*float64{&s.LowerQuartile, &s.Median, &s.UpperQuartile, &s.Mean} {
		if math.IsNaN(*v) {
			*v = math.NaN() // the same bits on every machine
		}
	}
	return s
}

// sortFew puts values that are not NaN in ascending order, fast if they are few.
func sortFew(values []float64) {
	const few = 12
	if len(values) > few {
		slices.Sort(values)
		return
	}
	for i, v := range values {
		for ; i > 0 && values[i-1] > v; i-- {
			values[i] = values[i-1]
		}
		values[i] = v
	}
}

// quantile returns the quantile q of ascending values, whose middle is the median of package stats.
func quantile(up []float64, q float64) float64 {
	at := q * float64(len(up)-1)
	low := int(at)
	part := at - float64(low)
	if part == 0 || up[low] == up[low+1] {
		return up[low]
	}
	return up[low]*(1-part) + up[low+1]*part
}

const (
	// alike is the shape of a point whose summary is six times the same value, as that of
	// an exact metric or of a single value.
	alike = iota
	// spread is the shape of any other point.
	spread
)

func (s Summary) floats() [6]float64 {
	return [...]float64{s.Min, s.LowerQuartile, s.Median, s.UpperQuartile, s.Max, s.Mean}
}

func (s Summary) shape() byte {
	for _, v := range s.floats() {
		if math.Float64bits(v) != math.Float64bits(s.Min) {
			return spread
		}
	}
	return alike
}

// Pack encodes a strip.
//
//	version, origins, number of points; then of each point:
//	step from the ID of the artifact before, number of values and of disturbed ones,
//	number of its origin, shape, one float (if alike) or six
func (s Strip) Pack() ([]byte, error) {
	if len(s) > MaxPoints {
		return nil, fmt.Errorf("a strip has %d points, and may have %d", len(s), MaxPoints)
	}
	if !ascending(s, func(p Point) int64 { return p.Artifact }) {
		return nil, errors.New("the points of a strip are not in the order of their artifacts, or one is there twice")
	}
	var known origins
	for _, p := range s {
		if p.N < 1 || p.Disturbed < 0 || p.Disturbed > p.N {
			return nil, fmt.Errorf("artifact %d has %d values, of which %d are disturbed", p.Artifact, p.N, p.Disturbed)
		}
		known.add(*p.Origin)
	}
	b := known.append(append(make([]byte, 0, 64+56*len(s)), Version))
	b = binary.AppendUvarint(b, uint64(len(s)))
	before := int64(0)
	for _, p := range s {
		b = binary.AppendUvarint(b, uint64(p.Artifact-before))
		before = p.Artifact
		b = binary.AppendUvarint(b, uint64(p.N))
		b = binary.AppendUvarint(b, uint64(p.Disturbed))
		b = binary.AppendUvarint(b, uint64(known.index[*p.Origin]))
		shape, floats := p.shape(), p.floats()
		b = append(b, shape)
		for _, v := range floats[:floatsOf(shape)] {
			b = appendFloat(b, v)
		}
	}
	return b, nil
}

func floatsOf(shape byte) int {
	if shape == alike {
		return 1
	}
	return 6
}

// maxValues bounds the number of values of a point; no series has nearly as many.
const maxValues = 1 << 31

// UnpackStrip decodes a strip. Errors wrap [ErrCorrupt].
func UnpackStrip(b []byte) (Strip, error) {
	strip, err := AppendStrip(nil, b)
	if err != nil {
		return nil, err
	}
	return strip, nil
}

// AppendStrip decodes a strip behind other points, so that many strips can be read into
// the same memory. Errors wrap [ErrCorrupt]; with one, the other points are returned.
func AppendStrip(to Strip, b []byte) (Strip, error) {
	r := reader{rest: b}
	r.head()
	n := r.count(13)
	if n > MaxPoints {
		r.fail("%d points are too many", n)
		n = 0
	}
	strip := slices.Grow(to, n)[:len(to)+n]
	points := strip[len(to):]
	before := int64(0)
	for i := range points {
		p := &points[i]
		r.point(p, before)
		if r.err != nil {
			break
		}
		before = p.Artifact
	}
	if err := r.end(); err != nil {
		return to, fmt.Errorf("reading a strip: %w", err)
	}
	return strip, nil
}

// point reads the point after that of the artifact with ID before.
func (r *reader) point(p *Point, before int64) {
	p.Artifact = r.id(before)
	n, disturbed := r.uvarint(), r.uvarint()
	if n < 1 || n > maxValues || disturbed > n {
		r.fail("artifact %d has %d values, of which %d are disturbed", p.Artifact, n, disturbed)
		return
	}
	p.N, p.Disturbed = int(n), int(disturbed)
	p.Origin = r.origin()
	shape := r.bytes(1)[0]
	if shape == alike {
		v := r.float()
		p.Summary = Summary{v, v, v, v, v, v}
		return
	}
	b := r.bytes(6 * 8)
	at := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])) }
	p.Summary = Summary{at(0), at(1), at(2), at(3), at(4), at(5)}
	if shape != p.shape() {
		r.fail("artifact %d has another shape than its values, or an unknown one", p.Artifact)
	}
}
