package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
)

// ResultRecord reads results.
type ResultRecord interface {
	results.Record
	// MeasuredTags lists the artifacts with results, of requests of a type.
	MeasuredTags(ctx context.Context, project string, requestType bench.RequestType) ([]string, error)
	// ExportCollections yields the collections of artifacts, of all when no tag is
	// given. It ends with the first error of yield.
	ExportCollections(ctx context.Context, project string, tags []string, yield func(bench.ExportedCollection) error) error
}

type resultHandlers struct {
	*base
	record ResultRecord
}

func (s *resultHandlers) register() {
	handle(s.base, operation{id: "compare", method: http.MethodGet, path: "/compare", need: toRead, tag: "results",
		summary:     "Compare two artifacts",
		description: "Only results of the same target, size class and hardware are compared, and co-located ones only with their like. Where both were measured in turns, these results are taken, unless both were measured again since. What one side lacks is listed with the reason.",
		answers:     []documented{{status: http.StatusOK, json: reflect.TypeFor[apiclient.Comparison](), media: []string{"text/plain", "text/markdown"}}}}, s.compare)
	handle(s.base, operation{id: "export-results", method: http.MethodGet, path: "/results/export", need: toRead, tag: "results",
		summary: "Export the collections of artifacts", answers: []documented{{status: http.StatusOK, json: reflect.TypeFor[[]apiclient.ExportedCollection](), media: []string{"text/plain", "text/csv"}}},
		description: "As Go's benchmark format (read by benchstat -col tag -ignore collector), CSV with one line per value, or a JSON array."}, s.export)
}

type compare struct {
	Project    string         `query:"project" required:"true"`
	A          string         `query:"a" required:"true" doc:"Tag of the baseline."`
	B          string         `query:"b" required:"true" doc:"Tag of the artifact to judge."`
	Metrics    []bench.Metric `query:"metric,explode" doc:"Only these metrics."`
	Benchmarks []string       `query:"benchmark,explode" doc:"Only these benchmarks."`
	Profiles   []string       `query:"profile,explode" doc:"Only these profiles."`
	Scenarios  []string       `query:"scenario,explode" doc:"Only these scenarios."`
	Backends   []string       `query:"backend,explode" doc:"Only these backends."`
	Targets    []bench.Target `query:"target,explode" doc:"Only these targets."`
	InTurns    bool           `query:"in_turns" doc:"Only what was measured in turns, iteration by iteration, in the same run."`

	Format      string `query:"format" enum:"json,text,markdown" default:"json"`
	Sort        string `query:"sort" enum:"name,size,certainty" default:"name" doc:"Order of the rows of text."`
	Significant bool   `query:"significant" doc:"Leave out rows without a significant difference, in text."`
	Reasons     bool   `query:"reasons" doc:"Explain the verdict of every row, in text."`
	Color       bool   `query:"color" doc:"Mark changes with colours of a terminal, in text."`
	Width       int    `query:"width" minimum:"0" maximum:"1000" doc:"Characters in a line of text; 0: unlimited."`
}

type written struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *resultHandlers) compare(ctx context.Context, in *compare) (*written, error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	if err := s.measured(ctx, in.Project, in.A, in.B); err != nil {
		return nil, err
	}
	narrowed := &narrowedRecord{Record: s.record, in: in}
	report, err := results.Compare(ctx, narrowed, s.suites, results.Pair{Project: in.Project, A: in.A, B: in.B, OnlyInTurns: in.InTurns})
	if err != nil {
		return nil, fmt.Errorf("comparing %s with %s: %w", in.B, in.A, err)
	}
	if len(report.Comparison.Results) == 0 && len(narrowed.left) > 0 {
		slices.Sort(narrowed.left)
		return nil, problemf(http.StatusNotFound, "nothing-left", "%s and %s have no results that all parameters name; left out was, for example, %s", in.A, in.B, narrowed.left[0])
	}
	return in.write(report)
}

func (in *compare) write(report results.Report) (*written, error) {
	var out bytes.Buffer
	options := stats.TableOptions{OnlySignificant: in.Significant, Reasons: in.Reasons, Color: in.Color, Width: in.Width}
	switch in.Sort {
	case "size":
		options.Sorting = stats.BySize
	case "certainty":
		options.Sorting = stats.ByCertainty
	}
	switch in.Format {
	case apiclient.FormatText:
		err := stats.WriteText(&out, report.Comparison, report.Summary, options)
		writeMissing(&out, "", report.Missing)
		return &written{ContentType: plainText, Body: out.Bytes()}, err
	case apiclient.FormatMarkdown:
		err := stats.WriteMarkdown(&out, report.Comparison, report.Summary, options)
		writeMissing(&out, "* ", report.Missing)
		return &written{ContentType: "text/markdown; charset=utf-8", Body: out.Bytes()}, err
	}
	c := apiclient.Comparison{Project: in.Project, A: in.A, B: in.B, Result: report.Comparison, Summary: report.Summary}
	for _, m := range report.Missing {
		c.Missing = append(c.Missing, apiclient.MissingTestCase{Tag: m.Tag, TestCase: m.TestCase, Reason: m.Reason})
	}
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
		fmt.Fprintf(out, "%s%s: %s: %s\n", bullet, m.Tag, m.TestCase, m.Reason)
	}
}

// narrowedRecord leaves out unselected results before anything is tested: the family of
// tests consists of the series shown.
type narrowedRecord struct {
	results.Record
	in *compare
	// left names the series that were left out.
	left []string
}

func (r *narrowedRecord) SamplesOf(ctx context.Context, project, tag string) ([]bench.Samples, error) {
	samples, err := r.Record.SamplesOf(ctx, project, tag)
	return r.narrow(samples), err
}

func (r *narrowedRecord) SamplesInTurns(ctx context.Context, project, a, b string) (ofA, ofB []bench.Samples, err error) {
	ofA, ofB, err = r.Record.SamplesInTurns(ctx, project, a, b)
	return r.narrow(ofA), r.narrow(ofB), err
}

func (r *narrowedRecord) narrow(samples []bench.Samples) []bench.Samples {
	return slices.DeleteFunc(samples, func(s bench.Samples) bool {
		keep := r.in.wants(s.TestCase) && r.in.wantsMetric(s.Metric)
		if !keep {
			r.left = append(r.left, fmt.Sprintf("%s of %s", s.Metric, s.TestCase))
		}
		return !keep
	})
}

func (r *narrowedRecord) MissingResults(ctx context.Context, project, tag string) ([]bench.MissingResult, error) {
	missing, err := r.Record.MissingResults(ctx, project, tag)
	return slices.DeleteFunc(missing, func(m bench.MissingResult) bool { return !r.in.wants(m.TestCase) }), err
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
const shownTags = 20

// measured refuses tags without results. The problem lists tags with results.
func (s *resultHandlers) measured(ctx context.Context, project string, tags ...string) error {
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
	for _, tag := range tags {
		if slices.Contains(known, tag) {
			continue
		}
		// An artifact that is still being measured has results, but is not listed.
		samples, err := s.record.SamplesOf(ctx, project, tag)
		if err != nil {
			return err
		}
		if len(samples) > 0 {
			continue
		}
		all := "none is measured yet; 'benchloom submit' asks for one"
		if len(known) > 0 {
			all = "measured are " + strings.Join(known[:min(len(known), shownTags)], ", ")
			if len(known) > shownTags {
				all += fmt.Sprintf(" and %d more", len(known)-shownTags)
			}
		}
		return problemf(http.StatusNotFound, "unmeasured-tag", "project %s has no results of %q; %s", project, tag, all)
	}
	return nil
}
