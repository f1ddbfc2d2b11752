package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
)

// Layout of a digest: a version, [wholeBytes] of a hash of all rows, and [digestTables] tables of checksums. A row counts in
// one checksum of each table, which its ID chooses. All is written in base64, so that a checksum has two characters.
const (
	digestVersion = "1"
	wholeBytes    = 6
	digestTables  = 3
	// leastChecksums and mostChecksums bound the checksums of one table; in between, there is one for each row. With 128, three
	// in a thousand digests miss the change of a given row. If five of 5,000 rows have changed, less than one other is taken
	// for changed on average. The hash of all rows shows that anything has changed.
	leastChecksums = 8
	mostChecksums  = 128
)

var digestText = base64.RawURLEncoding

// errDigest reports a text that is not a digest.
var errDigest = errors.New("it is not a digest of this version; copy the link of a comparison again")

// tables are the checksums of rows, of 12 bits each.
type tables [digestTables][]uint16

// digested is one row's part in a digest.
type digested struct {
	content [sha256.Size]byte
	places  [digestTables]int
}

// digestOf uses the memory of text for what it sums up.
func digestOf(r *Row, checksums int, text []byte) (d digested, used []byte) {
	text = appendRowID(text[:0], &r.Key)
	id := sha256.Sum256(text)
	for i := range d.places {
		d.places[i] = int(binary.BigEndian.Uint32(id[4*i:]) % uint32(checksums)) //nolint:gosec // at most [mostChecksums]
	}
	text = append(text[:0], id[:]...)
	if r.Verdict != nil {
		text = append(text, r.Verdict.String()...)
	} else {
		text = append(text, "explains"...)
	}
	text = append(append(text, ' '), r.Direction...)
	text = strconv.AppendBool(append(text, ' '), r.Provisional)
	for _, n := range [...]float64{float64(r.A.N), r.A.Value, float64(r.B.N), r.B.Value} {
		text = binary.BigEndian.AppendUint64(text, math.Float64bits(n))
	}
	if t := r.Turns; t != nil {
		for _, n := range [...]float64{float64(t.Pairs), float64(t.Sessions), t.Change} {
			text = binary.BigEndian.AppendUint64(text, math.Float64bits(n))
		}
	}
	d.content = sha256.Sum256(text)
	return d, text
}

func summed(rows []Row, checksums int) (whole [wholeBytes]byte, t tables, of []digested) {
	for i := range t {
		t[i] = make([]uint16, checksums)
	}
	of = make([]digested, len(rows))
	type place struct {
		start uint64 // of the content
		row   int
	}
	all := make([]place, len(rows))
	var text []byte
	for k := range rows {
		d := &of[k]
		*d, text = digestOf(&rows[k], checksums, text)
		all[k] = place{binary.BigEndian.Uint64(d.content[:]), k}
		for i, place := range d.places {
			t[i][place] ^= binary.BigEndian.Uint16(d.content[2*i:]) & 0xfff
		}
	}
	slices.SortFunc(all, func(x, y place) int {
		if c := cmp.Compare(x.start, y.start); c != 0 {
			return c
		}
		return bytes.Compare(of[x.row].content[:], of[y.row].content[:])
	})
	sum := sha256.New()
	for _, p := range all {
		sum.Write(of[p.row].content[:])
	}
	copy(whole[:], sum.Sum(nil))
	return whole, t, of
}

// Digest sums up the rows of a comparison in at most 800 characters for an address: their values and verdicts, in any
// order. [Since] uses it to tell which rows have changed.
func Digest(rows []Row) string {
	even := (len(rows) + 1) / 2 * 2 // two checksums are three bytes
	whole, t, _ := summed(rows, min(max(even, leastChecksums), mostChecksums))
	packed := whole[:]
	for _, table := range t {
		for pair := range slices.Chunk(table, 2) {
			first, second := pair[0], pair[1]
			packed = append(packed, byte(first>>4), byte(first<<4)|byte(second>>8), byte(second)) //nolint:gosec // these are the parts of 12 bits
		}
	}
	return digestVersion + digestText.EncodeToString(packed)
}

// Changed says what has changed since a digest was taken.
type Changed struct {
	// Same is set if nothing has.
	Same bool
	// Rows are those with other values or another verdict, new ones, and possibly a few others.
	Rows []Row
	// Gone is set if rows are no longer there.
	Gone bool
}

// Since tells which rows have changed since a digest was taken of them. The error is for a text that is not a digest.
func Since(digest string, rows []Row) (Changed, error) {
	if len(digest) == 0 || digest[:1] != digestVersion {
		return Changed{}, errDigest
	}
	packed, err := digestText.Strict().DecodeString(digest[1:])
	const pair = 3 // bytes
	size := len(packed) - wholeBytes
	if err != nil || size%(pair*digestTables) != 0 || size < pair*digestTables*leastChecksums/2 || size > pair*digestTables*mostChecksums/2 {
		return Changed{}, errDigest
	}
	var before tables
	for i, at := 0, wholeBytes; at < len(packed); at += pair {
		if len(before[i])*digestTables*pair == 2*size {
			i++
		}
		before[i] = append(before[i], uint16(packed[at])<<4|uint16(packed[at+1])>>4, uint16(packed[at+1]&0xf)<<8|uint16(packed[at+2]))
	}
	whole, now, of := summed(rows, len(before[0]))
	if bytes.Equal(whole[:], packed[:wholeBytes]) {
		return Changed{Same: true}, nil
	}
	var out Changed
	var explained tables
	for i := range explained {
		explained[i] = make([]uint16, len(before[i]))
	}
	for k, r := range rows {
		differs := true
		for i, place := range of[k].places {
			differs = differs && before[i][place] != now[i][place]
		}
		if !differs {
			continue
		}
		out.Rows = append(out.Rows, r)
		for i, place := range of[k].places {
			explained[i][place] = 1
		}
	}
	for i := range before {
		for place := range before[i] {
			out.Gone = out.Gone || before[i][place] != now[i][place] && explained[i][place] == 0
		}
	}
	return out, nil
}
