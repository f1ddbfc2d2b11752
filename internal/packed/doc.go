// Package packed lays out results as bytes, so that a page reads thousands of series in one
// row instead of a row for each value. The bytes are the same results once more: nothing
// that their rows do not say.
//
// A [Sheet] holds the values of all series of one artifact, a [Strip] the history of one
// series. Both name series and artifacts by the IDs of the record. Floating-point numbers
// keep all their bits, so NaN, infinities and -0 come back as they went in.
//
// Each value has one encoding in a version, and no other is accepted: equal results are equal
// bytes. The first byte is the version; bytes of an unknown one are refused, as are bytes
// that are cut off, are left over, or claim more than they hold. Checksums are left to
// Postgres.
//
// The package is pure. It must not know where the bytes are kept.
package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
)

// Versions of the layouts.
const (
	// Version belongs to sheets. Strips of this version are read as well.
	Version = 1
	// StripVersion belongs to strips.
	StripVersion = 2
)

// ErrCorrupt reports bytes that encode no value.
var ErrCorrupt = errors.New("not a packed value of this version")

// Origin is shared by the series of one run.
type Origin struct {
	Kind bench.JobKind
	// Segment holds the settings of the machine.
	Segment bench.Segment
	// Suite is the content hash of the suite; empty: there was none.
	Suite string
	// DisturbedBy is the most frequent cause of disturbed iterations; empty: there are none.
	DisturbedBy string
}

// origins numbers origins in the order of their first use.
type origins struct {
	list  []Origin
	index map[Origin]int
}

func (o *origins) add(origin Origin) {
	if _, known := o.index[origin]; known {
		return
	}
	if o.index == nil {
		o.index = make(map[Origin]int)
	}
	o.index[origin] = len(o.list)
	o.list = append(o.list, origin)
}

func (o *origins) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(o.list)))
	for _, origin := range o.list {
		for _, s := range []string{string(origin.Kind), string(origin.Segment), origin.Suite, origin.DisturbedBy} {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
	}
	return b
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// reader reads an encoding. After its first error it reads zeros.
type reader struct {
	rest []byte
	err  error
	// origins are numbered; used counts those that were used so far, and last is the number of the last one.
	origins    []Origin
	used, last int
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
	r.rest = nil
}

func (r *reader) uvarint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 { // as most are
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.fail("a number is cut off or too long")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count reads the number of items that take at least size bytes each.
func (r *reader) count(size int) int {
	v := r.uvarint()
	if v > uint64(len(r.rest)/size) {
		r.fail("%d items are more than the bytes can hold", v)
		return 0
	}
	return int(v)
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.fail("it is cut off")
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes(r.count(1))) }

func (r *reader) float() float64 { return math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8))) }

// id reads an ID above the one before.
func (r *reader) id(before int64) int64 {
	step := r.uvarint()
	if step == 0 || step > uint64(math.MaxInt64-before) {
		r.fail("IDs are not positive and ascending")
		return before
	}
	return before + int64(step)
}

// head reads the version, which must be one of some, and the origins.
func (r *reader) head(versions ...byte) (version byte) {
	version = r.bytes(1)[0]
	if r.err == nil && !slices.Contains(versions, version) {
		r.fail("its version is %d", version)
	}
	r.origins = make([]Origin, r.count(4))
	var known map[Origin]bool // most strips have one origin, and need none
	if len(r.origins) > 1 {
		known = make(map[Origin]bool, len(r.origins))
	}
	for i := range r.origins {
		o := Origin{Kind: bench.JobKind(r.text()), Segment: bench.Segment(r.text()), Suite: r.text(), DisturbedBy: r.text()}
		if known[o] {
			r.fail("an origin is there twice")
		}
		if r.origins[i] = o; known != nil {
			known[o] = true
		}
	}
	return version
}

// origin reads the number of an origin. Each origin is used, and they are first used in the
// order of their numbers.
func (r *reader) origin() *Origin {
	n := r.uvarint()
	if n > uint64(r.used) || n >= uint64(len(r.origins)) {
		r.fail("origin %d is not there", n)
		return &Origin{}
	}
	r.used, r.last = max(r.used, int(n)+1), int(n)
	return &r.origins[n]
}

func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes are left over", len(r.rest))
	}
	if r.err == nil && r.used < len(r.origins) {
		r.fail("an origin is used by nothing")
	}
	return r.err
}

// ascending reports whether IDs are positive and ascending.
func ascending[T any](list []T, id func(T) int64) bool {
	before := int64(0)
	return !slices.ContainsFunc(list, func(v T) bool {
		wrong := id(v) <= before
		before = id(v)
		return wrong
	})
}
