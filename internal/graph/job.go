package graph

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/benchloom/benchloom/internal/bench"
)

// Kind is the kind of a node's work.
type Kind string

const (
	// KindBenchmark measures test cases of a suite.
	KindBenchmark Kind = "benchmark"
	// KindBuild builds an artifact from a revision.
	KindBuild Kind = "build"
	// KindCommand runs commands in order, on repositories at revisions.
	KindCommand Kind = "command"
	// KindProfile runs a test case under a profiler.
	KindProfile Kind = "profile"
	// KindCompare compares an artifact with a baseline.
	KindCompare Kind = "compare"
	// KindNotify tells people.
	KindNotify Kind = "notify"
	// KindSignOff waits for a person.
	KindSignOff Kind = "sign-off"
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{KindBenchmark, KindBuild, KindCommand, KindProfile, KindCompare, KindNotify, KindSignOff}
}

// ParseKind reads the name of a kind.
func ParseKind(s string) (Kind, error) {
	names := make([]string, 0, len(Kinds()))
	for _, k := range Kinds() {
		if string(k) == s {
			return k, nil
		}
		names = append(names, string(k))
	}
	return "", invalid("job kind", s, "use "+strings.Join(names, ", "))
}

// Definition describes the work of one kind of job: [Benchmark], [Build], [Command],
// [Profile], [Compare], [Notify] or [SignOff].
type Definition interface {
	// Kind returns the kind that the definition belongs to.
	Kind() Kind
	// normal returns the definition as it is encoded, or why it is refused.
	normal() (Definition, error)
}

// Job is the definition of one work item: immutable, without history, equal to every
// other with the same hash. [NewJob] makes it.
type Job struct {
	definition Definition
	canonical  []byte
	hash       string
}

// encodedJob is the canonical form of a job.
type encodedJob struct {
	Kind       Kind            `json:"kind"`
	Definition json.RawMessage `json:"definition"`
}

// jobPrefix keeps hashes of jobs apart from those of anything else.
const jobPrefix = "benchloom job 1\n"

// NewJob returns the job with a definition. An error wraps [bench.ErrInvalid].
func NewJob(d Definition) (Job, error) {
	if d == nil {
		return Job{}, invalid("job", "", "it has no definition")
	}
	if err := plain(reflect.ValueOf(d)); err != nil {
		return Job{}, fmt.Errorf("job of kind %s: %w", d.Kind(), err)
	}
	n, err := d.normal()
	if err != nil {
		return Job{}, fmt.Errorf("job of kind %s: %w", d.Kind(), err)
	}
	body, err := encode(n)
	if err != nil {
		return Job{}, fmt.Errorf("job of kind %s: %w", d.Kind(), err)
	}
	// Kinds need no escapes.
	canonical := slices.Concat([]byte(`{"kind":"`), []byte(n.Kind()), []byte(`","definition":`), body, []byte("}"))
	// The copy shares nothing with the caller.
	copied, err := decodeDefinition(n.Kind(), body)
	if err != nil {
		return Job{}, fmt.Errorf("job of kind %s: %w", d.Kind(), err)
	}
	return Job{copied, canonical, digest(jobPrefix, canonical)}, nil
}

// ParseJob reads a job in canonical form, and refuses every other form.
func ParseJob(canonical []byte) (Job, error) {
	var e encodedJob
	if err := decode(canonical, &e); err != nil {
		return Job{}, fmt.Errorf("reading a job: %w", err)
	}
	d, err := decodeDefinition(e.Kind, e.Definition)
	if err != nil {
		return Job{}, fmt.Errorf("reading a job: %w", err)
	}
	j, err := NewJob(d)
	if err != nil {
		return Job{}, fmt.Errorf("reading a job: %w", err)
	}
	if !bytes.Equal(j.canonical, canonical) {
		return Job{}, fmt.Errorf("reading a job: %w: it is not in canonical form, which is %s", bench.ErrInvalid, shortened(string(j.canonical)))
	}
	return j, nil
}

// Kind returns the job's kind; empty for the zero Job.
func (j Job) Kind() Kind {
	if j.definition == nil {
		return ""
	}
	return j.definition.Kind()
}

// Definition returns what the job does, for a switch over its type. Its lists and maps
// are shared and must not be changed.
func (j Job) Definition() Definition { return j.definition }

// Canonical returns the one encoding of the job, as JSON. It must not be changed.
func (j Job) Canonical() []byte { return j.canonical }

// Hash returns the content hash: SHA-256 of the canonical encoding, 64 hexadecimal digits.
func (j Job) Hash() string { return j.hash }

// Target returns the target of the machine that the job needs; empty: none.
func (j Job) Target() bench.Target {
	switch d := j.definition.(type) {
	case Benchmark:
		return d.Target
	case Build:
		return d.Target
	case Command:
		return d.Target
	case Profile:
		return d.Target
	}
	return ""
}

// MarshalJSON returns the canonical encoding.
func (j Job) MarshalJSON() ([]byte, error) {
	if j.canonical == nil {
		return nil, invalid("job", "", "it has no definition")
	}
	return j.canonical, nil
}

func decodeDefinition(k Kind, body []byte) (Definition, error) {
	switch k {
	case KindBenchmark:
		return decoded[Benchmark](body)
	case KindBuild:
		return decoded[Build](body)
	case KindCommand:
		return decoded[Command](body)
	case KindProfile:
		return decoded[Profile](body)
	case KindCompare:
		return decoded[Compare](body)
	case KindNotify:
		return decoded[Notify](body)
	case KindSignOff:
		return decoded[SignOff](body)
	}
	_, err := ParseKind(string(k))
	return nil, err
}

func decoded[T Definition](body []byte) (Definition, error) {
	var d T
	return d, decode(body, &d)
}

// encode returns compact JSON: fields in their order, keys of maps sorted, and no
// escapes of HTML.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// decode reads exactly one JSON value without unknown keys.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", bench.ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more follows the JSON value", bench.ErrInvalid)
	}
	return nil
}

func digest(prefix string, canonical []byte) string {
	h := sha256.New()
	h.Write([]byte(prefix))
	h.Write(canonical)
	return hex.EncodeToString(h.Sum(nil))
}

// maxText bounds each text of a definition, in bytes.
const maxText = 64 << 10

// plain refuses texts that JSON or the record would alter: those that are not UTF-8, or
// hold a zero byte.
func plain(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return invalid("text", shortened(s), "use UTF-8 without zero bytes")
		}
		if len(s) > maxText {
			return invalid("text", shortened(s), fmt.Sprintf("use at most %d bytes", maxText))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return plain(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := plain(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			if err := errors.Join(plain(i.Key()), plain(i.Value())); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := plain(v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// shortened returns a text that fits into a message.
func shortened(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func invalid(kind, value, rule string) error {
	return fmt.Errorf("%w: %s %q: %s", bench.ErrInvalid, kind, value, rule)
}
