package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Sheet holds the values of all series of one artifact that share a metric and a
// surrounding, by ascending ID.
type Sheet []Series

// Series holds the values of one series, in the order in which they were measured.
type Series struct {
	ID     int64
	Origin Origin
	Values []float64
	// Iterations numbers the values, ascending.
	Iterations []int
	// Disturbed marks the values of disturbed iterations.
	Disturbed []bool
}

// Equal reports whether two series are the same to the last bit of their values.
func (s *Series) Equal(other *Series) bool {
	sameBits := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	return s.ID == other.ID && s.Origin == other.Origin && slices.EqualFunc(s.Values, other.Values, sameBits) &&
		slices.Equal(s.Iterations, other.Iterations) && slices.Equal(s.Disturbed, other.Disturbed)
}

const (
	// gaps is set for a series whose iterations are listed: they do not follow one another.
	gaps = 1 << iota
	// marks is set for a series with disturbed values, whose marks follow as bits.
	marks
)

// Pack encodes a sheet.
//
//	version, origins, number of series; then of each series:
//	step from the ID before, number of values, number of its origin, flags,
//	first iteration, steps of iterations (if gaps), marks (if marks), values
func (s Sheet) Pack() ([]byte, error) {
	var known origins
	size := 0
	for _, series := range s {
		if err := series.check(); err != nil {
			return nil, err
		}
		known.add(series.Origin)
		size += 16 + 8*len(series.Values)
	}
	if !ascending(s, func(s Series) int64 { return s.ID }) {
		return nil, errors.New("the series of a sheet are not in the order of their IDs, or one is there twice")
	}
	b := known.append(append(make([]byte, 0, size), Version))
	b = binary.AppendUvarint(b, uint64(len(s)))
	before := int64(0)
	for _, series := range s {
		b = binary.AppendUvarint(b, uint64(series.ID-before))
		before = series.ID
		b = binary.AppendUvarint(b, uint64(len(series.Values)))
		b = binary.AppendUvarint(b, uint64(known.index[series.Origin]))
		b = series.append(b)
	}
	return b, nil
}

func (s Series) check() error {
	n := len(s.Values)
	if n == 0 || len(s.Iterations) != n || len(s.Disturbed) != n {
		return fmt.Errorf("series %d has %d values, %d iterations and %d marks", s.ID, n, len(s.Iterations), len(s.Disturbed))
	}
	for i, iteration := range s.Iterations {
		if iteration < 0 || i > 0 && iteration <= s.Iterations[i-1] {
			return fmt.Errorf("the iterations of series %d are not ascending", s.ID)
		}
	}
	return nil
}

func (s Series) append(b []byte) []byte {
	n := len(s.Values)
	var flags byte
	if s.Iterations[n-1]-s.Iterations[0] != n-1 {
		flags |= gaps
	}
	bits := make([]byte, (n+7)/8)
	for i, d := range s.Disturbed {
		if d {
			flags |= marks
			bits[i/8] |= 1 << (i % 8)
		}
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(s.Iterations[0]))
	if flags&gaps != 0 {
		for i := 1; i < n; i++ {
			b = binary.AppendUvarint(b, uint64(s.Iterations[i]-s.Iterations[i-1]))
		}
	}
	if flags&marks != 0 {
		b = append(b, bits...)
	}
	for _, v := range s.Values {
		b = appendFloat(b, v)
	}
	return b
}

// maxIteration bounds the number of an iteration. Postgres keeps it as an integer.
const maxIteration = 1<<31 - 1

// UnpackSheet decodes a sheet. Errors wrap [ErrCorrupt].
func UnpackSheet(b []byte) (Sheet, error) { return AppendSheet(nil, b) }

// AppendSheet decodes a sheet behind other series, so that many sheets can be read into the same memory. Series may share the
// numbers of iterations and the marks, which must not be changed. Errors wrap [ErrCorrupt]; with one, the other series are
// returned.
func AppendSheet(to Sheet, b []byte) (Sheet, error) {
	r := reader{rest: b}
	r.head(Version)
	n := r.count(leastSeries)
	whole := slices.Grow(to, n)[:len(to)+n]
	sheet := whole[len(to):]
	values := make([]float64, 0, len(b)/8) // all series share what they are made of
	var iterations []int
	var disturbed []bool
	before := int64(0)
	for i := range sheet {
		s := &sheet[i]
		*s = Series{}
		head := r.series(before)
		if r.err != nil {
			break
		}
		before = head.id
		n, flags := head.n, head.flags
		s.ID, s.Origin = head.id, *head.origin
		at := len(values)
		iterations = r.iterations(iterations[:0], n, flags&gaps != 0)
		disturbed = r.marks(disturbed[:0], n, flags&marks != 0)
		if r.err != nil || len(r.rest) < 8*n {
			r.fail("it is cut off")
			break
		}
		for range n {
			values = append(values, r.float())
		}
		s.Values = values[at : at+n : at+n]
		if i > 0 && slices.Equal(sheet[i-1].Iterations, iterations) && slices.Equal(sheet[i-1].Disturbed, disturbed) { // as mostly
			s.Iterations, s.Disturbed = sheet[i-1].Iterations, sheet[i-1].Disturbed
		} else {
			s.Iterations, s.Disturbed = slices.Clone(iterations), slices.Clone(disturbed)
		}
	}
	if err := r.end(); err != nil {
		return to, fmt.Errorf("reading a sheet: %w", err)
	}
	return whole, nil
}

// leastSeries is the size of a series with one value, in bytes.
const leastSeries = 13

// series reads the head of the series after the one with ID before.
func (r *reader) series(before int64) seriesHead {
	h := seriesHead{id: r.id(before), n: r.count(8)}
	if h.n == 0 {
		r.fail("series %d has no values", h.id)
	}
	h.origin = r.origin()
	if h.flags = r.bytes(1)[0]; h.flags&^(gaps|marks) != 0 {
		r.fail("series %d has unknown flags", h.id)
	}
	return h
}

// passIterations passes over the numbers of iterations.
func (r *reader) passIterations(n int, listed bool) {
	r.uvarint()
	if listed {
		for range n - 1 {
			r.uvarint()
		}
	}
}

func (r *reader) iterations(to []int, n int, listed bool) []int {
	first := r.uvarint()
	if first > maxIteration {
		r.fail("iteration %d is too large", first)
	}
	at := int(first)
	to = append(to, at)
	steps := 0
	for i := 1; i < n && r.err == nil; i++ {
		step := uint64(1)
		if listed {
			step = r.uvarint()
		}
		if step == 0 || step > maxIteration || at+int(step) > maxIteration {
			r.fail("its iterations are not ascending")
		}
		at += int(step)
		steps += int(step)
		to = append(to, at)
	}
	if listed && steps == n-1 {
		r.fail("iterations without gaps are listed")
	}
	return to
}

func (r *reader) marks(to []bool, n int, listed bool) []bool {
	if !listed {
		return append(to, make([]bool, n)...)
	}
	bits, some := r.bytes((n+7)/8), false
	for i := range 8 * len(bits) {
		marked := bits[i/8]&(1<<(i%8)) != 0
		if i < n {
			some = some || marked
			to = append(to, marked)
		} else if marked {
			r.fail("a mark belongs to no value")
		}
	}
	if !some {
		r.fail("marks are listed, but none is set")
	}
	return to
}
