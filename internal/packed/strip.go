package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxPoints bounds the points of a strip: at most 53 bytes each, so that one takes two pages of Postgres or three.
const MaxPoints = 320

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

// floats returns a summary in the order of its columns.
func (s Summary) floats() [columns]float64 {
	return [...]float64{s.Min, s.LowerQuartile, s.UpperQuartile, s.Median, s.Max, s.Mean}
}

// columns is the number of floats of a summary.
const columns = 6

// spread reports whether a summary is not six times the same value, as that of an exact metric or of a single value is.
func (s Summary) spread() bool {
	for _, v := range s.floats() {
		if math.Float64bits(v) != math.Float64bits(s.Min) {
			return true
		}
	}
	return false
}

// Fields are the fields of a [Summary] that a reader needs. Each includes those before it, AllFields all.
type Fields int

const (
	AllFields Fields = iota
	MinField
	// QuartileFields are Min, LowerQuartile and UpperQuartile.
	QuartileFields
	// MedianFields are those and Median.
	MedianFields
)

// columns returns the number of columns with these fields.
func (f Fields) columns() int {
	return [...]int{AllFields: columns, MinField: 1, QuartileFields: 3, MedianFields: 4}[f]
}

// With returns the fields of both.
func (f Fields) With(more Fields) Fields {
	if f == AllFields || more == AllFields {
		return AllFields
	}
	return max(f, more)
}

// Spare returns the number of bytes at the end of a strip that a reader of these fields does without, for each point that
// [Strip.Spread] counts.
func (f Fields) Spare() int { return 8 * (columns - f.columns()) }

// Spread counts the points whose values differ. It is known only if all values are finite: whoever reads some fields would not
// notice others.
func (s Strip) Spread() (points int, known bool) {
	for i := range s {
		if !finite(s[i].Min) || !finite(s[i].Max) {
			return 0, false
		}
		if s[i].spread() {
			points++
		}
	}
	return points, true
}

func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

// summarize sums up at least one value, as [Summarize] does, but may leave out all but some fields if the values are finite.
func summarize(values []float64, fields Fields) Summary {
	if fields != MinField {
		return Summarize(values)
	}
	s := Summary{Min: values[0]}
	for _, v := range values {
		if !finite(v) {
			return Summarize(values)
		}
		if v < s.Min {
			s.Min = v
		}
	}
	return s
}

// counted holds what points in a row share.
type counted struct {
	n, disturbed, origin uint64
}

// Pack encodes a strip.
//
//	version, origins, number of points;
//	of each point the step from the ID of the artifact before;
//	runs of points that share the rest of these: their number, the number of values and of disturbed ones, the number of the origin;
//	a bit for each point that is spread;
//	the minima of all points, then of the spread ones the lower quartiles, the upper quartiles, the medians, the maxima and the means
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
	b := known.append(append(make([]byte, 0, 64+52*len(s)), StripVersion))
	b = binary.AppendUvarint(b, uint64(len(s)))
	before := int64(0)
	for i := range s {
		b = binary.AppendUvarint(b, uint64(s[i].Artifact-before))
		before = s[i].Artifact
	}
	counts := func(i int) counted {
		return counted{uint64(s[i].N), uint64(s[i].Disturbed), uint64(known.index[*s[i].Origin])} //nolint:gosec // none is negative
	}
	for i := 0; i < len(s); {
		one, from := counts(i), i
		for i < len(s) && counts(i) == one {
			i++
		}
		for _, v := range []uint64{uint64(i - from), one.n, one.disturbed, one.origin} { //nolint:gosec // it is positive
			b = binary.AppendUvarint(b, v)
		}
	}
	bits := make([]byte, (len(s)+7)/8)
	for i := range s {
		if s[i].spread() {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	b = append(b, bits...)
	for column := range columns {
		for i := range s {
			if column == 0 || bits[i/8]&(1<<(i%8)) != 0 {
				b = appendFloat(b, s[i].floats()[column])
			}
		}
	}
	return b, nil
}

// maxValues bounds the number of values of a point; no series has nearly as many.
const maxValues = 1 << 31

// UnpackStrip decodes a strip. Errors wrap [ErrCorrupt].
func UnpackStrip(b []byte) (Strip, error) {
	strip, err := appendStrip(nil, b, stripReading{last: math.MaxInt64, strict: true})
	if err != nil {
		return nil, err
	}
	return strip, nil
}

// AppendPoints decodes the points of a strip that belong to artifacts from first to last, behind other points: many strips
// can be read into the same memory. The bytes that some fields do without may be missing, see [Fields.Spare]; then other
// fields are not set. Errors wrap [ErrCorrupt]; with one, the other points are returned.
func AppendPoints(to Strip, b []byte, first, last int64, fields Fields) (Strip, error) {
	return appendStrip(to, b, stripReading{first: first, last: last, fields: fields})
}

// stripReading says what is read of a strip.
type stripReading struct {
	first, last int64
	fields      Fields
	// strict is set if the strip must be complete and as [Strip.Pack] writes it.
	strict bool
}

func appendStrip(to Strip, b []byte, want stripReading) (Strip, error) {
	r := reader{rest: b}
	version := r.head(Version, StripVersion)
	n := r.count(9)
	if n > MaxPoints {
		r.fail("%d points are too many", n)
	}
	var strip Strip
	if version == Version {
		strip = r.pointByPoint(to, n, want)
	} else {
		strip = r.points(to, n, want)
	}
	if err := r.end(); err != nil {
		return to, fmt.Errorf("reading a strip: %w", err)
	}
	return strip, nil
}

// points reads the points of a strip, of which there are n.
func (r *reader) points(to Strip, n int, want stripReading) Strip {
	if r.err != nil {
		return to
	}
	strip := slices.Grow(to, n)
	from, id := 0, int64(0) // the number of the first point that is wanted
	for i := range n {
		if id = r.id(id); id < want.first {
			from = i + 1
		} else if id <= want.last {
			strip = append(strip, Point{Artifact: id})
		}
	}
	points := strip[len(to):]
	r.counts(points, from, n)
	bits := r.bytes((n + 7) / 8)
	if r.err != nil {
		return to
	}
	spread, at := 0, 0 // points that are spread: all, and those before the first that is wanted
	for i := range 8 * len(bits) {
		if bits[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		if i >= n {
			r.fail("a point that is not there is spread")
		}
		if spread++; i < from {
			at++
		}
	}
	of := [columns][]byte{r.bytes(8 * n)}
	there := 1
	for ; there < columns && (len(r.rest) > 0 || there < want.fields.columns()); there++ {
		of[there] = r.bytes(8 * spread)
	}
	if r.err != nil {
		return to
	}
	float := func(column, i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(of[column][8*i:])) }
	for k := range points {
		p := &points[k]
		i := from + k
		v := float(0, i)
		if bits[i/8]&(1<<(i%8)) == 0 {
			p.Summary = Summary{v, v, v, v, v, v}
			continue
		}
		p.Min = v
		if there >= QuartileFields.columns() {
			p.LowerQuartile, p.UpperQuartile = float(1, at), float(2, at)
		}
		if there >= MedianFields.columns() {
			p.Median = float(3, at)
		}
		if there == columns {
			p.Max, p.Mean = float(4, at), float(5, at)
		}
		if at++; want.strict && !p.spread() {
			r.fail("artifact %d is not spread", p.Artifact)
		}
	}
	return strip
}

// counts reads what n points have besides their summaries, and sets it in the points from a number on.
func (r *reader) counts(points Strip, from, n int) {
	var before counted
	for i := 0; i < n && r.err == nil; {
		length := r.uvarint()
		one := counted{n: r.uvarint(), disturbed: r.uvarint()}
		origin := r.origin()
		one.origin = uint64(r.last) //nolint:gosec // it is not negative
		switch {
		case length < 1 || length > uint64(n-i): //nolint:gosec // it is positive
			r.fail("%d points in a row are too many or too few", length)
			return
		case one.n < 1 || one.n > maxValues || one.disturbed > one.n:
			r.fail("there are points of %d values, of which %d are disturbed", one.n, one.disturbed)
			return
		case i > 0 && one == before:
			r.fail("points that share their counts are not in one row")
			return
		}
		before = one
		end := i + int(length) //nolint:gosec // it is at most n
		for k := max(i, from); k < end && k-from < len(points); k++ {
			p := &points[k-from]
			p.N, p.Disturbed, p.Origin = int(one.n), int(one.disturbed), origin //nolint:gosec // they are bounded
		}
		i = end
	}
}

// pointByPoint reads a strip of the first version: of each point the step from the ID of the artifact before, the number of
// values and of disturbed ones, the number of its origin, whether it is spread, and one float or six.
func (r *reader) pointByPoint(to Strip, n int, want stripReading) Strip {
	id := int64(0)
	for range n {
		if r.err != nil {
			return to
		}
		id = r.id(id)
		p := Point{Artifact: id}
		values, disturbed := r.uvarint(), r.uvarint()
		if values < 1 || values > maxValues || disturbed > values {
			r.fail("artifact %d has %d values, of which %d are disturbed", id, values, disturbed)
			return to
		}
		p.N, p.Disturbed, p.Origin = int(values), int(disturbed), r.origin() //nolint:gosec // they are bounded
		shape := r.bytes(1)[0]
		if shape > 1 {
			r.fail("artifact %d has an unknown shape", id)
		}
		if v := r.float(); shape == 0 {
			p.Summary = Summary{v, v, v, v, v, v}
		} else {
			p.Summary = Summary{v, r.float(), r.float(), r.float(), r.float(), r.float()}
		}
		if id >= want.first && id <= want.last {
			to = append(to, p)
		}
	}
	return to
}
