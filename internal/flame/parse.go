package flame

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/pprof/profile"
)

// Format names an output format of profilers.
type Format string

// Formats that [Parse] reads.
const (
	// Pprof is the protocol buffer of Go's profilers, compressed or not.
	Pprof Format = "pprof"
	// PerfScript is the text of 'perf script', with at least the fields comm, tid, time, event,
	// ip, sym and dso. Without the field period, each sample counts once.
	PerfScript Format = "perf-script"
	// Callgrind is the file of callgrind, or of cachegrind, which knows no calls.
	Callgrind Format = "callgrind"
	// Folded has a line per stack: frames from the outermost, separated by semicolons, a space
	// and a number.
	Folded Format = "folded"
	// SelfProfile is the .mm_profdata file that rustc's -Zself-profile writes.
	SelfProfile Format = "self-profile"
	// DHAT is the file of valgrind's DHAT, which knows where memory was allocated.
	DHAT Format = "dhat"
	// Firefox is a profile of the Firefox Profiler in its processed form, compressed or not: samply writes it.
	Firefox Format = "firefox"
)

// Formats lists the formats of [Parse].
func Formats() []Format {
	return []Format{Pprof, PerfScript, Callgrind, Folded, SelfProfile, DHAT, Firefox}
}

// ErrNotAProfile reports input that is not in its format, or exceeds the bounds of a profile.
var ErrNotAProfile = errors.New("not a profile")

// ErrNoSamples reports a profile without samples. It is an [ErrNotAProfile].
var ErrNoSamples = fmt.Errorf("%w: it has no samples; the command may have been too short", ErrNotAProfile)

// Bounds of one profile. A perf recording of five minutes at 999 Hz on 16 CPUs stays below all.
const (
	// MaxSize bounds text in bytes; it is read line by line.
	MaxSize = 1 << 30
	// MaxPprof bounds the formats pprof, dhat and firefox in bytes, decompressed; they are read as a whole.
	MaxPprof = 64 << 20
	// MaxStacks bounds the number of different stacks.
	MaxStacks = 500_000
	// MaxDepth bounds the frames of a stack; a deeper one keeps the innermost.
	MaxDepth = 512
	// MaxName bounds the bytes of a function's name; a longer one is cut.
	MaxName = 1024
	// MaxFunctions bounds the number of different functions.
	MaxFunctions = 500_000
	maxLine      = 64 << 10
)

// Parse reads a profile. The error wraps [ErrNotAProfile] and names the line, unless
// reading itself failed.
func Parse(format Format, r io.Reader) (*profile.Profile, error) {
	bounded := &boundedReader{r: r, left: MaxSize, most: MaxSize}
	var p *profile.Profile
	var err error
	switch format {
	case Pprof:
		p, err = parsePprof(bounded)
	case PerfScript:
		p, err = parsePerfScript(bounded)
	case Callgrind:
		p, err = parseCallgrind(bounded)
	case Folded:
		p, err = parseFolded(bounded)
	case SelfProfile:
		p, err = parseSelfProfile(bounded)
	case DHAT:
		p, err = parseDHAT(bounded)
	case Firefox:
		p, err = parseFirefox(bounded)
	default:
		return nil, fmt.Errorf("%w: format %q is not known; use %s", ErrNotAProfile, format, names(Formats()))
	}
	if err != nil {
		return nil, fmt.Errorf("reading a profile in the format %s: %w", format, err)
	}
	if len(p.Sample) == 0 {
		return nil, ErrNoSamples
	}
	return p, nil
}

func names(formats []Format) string {
	var words []string
	for _, f := range formats {
		words = append(words, string(f))
	}
	return strings.Join(words, ", ")
}

// boundedReader fails instead of ending when more than its bytes are read.
type boundedReader struct {
	r          io.Reader
	left, most int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: it is longer than %d bytes", ErrNotAProfile, b.most)
	}
	p = p[:min(int64(len(p)), b.left)]
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}

// unpack reads data that may be compressed by gzip.
func unpack(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	if head, _ := buffered.Peek(2); !bytes.Equal(head, []byte(gzipMagic)) {
		return buffered, nil
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAProfile, err)
	}
	return unpacked, nil
}

const gzipMagic = "\x1f\x8b"

func parsePprof(r io.Reader) (*profile.Profile, error) {
	r, err := unpack(r)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(&boundedReader{r: r, left: MaxPprof, most: MaxPprof})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAProfile, err)
	}
	p, err := profile.ParseUncompressed(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAProfile, err)
	}
	if err := p.CheckValid(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAProfile, err)
	}
	switch {
	case len(p.SampleType) == 0:
		return nil, fmt.Errorf("%w: it does not say what its samples count", ErrNotAProfile)
	case len(p.Sample) > MaxStacks:
		return nil, fmt.Errorf("%w: it has %d stacks, more than %d", ErrNotAProfile, len(p.Sample), MaxStacks)
	case len(p.Function) > MaxFunctions:
		return nil, fmt.Errorf("%w: it has %d functions, more than %d", ErrNotAProfile, len(p.Function), MaxFunctions)
	}
	for _, s := range p.Sample {
		s.Location = s.Location[:min(len(s.Location), MaxDepth)]
	}
	for _, f := range p.Function {
		f.Name = readable(f.Name)
	}
	return p, nil
}

// lines reads lines with their numbers, counting from 1.
type lines struct {
	*bufio.Scanner
	number int
}

func newLines(r io.Reader) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), maxLine)
	return &lines{Scanner: s}
}

func (l *lines) next() bool {
	l.number++
	return l.Scan()
}

func (l *lines) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrNotAProfile, l.number, fmt.Sprintf(format, args...))
}

// failure returns why there are no more lines, or nil at their end.
func (l *lines) failure() error {
	switch err := l.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return l.wrong("it is longer than %d bytes", maxLine)
	case err != nil:
		return fmt.Errorf("line %d: %w", l.number, err)
	}
	return nil
}

// builder collects stacks, each once.
type builder struct {
	p         *profile.Profile
	locations map[frame]*profile.Location
	functions map[frame]*profile.Function
	mappings  map[string]*profile.Mapping
	stacks    map[string]*profile.Sample
	key       []byte
}

// frame is a function in an object file.
type frame struct{ name, file, object string }

func newBuilder(types ...*profile.ValueType) *builder {
	return &builder{
		p:         &profile.Profile{SampleType: types},
		locations: make(map[frame]*profile.Location), functions: make(map[frame]*profile.Function),
		mappings: make(map[string]*profile.Mapping), stacks: make(map[string]*profile.Sample),
	}
}

func (b *builder) location(f frame) (*profile.Location, error) {
	if at, known := b.locations[f]; known {
		return at, nil
	}
	plain := frame{name: readable(f.name), file: cut(f.file)}
	function, known := b.functions[plain]
	if !known {
		if len(b.p.Function) == MaxFunctions {
			return nil, fmt.Errorf("%w: it has more than %d functions", ErrNotAProfile, MaxFunctions)
		}
		function = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: plain.name, SystemName: cut(f.name), Filename: plain.file}
		b.p.Function, b.functions[plain] = append(b.p.Function, function), function
	}
	at := &profile.Location{ID: uint64(len(b.p.Location) + 1), Line: []profile.Line{{Function: function}}}
	if f.object != "" {
		at.Mapping, known = b.mappings[f.object]
		if !known {
			at.Mapping = &profile.Mapping{ID: uint64(len(b.p.Mapping) + 1), File: cut(f.object), HasFunctions: true}
			b.p.Mapping, b.mappings[f.object] = append(b.p.Mapping, at.Mapping), at.Mapping
		}
	}
	b.p.Location, b.locations[f] = append(b.p.Location, at), at
	return at, nil
}

// add counts values for a stack, which begins with its innermost frame.
func (b *builder) add(stack []frame, values ...int64) error {
	stack = stack[:min(len(stack), MaxDepth)]
	at := make([]*profile.Location, len(stack))
	b.key = b.key[:0]
	for i, f := range stack {
		l, err := b.location(f)
		if err != nil {
			return err
		}
		at[i] = l
		b.key = fmt.Appendf(b.key, "%x ", l.ID)
	}
	sample, known := b.stacks[string(b.key)]
	if !known {
		if len(b.p.Sample) == MaxStacks {
			return fmt.Errorf("%w: it has more than %d stacks", ErrNotAProfile, MaxStacks)
		}
		sample = &profile.Sample{Location: at}
		b.p.Sample, b.stacks[string(b.key)] = append(b.p.Sample, sample), sample
	}
	sample.Value = append(sample.Value, make([]int64, max(0, len(values)-len(sample.Value)))...)
	for i, v := range values {
		if sample.Value[i]+v < sample.Value[i] {
			return fmt.Errorf("%w: its values are too large to be added up", ErrNotAProfile)
		}
		sample.Value[i] += v
	}
	return nil
}

// done returns the profile.
func (b *builder) done() (*profile.Profile, error) {
	// A type that became known late is missing from earlier samples.
	for _, s := range b.p.Sample {
		s.Value = append(s.Value, make([]int64, len(b.p.SampleType)-len(s.Value))...)
	}
	if err := b.p.CheckValid(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAProfile, err)
	}
	return b.p, nil
}

// cut bounds a name, and replaces bytes that are not text.
func cut(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), MaxName)], "�")
}

// index returns the position of a sample type; empty means the default one.
func index(p *profile.Profile, sampleType string) (int, error) {
	if sampleType == "" {
		sampleType = p.DefaultSampleType
	}
	if sampleType == "" {
		return len(p.SampleType) - 1, nil // as 'go tool pprof'
	}
	i := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == sampleType })
	if i < 0 {
		return 0, fmt.Errorf("the profile has no samples of type %q; use %s", sampleType, strings.Join(Types(p), ", "))
	}
	return i, nil
}

// Types lists the sample types of a profile, such as samples and cpu.
func Types(p *profile.Profile) []string {
	var types []string
	for _, t := range p.SampleType {
		types = append(types, t.Type)
	}
	return types
}

// Unit returns the unit of a sample type; empty means the default one.
func Unit(p *profile.Profile, sampleType string) (string, error) {
	i, err := index(p, sampleType)
	if err != nil {
		return "", err
	}
	return p.SampleType[i].Unit, nil
}

// Detect guesses the format of a profile from its first bytes; some thousands suffice.
func Detect(head []byte) Format {
	if bytes.HasPrefix(head, []byte(selfProfileMagic)) {
		return SelfProfile
	}
	if bytes.HasPrefix(head, []byte(gzipMagic)) { // samply compresses, as pprof does
		if unpacked, err := unpack(bytes.NewReader(head)); err == nil {
			inner := make([]byte, len(head))
			n, _ := io.ReadFull(unpacked, inner)
			if format := detectJSON(inner[:n]); format != "" {
				return format
			}
		}
		return Pprof
	}
	if format := detectJSON(head); format != "" {
		return format
	}
	if bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(head[:max(0, len(head)-utf8.UTFMax)]) {
		return Pprof
	}
	for line := range bytes.Lines(head) {
		switch {
		case bytes.HasPrefix(line, []byte("events:")), bytes.HasPrefix(line, []byte("# callgrind")), bytes.HasPrefix(line, []byte("desc:")):
			return Callgrind
		case perfHeader.Match(line):
			return PerfScript
		}
	}
	return Folded
}

// detectJSON tells the JSON formats apart; empty if it is none of them.
func detectJSON(head []byte) Format {
	switch head = bytes.TrimSpace(head); {
	case !bytes.HasPrefix(head, []byte("{")):
	case bytes.Contains(head, []byte(`"dhatFileVersion"`)):
		return DHAT
	case bytes.Contains(head, []byte(`"preprocessedProfileVersion"`)):
		return Firefox
	}
	return ""
}
