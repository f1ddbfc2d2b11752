package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sync/semaphore"

	"github.com/benchloom/benchloom/api/pages"
	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

// ResultRecord reads results.
type ResultRecord interface {
	results.Record
	// MeasuredTags lists the artifacts with results, of requests of a type.
	MeasuredTags(ctx context.Context, project string, requestType bench.RequestType) ([]string, error)
	// ExportCollections yields the collections of artifacts, of all when no tag is
	// given. It ends with the first error of yield.
	ExportCollections(ctx context.Context, project string, tags []string, yield func(bench.ExportedCollection) error) error
	// ExportInTurns does the same for what was measured in turns with another artifact.
	ExportInTurns(ctx context.Context, project string, tags []string, yield func(bench.ExportedCollection) error) error
	// Origins lists where the results of an artifact come from, as far as a comparison with
	// another one reads them.
	Origins(ctx context.Context, project, tag, other string) ([]store.Origin, error)
	// ComparedValues reads the values that a comparison of two artifacts may use of one metric
	// of a test case, in the order of measuring.
	ComparedValues(ctx context.Context, project string, tags [2]string, tc bench.TestCase, metric bench.Metric) (values []store.ComparedValue, complete bool, err error)
	// Line lists the artifacts whose results are the history of a request's artifact, the oldest
	// first and that artifact last; Centers reads the medians of series on such artifacts.
	Line(ctx context.Context, r bench.Request, most int, before func(tag, own string) int) ([]string, error)
	Centers(ctx context.Context, project string, tags []string, of []store.SeriesName) (map[store.SeriesName][]store.Center, error)
	// CommitsBetween lists two commits and those between them, as far as they are recorded.
	CommitsBetween(ctx context.Context, project, a, b string, limit int) ([]store.CommitRequest, error)
	// NextCompared returns the first release or merged commit whose request was compared with
	// an artifact; empty if there is none.
	NextCompared(ctx context.Context, project, tag string) (string, error)
	// SizeOf and SizeInTurns tell how much SamplesOf and SessionsInTurns read.
	SizeOf(ctx context.Context, project, tag string) (store.ResultSize, error)
	SizeInTurns(ctx context.Context, project, a, b string) (store.ResultSize, error)
}

type resultHandlers struct {
	*base
	record ResultRecord
	// profiles has the samples of the runs.
	profiles ProfileRecord
	// memory bounds all concurrent comparisons together, in bytes.
	memory *semaphore.Weighted
}

func (s *resultHandlers) register() {
	handle(s.base, operation{id: "compare", method: http.MethodGet, path: "/compare", need: toRead, tag: "results", slots: compareSlots, computes: true,
		summary:     "Compare two artifacts",
		description: "One row for each metric of each test case: stored results describe, what was measured in turns stands beside them, and the verdict rests on the latter. Only results of the same target, size class and hardware are compared, and co-located ones only with their like. Parameters that narrow the answer hide rows and change no verdict. What one side lacks is listed with the reason.",
		answers:     []documented{{status: http.StatusOK, json: reflect.TypeFor[apiclient.Comparison](), media: []string{"text/plain", "text/markdown"}}}}, s.compare)
	handle(s.base, operation{id: "get-compared-values", method: http.MethodGet, path: "/compare/values", need: toRead, tag: "results", slots: compareSlots, computes: true,
		summary: "List the values behind a row of a comparison", description: "Every value of both sides, in the order of measuring, with its run, collector and what is known of the machine meanwhile."}, s.comparedValues)
	handle(s.base, operation{id: "get-compared-machine", method: http.MethodGet, path: "/compare/machine", need: toRead, tag: "results", slots: compareSlots, computes: true,
		summary:     "Show what the machine did while a row of a comparison was measured",
		description: "Both sides: the runs that measured the values that are compared, and what each measured command's system series were, mean and maximum. It explains, and gives no verdict.",
		answers:     []documented{{status: http.StatusOK, json: reflect.TypeFor[apiclient.ComparedMachine](), media: []string{"text/csv"}}}}, s.comparedMachine)
	handle(s.base, operation{id: "get-earlier-values", method: http.MethodGet, path: "/compare/earlier", need: toRead, tag: "results", slots: compareSlots, computes: true,
		summary: "Show the earlier values of rows of a comparison", description: "The median of each series on the artifacts before B, at most thirty: for a commit those merged before it, for a release the measured ones before it."}, s.earlierValues)
	handle(s.base, operation{id: "export-results", method: http.MethodGet, path: "/results/export", need: toRead, tag: "results", slots: exportSlots,
		summary: "Export the collections of artifacts", answers: []documented{{status: http.StatusOK, json: reflect.TypeFor[[]apiclient.ExportedCollection](), media: []string{"text/plain", "text/csv"}}},
		description: "What was measured in turns with another artifact is exported on its own. As Go's benchmark format (read by benchstat -col tag -ignore collector), CSV with one line per value, or a JSON array."}, s.export)
}

type compare struct {
	Project    string         `query:"project" required:"true"`
	A          string         `query:"a" doc:"Tag of the baseline; absent: what B was or will be compared with by its own request."`
	B          string         `query:"b" required:"true" doc:"Tag of the artifact to judge."`
	Metrics    []bench.Metric `query:"metric,explode" doc:"Show only these metrics."`
	Benchmarks []string       `query:"benchmark,explode" doc:"Show only these benchmarks."`
	Profiles   []string       `query:"profile,explode" doc:"Show only these profiles."`
	Scenarios  []string       `query:"scenario,explode" doc:"Show only these scenarios."`
	Backends   []string       `query:"backend,explode" doc:"Show only these backends."`
	Targets    []bench.Target `query:"target,explode" doc:"Show only these targets."`
	InTurns    bool           `query:"in_turns" doc:"Show only what was measured in turns, iteration by iteration, in the same run."`

	Runs        bool   `query:"runs" doc:"Name the run in which each test case was measured, in JSON."`
	Format      string `query:"format" enum:"json,text,markdown" default:"json"`
	Sort        string `query:"sort" enum:"name,size,certainty" default:"name" doc:"Order of the rows of text."`
	Significant bool   `query:"significant" doc:"Leave out rows without suspicion, in text."`
	Reasons     bool   `query:"reasons" doc:"Explain the verdict of every row, in text."`
	Color       bool   `query:"color" doc:"Mark changes with colours of a terminal, in text."`
	Width       int    `query:"width" minimum:"0" maximum:"1000" doc:"Characters in a line of text; 0: unlimited."`
}

// Bounds of comparisons. All values of both sides are in memory at once, some of them in
// several orders, and a row tells much about a series; the bytes are estimates of both.
const (
	// DefaultMaxCompared bounds the values that one comparison reads. 2,000 test cases with
	// twenty metrics and five iterations on each side have 400,000.
	DefaultMaxCompared = 1_000_000
	maxComparedSeries  = 100_000
	bytesPerValue      = 100
	bytesPerSeries     = 1_500
	// maxComparing bounds the memory of all concurrent comparisons.
	maxComparing = maxComparedSeries*bytesPerSeries + DefaultMaxCompared*bytesPerValue
)

// reserve waits until there is memory for a comparison, and refuses one that is too large. inTurns is set if anything was
// measured in turns.
func (s *resultHandlers) reserve(ctx context.Context, in *compare) (release func(), inTurns bool, err error) {
	size, err := s.record.SizeInTurns(ctx, in.Project, in.A, in.B)
	if err != nil {
		return nil, false, err
	}
	inTurns = size != store.ResultSize{}
	for _, tag := range []string{in.A, in.B} {
		own, err := s.record.SizeOf(ctx, in.Project, tag)
		if err != nil {
			return nil, false, err
		}
		size.Values, size.Series = size.Values+own.Values, size.Series+own.Series
	}
	if size.Values > s.MaxCompared || size.Series > maxComparedSeries {
		return nil, false, problemf(http.StatusUnprocessableEntity, "too-large-to-compare", "%s and %s have %d values in %d series, and one comparison takes at most %d in %d; export both with 'benchloom results export', and compare them with benchstat",
			in.A, in.B, size.Values, size.Series, s.MaxCompared, maxComparedSeries)
	}
	bytes := min(maxComparing, size.Values*bytesPerValue+size.Series*bytesPerSeries)
	bounded, stop := context.WithTimeout(ctx, slotWait)
	defer stop()
	if err := s.memory.Acquire(bounded, bytes); err != nil {
		return nil, false, busy()
	}
	return func() { s.memory.Release(bytes) }, inTurns, nil
}

// withoutTurns is a record for two artifacts without measurements in turns, which need not be read again.
type withoutTurns struct{ ResultRecord }

func (withoutTurns) SessionsInTurns(context.Context, string, string, string) ([]results.Session, error) {
	return nil, nil
}

type written struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *resultHandlers) compare(ctx context.Context, in *compare) (*written, error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	if err := s.pair(ctx, in.Project, &in.A, &in.B); err != nil {
		return nil, err
	}
	release, inTurns, err := s.reserve(ctx, in)
	if err != nil {
		return nil, err
	}
	defer release()
	record := s.record
	if !inTurns {
		record = withoutTurns{record}
	}
	all, err := results.Compare(ctx, record, s.suites, results.Pair{Project: in.Project, A: in.A, B: in.B})
	if err != nil {
		return nil, fmt.Errorf("comparing %s with %s: %w", in.B, in.A, err)
	}
	if len(all.Rows) == 0 {
		if err := s.measured(ctx, in.Project, in.A, in.B); err != nil {
			return nil, err
		}
	}
	shown := all
	if in.narrows() {
		shown = all.Select(in.shows, in.wants)
	}
	if len(shown.Rows) == 0 && len(all.Rows) > 0 {
		return nil, problemf(http.StatusNotFound, "nothing-left", "%s and %s have no results that all parameters name; left out was, for example, %s", in.A, in.B, all.Rows[0].Key)
	}
	if in.Format != "" && in.Format != formatJSON {
		return in.write(shown, pageAddress(ctx, pages.Comparison(in.Project, in.A, in.B, report.Digest(all.Rows))))
	}
	return s.encode(ctx, in, shown)
}

// pair completes the tags of two artifacts: the baseline may be left out.
func (s *resultHandlers) pair(ctx context.Context, project string, a, b *string) error {
	if err := s.tags(ctx, project, a, b); err != nil {
		return err
	}
	if *a != "" {
		return nil
	}
	var err error
	*a, err = s.baseline(ctx, project, *b)
	return err
}

// baseline returns the artifact to compare a tag with: the one that its request was compared with or is measured in turns
// with, its parent, or for a release the next lower measured one.
func (s *resultHandlers) baseline(ctx context.Context, project, tag string) (string, error) {
	r, err := s.request(ctx, project+":"+tag)
	if err != nil {
		return "", err
	}
	baseline := cmp.Or(r.Baseline, r.InTurns(), r.Parent)
	if baseline == "" && r.Type == bench.Release {
		tags, err := s.record.MeasuredTags(ctx, project, bench.Release)
		if err != nil {
			return "", err
		}
		for _, t := range tags {
			if admission.CompareVersions(t, tag) < 0 && (baseline == "" || admission.CompareVersions(t, baseline) > 0) {
				baseline = t
			}
		}
	}
	if baseline == "" {
		why := "its request has no parent, and no release before it is measured"
		if r.ParentNote != "" {
			why = r.ParentNote
		}
		return "", problemf(http.StatusNotFound, "no-baseline", "artifact %q of project %s has no baseline: %s; name the artifact to compare it with", tag, project, why)
	}
	return baseline, nil
}

// narrows reports whether only some rows were asked for.
func (in *compare) narrows() bool {
	return in.InTurns || len(in.Metrics)+len(in.Benchmarks)+len(in.Profiles)+len(in.Scenarios)+len(in.Backends)+len(in.Targets) > 0
}

// shows reports whether a row was asked for. Other rows are hidden; the verdicts do not depend on it.
func (in *compare) shows(r report.Row) bool {
	return in.wants(results.TestCase(r.TestCase)) && in.wantsMetric(results.Metric(r.Key)) && (!in.InTurns || r.InTurns)
}

// write writes a comparison as text or Markdown, which leads to a page.
func (in *compare) write(shown results.Report, link string) (*written, error) {
	var out bytes.Buffer
	options := report.TableOptions{OnlyRemarkable: in.Significant, Reasons: in.Reasons, Color: in.Color, Width: in.Width, Link: link}
	switch in.Sort {
	case "size":
		options.Sorting = report.BySize
	case "certainty":
		options.Sorting = report.ByCertainty
	}
	summary := shown.Summary()
	if in.Format == apiclient.FormatText {
		err := report.WriteText(&out, shown.Report, summary, options)
		writeMissing(&out, "", shown.Missing)
		return &written{ContentType: plainText, Body: out.Bytes()}, err
	}
	err := report.WriteMarkdown(&out, shown.Report, summary, options)
	writeMissing(&out, "* ", shown.Missing)
	return &written{ContentType: "text/markdown; charset=utf-8", Body: out.Bytes()}, err
}

// encode writes a comparison as JSON, with how both sides were measured.
func (s *resultHandlers) encode(ctx context.Context, in *compare, shown results.Report) (*written, error) {
	c := apiclient.Comparison{Project: in.Project, A: in.A, B: in.B, Result: shown.Report, Summary: shown.Summary()}
	for _, m := range shown.Missing {
		c.Missing = append(c.Missing, apiclient.MissingTestCase{Tag: m.Tag, TestCase: m.TestCase, Reason: m.Reason, Failed: m.Failed})
	}
	if err := s.sides(ctx, in, &c); err != nil {
		return nil, err
	}
	if handOver(ctx, &c) {
		return &written{ContentType: "application/json", Body: []byte(handedOver)}, nil
	}
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(c); err != nil {
		return nil, fmt.Errorf("encoding the comparison: %w", err)
	}
	return &written{ContentType: "application/json", Body: out.Bytes()}, nil
}

func writeMissing(out *bytes.Buffer, bullet string, missing []results.Missing) {
	if len(missing) == 0 {
		return
	}
	fmt.Fprintf(out, "\nNot compared\n\n")
	for _, m := range missing {
		fmt.Fprintf(out, "%s%s: %s: %s\n", bullet, m.Tag, m.TestCase, plainLine(m.Reason))
	}
}

// plainLine returns a benchmark's own words as one line that no terminal obeys.
func plainLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func (in *compare) wants(tc bench.TestCase) bool {
	return listed(in.Benchmarks, tc.Benchmark) && listed(in.Profiles, tc.Profile) && listed(in.Scenarios, tc.Scenario) &&
		listed(in.Backends, tc.Backend) && listed(in.Targets, tc.Target)
}

// wantsMetric accepts the metrics of all lines by their unit.
func (in *compare) wantsMetric(m bench.Metric) bool {
	return len(in.Metrics) == 0 || slices.ContainsFunc(in.Metrics, func(asked bench.Metric) bool { return m.Matches(string(asked)) })
}

func listed[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

// shownTags bounds the number of tags in an error.
const shownTags = 5

// measured refuses tags without results. The problem lists tags with results.
func (s *resultHandlers) measured(ctx context.Context, project string, tags ...string) error {
	var without []string
	for _, tag := range tags {
		size, err := s.record.SizeOf(ctx, project, tag)
		if err != nil {
			return err
		}
		if size.Values == 0 {
			without = append(without, tag)
		}
	}
	if len(without) == 0 {
		return nil
	}
	var known []string
	for _, t := range []bench.RequestType{bench.Release, bench.Master, bench.Try, bench.AdHoc} {
		of, err := s.record.MeasuredTags(ctx, project, t)
		if err != nil {
			return err
		}
		known = append(known, of...)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, tag := range without {
		if slices.Contains(known, tag) {
			continue // its results have no values
		}
		all := "none is measured yet; 'benchloom submit' asks for one"
		if len(known) > 0 {
			all = "measured are " + strings.Join(known[:min(len(known), shownTags)], ", ")
			if len(known) > shownTags {
				all += fmt.Sprintf(" and %d more ('benchloom status --project %s' lists the requests)", len(known)-shownTags, project)
			}
		}
		return problemf(http.StatusNotFound, "unmeasured-tag", "project %s has no results of %q; %s", project, tag, all)
	}
	return nil
}
