// Package columns packs the samples of a batch into some 5 to 13 bytes each, instead of the 40 of a row with three columns.
//
// Values keep all their bits. Each is written as its difference from the one before, by exclusive or, without the zero bytes at
// both ends: an unchanged value takes one byte. Batch indexes are runs. Times are in microseconds; their steps change little.
//
// Each list of samples has exactly one accepted encoding: equal samples are equal bytes. The first byte is the version. Bytes of an
// unknown version are refused, as are bytes that are cut off, have a rest, or claim more than they hold.
//
// The package is pure. It must not know where the bytes are kept, nor what is sampled.
package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Version is the version of the layout.
const Version = 1

// ErrCorrupt reports bytes that are not the encoding of any samples.
var ErrCorrupt = errors.New("no packed samples of this version")

// ErrUneven reports columns of different lengths.
var ErrUneven = errors.New("the columns are not equally long")

// Samples of one series. The three columns are equally long.
type Samples struct {
	Values []float64
	// Batches are batch indexes.
	Batches []int
	// Times are exact to a microsecond: finer parts are dropped.
	Times []time.Time
}

// Pack encodes samples.
func Pack(s Samples) ([]byte, error) {
	n := len(s.Values)
	if len(s.Batches) != n || len(s.Times) != n {
		return nil, fmt.Errorf("%w: %d values, %d batch indexes, %d times", ErrUneven, n, len(s.Batches), len(s.Times))
	}
	b := make([]byte, 0, 2+12*n)
	b = append(b, Version)
	b = binary.AppendUvarint(b, uint64(n))
	b = appendRuns(b, s.Batches)
	b = appendTimes(b, s.Times)
	return appendValues(b, s.Values), nil
}

// appendRuns writes each stretch of equal numbers as its length and its difference from the one before.
func appendRuns(b []byte, numbers []int) []byte {
	before := int64(0)
	for i := 0; i < len(numbers); {
		run := 1
		for i+run < len(numbers) && numbers[i+run] == numbers[i] {
			run++
		}
		b = binary.AppendUvarint(b, uint64(run))
		b = binary.AppendVarint(b, int64(numbers[i])-before)
		before = int64(numbers[i])
		i += run
	}
	return b
}

// appendTimes writes the difference of each step between two times from the step before.
func appendTimes(b []byte, times []time.Time) []byte {
	var before, step int64
	for _, t := range times {
		at := t.UnixMicro()
		b = binary.AppendVarint(b, at-before-step)
		step, before = at-before, at
	}
	return b
}

// appendValues writes the bytes of each value that differ from the one before. The first byte tells how many zero bytes were left
// out before them, and their number.
func appendValues(b []byte, values []float64) []byte {
	before := uint64(0)
	for _, v := range values {
		now := math.Float64bits(v)
		differs := now ^ before
		before = now
		if differs == 0 {
			b = append(b, 0)
			continue
		}
		above, below := bits.LeadingZeros64(differs)/8, bits.TrailingZeros64(differs)/8
		size := 8 - above - below
		b = append(b, byte(above<<4|size))
		for i := below + size; i > below; i-- {
			b = append(b, byte(differs>>(8*(i-1))))
		}
	}
	return b
}

// Unpack decodes samples. It returns an [ErrCorrupt] for bytes that Pack has not written.
func Unpack(b []byte) (Samples, error) {
	r := reader{rest: b}
	if v := r.byte(); r.err == nil && v != Version {
		r.fail("their version is %d", v)
	}
	n := r.count()
	s := Samples{Values: make([]float64, 0, n), Batches: make([]int, 0, n), Times: make([]time.Time, 0, n)}
	r.runs(&s, n)
	r.times(&s, n)
	r.values(&s, n)
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes are left over", len(r.rest))
	}
	if r.err != nil {
		return Samples{}, r.err
	}
	return s, nil
}

// reader reads an encoding. After its first error it reads zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
	r.rest = nil
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail("they are cut off")
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.fail("a number is cut off or too long")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// count reads the number of samples: each takes two bytes at least, one of its time and one of its value.
func (r *reader) count() int {
	v := r.uvarint()
	if v > uint64(len(r.rest)/2) {
		r.fail("%d samples are more than the bytes can hold", v)
		return 0
	}
	return int(v)
}

func (r *reader) runs(s *Samples, n int) {
	before := int64(0)
	for len(s.Batches) < n && r.err == nil {
		run, change := r.uvarint(), r.varint()
		switch {
		case r.err != nil:
			return
		case run == 0 || run > uint64(n-len(s.Batches)):
			r.fail("a run of batch indexes has an impossible length")
			return
		case change == 0 && len(s.Batches) > 0:
			r.fail("two runs of batch indexes are one")
			return
		}
		before += change
		for range run {
			s.Batches = append(s.Batches, int(before))
		}
	}
}

func (r *reader) times(s *Samples, n int) {
	var before, step int64
	for len(s.Times) < n && r.err == nil {
		step += r.varint()
		before += step
		s.Times = append(s.Times, time.UnixMicro(before).UTC())
	}
}

func (r *reader) values(s *Samples, n int) {
	before := uint64(0)
	for len(s.Values) < n && r.err == nil {
		head := r.byte()
		above, size := int(head>>4), int(head&15)
		if head != 0 && (size == 0 || above+size > 8) {
			r.fail("a value has an impossible length")
			return
		}
		differs := uint64(0)
		for i := range size {
			next := r.byte()
			if next == 0 && r.err == nil && (i == 0 || i == size-1) {
				r.fail("a value has zero bytes that belong to none")
				return
			}
			differs = differs<<8 | uint64(next)
		}
		if size > 0 {
			differs <<= 8 * (8 - above - size)
		}
		before ^= differs
		s.Values = append(s.Values, math.Float64frombits(before))
	}
}
