package flame

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// A self-profile (file format 9 of rustc's library measureme) consists of pages, whose contents make up
// three streams. Events refer to strings, strings to addresses in the stream of their data.
const (
	selfProfileMagic   = "MMPD"
	selfProfileVersion = 9
	pageHeader         = 5 // stream and length
	streamHeader       = 8 // magic and version; addresses count it
	eventSize          = 32
	indexEntrySize     = 16

	// Identifiers below have their address in the index, others are an address plus this number.
	firstRegularString = 100_000_003

	stringReference = 0xfe // an identifier of eight bytes follows
	stringEnd       = 0xff
	// maxStringParts bounds the parts that a string refers to: references can unfold without end.
	maxStringParts = 10_000

	// Events whose second payload is one of these have no duration.
	instant = 1<<48 - 1
	integer = 1<<48 - 2
)

// MaxSelfProfile bounds the format self-profile in bytes; it is read as a whole.
const MaxSelfProfile = 256 << 20

// selfProfile holds the streams of a file, without pages.
type selfProfile struct {
	events, text, index []byte
	addresses           map[uint64]uint64
	names               map[uint64]string
}

// interval is an activity of the compiler in a thread, in nanoseconds.
type interval struct {
	start, end uint64
	thread     uint32
	number     int // in the file; activities are recorded when they end
	name       string
	inner      uint64 // time of the activities within
}

// parseSelfProfile reads the output of rustc's -Zself-profile. Nested activities become stacks,
// those of all threads together. Values are the activity's own time.
func parseSelfProfile(r io.Reader) (*profile.Profile, error) {
	data, err := io.ReadAll(&boundedReader{r: r, left: MaxSelfProfile, most: MaxSelfProfile})
	if err != nil {
		return nil, err
	}
	f, err := openSelfProfile(data)
	if err != nil {
		return nil, err
	}
	activities, err := f.activities()
	if err != nil {
		return nil, err
	}
	b := newBuilder(&profile.ValueType{Type: "activities", Unit: "count"}, &profile.ValueType{Type: "time", Unit: "nanoseconds"})
	if err := addNested(b, activities); err != nil {
		return nil, err
	}
	return b.done()
}

func openSelfProfile(data []byte) (*selfProfile, error) {
	if len(data) < streamHeader || !bytes.HasPrefix(data, []byte(selfProfileMagic)) {
		return nil, fmt.Errorf("%w: it does not begin with MMPD, as .mm_profdata files do", ErrNotAProfile)
	}
	if v := binary.LittleEndian.Uint32(data[4:]); v != selfProfileVersion {
		return nil, fmt.Errorf("%w: its file format is %d, only %d can be read; use another nightly toolchain", ErrNotAProfile, v, selfProfileVersion)
	}
	f := &selfProfile{addresses: map[uint64]uint64{}, names: map[uint64]string{}}
	streams := []*[]byte{&f.events, &f.text, &f.index}
	for at := streamHeader; at < len(data); {
		if len(data)-at < pageHeader {
			return nil, fmt.Errorf("%w: byte %d: the file ends within the header of a page", ErrNotAProfile, at)
		}
		stream, length := int(data[at]), int(binary.LittleEndian.Uint32(data[at+1:]))
		switch {
		case stream >= len(streams):
			return nil, fmt.Errorf("%w: byte %d: stream %d is not known", ErrNotAProfile, at, stream)
		case length > len(data)-at-pageHeader:
			return nil, fmt.Errorf("%w: byte %d: a page of %d bytes is longer than the rest of the file; was the compiler killed?", ErrNotAProfile, at, length)
		}
		at += pageHeader
		*streams[stream] = append(*streams[stream], data[at:at+length]...)
		at += length
	}
	for i, magic := range []string{"MMES", "MMSD", "MMSI"} {
		if s := *streams[i]; len(s) < streamHeader || string(s[:4]) != magic {
			return nil, fmt.Errorf("%w: stream %d does not begin with %s", ErrNotAProfile, i, magic)
		}
	}
	if (len(f.events)-streamHeader)%eventSize != 0 || (len(f.index)-streamHeader)%indexEntrySize != 0 {
		return nil, fmt.Errorf("%w: its last event or string is incomplete; was the compiler killed?", ErrNotAProfile)
	}
	for entry := range slices.Chunk(f.index[streamHeader:], indexEntrySize) {
		f.addresses[binary.LittleEndian.Uint64(entry)] = binary.LittleEndian.Uint64(entry[8:])
	}
	return f, nil
}

// activities lists the events that have a duration.
func (f *selfProfile) activities() ([]interval, error) {
	var all []interval
	for i := range (len(f.events) - streamHeader) / eventSize {
		e := f.events[streamHeader+i*eventSize:]
		// Both payloads have 48 bits; the upper 16 of each share a word.
		upper := uint64(binary.LittleEndian.Uint32(e[28:]))
		start := uint64(binary.LittleEndian.Uint32(e[20:])) | upper>>16<<32
		end := uint64(binary.LittleEndian.Uint32(e[24:])) | upper&0xffff<<32
		if end == instant || end == integer {
			continue
		}
		if end < start {
			return nil, fmt.Errorf("%w: event %d ends before it begins", ErrNotAProfile, i)
		}
		name, err := f.activity(binary.LittleEndian.Uint64(e), binary.LittleEndian.Uint64(e[8:]))
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		all = append(all, interval{start: start, end: end, thread: binary.LittleEndian.Uint32(e[16:]), number: i, name: name})
	}
	return all, nil
}

// unnamedActivity stands for queries that rustc numbers but does not name: those whose results it
// loads from an earlier compilation.
const unnamedActivity = "[query without a name]"

// activity names an event: by its label, without arguments, and by its kind unless it is a
// query or a plain activity, because other kinds have the labels of queries as well.
func (f *selfProfile) activity(kind, event uint64) (string, error) {
	label := unnamedActivity
	if _, named := f.addresses[event]; named || event >= firstRegularString {
		var err error
		if label, err = f.name(event); err != nil {
			return "", err
		}
	}
	label, _, _ = strings.Cut(label, "\x1e") // arguments follow
	k, err := f.name(kind)
	if err != nil {
		return "", err
	}
	if k != "Query" && k != "GenericActivity" {
		label += " (" + k + ")"
	}
	return label, nil
}

func (f *selfProfile) name(id uint64) (string, error) {
	if known, ok := f.names[id]; ok {
		return known, nil
	}
	parts := 0
	text, err := f.appendString(nil, id, &parts)
	if err != nil {
		return "", err
	}
	name := cut(string(text))
	f.names[id] = name
	return name, nil
}

func (f *selfProfile) appendString(text []byte, id uint64, parts *int) ([]byte, error) {
	if *parts++; *parts > maxStringParts {
		return nil, fmt.Errorf("%w: string %d refers to more than %d others", ErrNotAProfile, id, maxStringParts)
	}
	at, known := f.addresses[id]
	if !known {
		if id < firstRegularString {
			return nil, fmt.Errorf("%w: string %d has no address", ErrNotAProfile, id)
		}
		at = id - firstRegularString
	}
	if at < streamHeader || at >= uint64(len(f.text)) {
		return nil, fmt.Errorf("%w: string %d has its address %d outside the strings", ErrNotAProfile, id, at)
	}
	for rest := f.text[at:]; len(text) < MaxName; {
		i := slices.IndexFunc(rest, func(b byte) bool { return b == stringReference || b == stringEnd })
		if i < 0 {
			return nil, fmt.Errorf("%w: string %d has no end", ErrNotAProfile, id)
		}
		text = append(text, rest[:min(i, MaxName)]...)
		if rest[i] == stringEnd {
			break
		}
		if rest = rest[i+1:]; len(rest) < 8 {
			return nil, fmt.Errorf("%w: string %d ends within a reference", ErrNotAProfile, id)
		}
		var err error
		if text, err = f.appendString(text, binary.LittleEndian.Uint64(rest), parts); err != nil {
			return nil, err
		}
		rest = rest[8:]
	}
	return text, nil
}

// addNested adds the own time of each activity, with the activities around it in its thread as callers.
func addNested(b *builder, activities []interval) error {
	// Of activities that begin together, the longest is the outer one; of equal ones, the one that ended, and
	// was recorded, last.
	slices.SortFunc(activities, func(a, b interval) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(b.number, a.number))
	})
	var open []interval
	end := func() error {
		last := open[len(open)-1]
		stack := make([]frame, 0, min(len(open), MaxDepth))
		for _, a := range slices.Backward(open[max(0, len(open)-MaxDepth):]) {
			stack = append(stack, frame{name: a.name})
		}
		open = open[:len(open)-1]
		return b.add(stack, 1, int64(last.end-last.start-last.inner))
	}
	for _, a := range activities {
		for len(open) > 0 && (open[len(open)-1].thread != a.thread || open[len(open)-1].end <= a.start) {
			if err := end(); err != nil {
				return err
			}
		}
		if len(open) > 0 {
			outer := &open[len(open)-1]
			// An activity that outlasts the one around it ends with that one.
			a.end = min(a.end, outer.end)
			outer.inner += a.end - a.start
		}
		open = append(open, a)
	}
	for len(open) > 0 {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}
