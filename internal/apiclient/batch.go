package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/strictjson"
)

// MaxBatch bounds the commands of one request, and MaxBatchBytes the uncompressed
// body of that request: 640 bytes per command.
const (
	MaxBatch      = 100_000
	MaxBatchBytes = 64_000_000
)

// MaxJobBytes bounds one command with its environment, and a line of a file of
// commands, in bytes.
const MaxJobBytes = 1 << 20

// maxName bounds the name of a job in bytes.
const maxName = 100

// NewJob is one job of a batch: a command line and where it should run.
type NewJob struct {
	Name string `json:"name,omitempty" maxLength:"100" doc:"Display name; need not be unique."`
	Command
	// Timeout is TimeoutSeconds as a duration, for people.
	Timeout string `json:"timeout,omitempty" doc:"Same as timeout_seconds, as a duration." example:"5m"`
	PlacementWish
}

// ReadJob parses and checks one job of a batch. The error names the problem and what
// to write instead.
func ReadJob(text []byte) (NewJob, error) {
	var j NewJob
	if err := strictjson.Check(text); err != nil {
		return j, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&j); err != nil {
		return j, readable(err)
	}
	if rest := bytes.TrimSpace(text[decoder.InputOffset():]); len(rest) > 0 {
		return j, fmt.Errorf("unexpected text after the object: %.20q; write one job per line", rest)
	}
	if j.Timeout != "" {
		d, err := time.ParseDuration(j.Timeout)
		if err != nil || d < time.Second || d%time.Second != 0 || d > maxTimeout {
			return j, fmt.Errorf("timeout %.40q: use whole seconds from 1s to 24h, such as 90s or 5m", j.Timeout)
		}
		if j.TimeoutSeconds != 0 {
			return j, errors.New("timeout and timeout_seconds are both set: leave one out")
		}
		j.Timeout, j.TimeoutSeconds = "", int(d/time.Second)
	}
	return j, j.check()
}

// readable rewrites an error of the JSON decoder in terms of a job.
func readable(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf(`it is a JSON %s, not an object: write {"argv": ["program", "argument"]}`, wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s is a JSON %s; write %s", wrong.Field, wrong.Value, wanted(wrong.Type))
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Errorf("there is no field %s; a job has %s", strings.TrimPrefix(err.Error(), "json: unknown field "), strings.Join(jobFields(reflect.TypeFor[NewJob]()), ", "))
	}
	return fmt.Errorf("invalid JSON: %w", err)
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return `a list of texts, such as ["program", "argument"]`
	case reflect.Map:
		return `an object of texts, such as {"NAME": "value"}`
	case reflect.String:
		return "a text"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a " + t.Kind().String()
}

// jobFields returns the JSON names of a job's fields.
func jobFields(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		if field.Anonymous {
			names = append(names, jobFields(field.Type)...)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// Bounds of a command.
const (
	maxTimeout = 24 * time.Hour
	maxWords   = 1000
)

func (j NewJob) check() error {
	if err := j.Command.Check(); err != nil {
		return err
	}
	switch {
	case len(j.Name) > maxName:
		return fmt.Errorf("the name has %d bytes; use at most %d", len(j.Name), maxName)
	case strings.ContainsFunc(j.Name, func(r rune) bool { return unicode.IsControl(r) }):
		return fmt.Errorf("the name %.40q holds control characters; use one line of text", j.Name)
	}
	return j.PlacementWish.Check()
}

// Check returns an error if a field is invalid.
func (w PlacementWish) Check() error {
	if w.Target != "" {
		if _, err := bench.ParseTarget(string(w.Target)); err != nil {
			return fmt.Errorf("target: %w", err)
		}
	}
	if w.Queue != "" {
		if err := bench.CheckQueue(w.Queue); err != nil {
			return err
		}
	}
	if w.SizeClass != 0 {
		if _, err := bench.NewSizeClass(int(w.SizeClass)); err != nil {
			return fmt.Errorf("size_class: %w", err)
		}
	}
	if _, err := w.Constraints.Read(); err != nil {
		return fmt.Errorf("constraints: %w", err)
	}
	if w.Shape != "" {
		return bench.CheckShapeKey(w.Shape)
	}
	return nil
}

// Check returns an error if the command cannot be run as a process.
func (c Command) Check() error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errors.New("the command names no program; argv begins with one")
	}
	if len(c.Argv) > maxWords {
		return fmt.Errorf("the command has %d words; use at most %d, and a file for more", len(c.Argv), maxWords)
	}
	size := 0
	for _, word := range c.Argv {
		size += len(word)
		if !utf8.ValidString(word) {
			return fmt.Errorf("the argument %.40q of the command is not UTF-8; send only text, and other bytes in a file that the command reads", word)
		}
		if strings.ContainsRune(word, 0) {
			return errors.New("an argument of the command holds a zero byte; leave it out")
		}
	}
	for name, value := range c.Env {
		size += len(name) + len(value)
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("the variable %.40q of the command's environment is not UTF-8; use only text", name)
		}
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("the command's environment holds the invalid variable %.40q; use a name without '=' and no zero bytes", name)
		}
	}
	if size > MaxJobBytes {
		return fmt.Errorf("the command and its environment have %d bytes; use at most %d, and put long input into a file that the command reads", size, MaxJobBytes)
	}
	if c.TimeoutSeconds < 0 || c.TimeoutSeconds > int(maxTimeout/time.Second) {
		return fmt.Errorf("timeout_seconds is %d; use 1 to %d, or leave it out for the project's default", c.TimeoutSeconds, int(maxTimeout/time.Second))
	}
	if c.Iterations < 0 || c.Iterations > bench.MaxIterations {
		return fmt.Errorf("iterations is %d; use 1 to %d, or leave it out for one", c.Iterations, bench.MaxIterations)
	}
	return nil
}

// CreateBatch submits many commands in one request: all are accepted or none. It
// ignores r.Jobs and sends the jobs compressed.
func (c *Client) CreateBatch(ctx context.Context, r NewRequest, jobs iter.Seq[NewJob]) (created Request, err error) {
	r.Jobs = nil
	head, err := json.Marshal(r)
	if err != nil {
		return created, fmt.Errorf("encoding the request: %w", err)
	}
	var body bytes.Buffer
	zipped := fastGzip(&body)
	defer keep(zipped)
	// Errors are ignored: writing to memory does not fail.
	_, _ = zipped.Write(bytes.TrimSuffix(head, []byte("}")))
	if len(head) > len("{}") {
		_, _ = zipped.Write([]byte(","))
	}
	_, _ = zipped.Write([]byte(`"jobs":[`))
	first := true
	for j := range jobs {
		text, err := json.Marshal(j)
		if err != nil {
			return created, fmt.Errorf("encoding job %s: %w", j.Name, err)
		}
		if !first {
			_, _ = zipped.Write([]byte(","))
		}
		first = false
		_, _ = zipped.Write(text)
	}
	_, _ = zipped.Write([]byte("]}"))
	if err := zipped.Close(); err != nil {
		return created, fmt.Errorf("compressing the jobs: %w", err)
	}
	_, _, err = c.do(ctx, call{
		method: http.MethodPost, path: v1("requests"), body: body.Bytes(), contentType: "application/json", encoding: "gzip", out: &created, timeout: transferTimeout,
	})
	return created, err
}

// JobQuery narrows the list of a request's jobs; zero values do not narrow.
type JobQuery struct {
	Status bench.JobStatus
	// After is Next of the previous page.
	After string
	Limit int
}
