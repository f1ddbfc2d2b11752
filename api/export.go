package api

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/results"
)

type export struct {
	Project string   `query:"project" required:"true"`
	Tags    []string `query:"tag,explode" doc:"Only these artifacts."`
	InTurns bool     `query:"in_turns" doc:"Only what was measured in turns with another artifact, which is left out otherwise."`
	Format  string   `query:"format" enum:"benchfmt,csv,json" default:"benchfmt"`
}

// rowWriter writes collections in one format. An answer calls it from one goroutine, end
// once and last, unless the reading has failed.
type rowWriter interface {
	row(r bench.ExportedCollection) error
	end() error
}

func (s *resultHandlers) export(ctx context.Context, in *export) (*huma.StreamResponse, error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	for i := range in.Tags {
		if err := s.tags(ctx, in.Project, &in.Tags[i]); err != nil {
			return nil, err
		}
	}
	if !in.InTurns {
		if err := s.measured(ctx, in.Project, in.Tags...); err != nil {
			return nil, err
		}
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) { s.stream(ctx, in) }}, nil
}

// stream writes rows as they are read. An error before the first byte is a problem; a
// later one breaks the answer off, so that the client notices that it is incomplete.
func (s *resultHandlers) stream(ctx huma.Context, in *export) {
	sent := &firstWrite{ctx: ctx}
	out := bufio.NewWriterSize(sent, 64<<10)
	var rows rowWriter
	begin := func() {
		contentType := plainText
		switch in.Format {
		case "csv":
			contentType, rows = "text/csv; charset=utf-8", newCSVRows(out)
		case "json":
			contentType, rows = "application/json", &jsonRows{out: out}
		default:
			rows = newBenchfmtRows(out, in.Project)
		}
		ctx.SetHeader("Content-Type", contentType)
	}
	read := s.record.ExportCollections
	if in.InTurns {
		read = s.record.ExportInTurns
	}
	err := read(ctx.Context(), in.Project, in.Tags, func(r bench.ExportedCollection) error {
		if rows == nil {
			begin()
		}
		return rows.row(r)
	})
	if rows == nil {
		begin()
	}
	if err == nil {
		err = rows.end()
	}
	if err != nil && !sent.begun {
		s.refuse(ctx, s.problemOf(ctx.Context(), err))
		return
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		s.Log.WarnContext(ctx.Context(), "an export broke off", "project", in.Project, "error", err, "request_id", requestID(ctx.Context()))
		panic(http.ErrAbortHandler)
	}
}

// firstWrite sends the status with the first byte.
type firstWrite struct {
	ctx   huma.Context
	begun bool
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.ctx.SetStatus(http.StatusOK)
	}
	return w.ctx.BodyWriter().Write(p)
}

// benchfmtRows writes Go's benchmark format.
type benchfmtRows struct {
	out     *benchfmt.Writer
	project string
	units   map[string]bool
}

func newBenchfmtRows(out *bufio.Writer, project string) *benchfmtRows {
	// The format ignores lines that it does not know. A failed write shows up
	// when the buffer is flushed.
	_, _ = fmt.Fprintf(out, "# compare with: benchstat -col tag -ignore collector FILE\n")
	return &benchfmtRows{out: benchfmt.NewWriter(out), project: project, units: make(map[string]bool)}
}

func (w *benchfmtRows) row(r bench.ExportedCollection) error {
	var config []benchfmt.Config
	facts := [][2]string{
		{"project", w.project}, {"tag", r.Tag}, {"target", string(r.TestCase.Target)}, {"pool", r.Pool},
		{"size-class", strconv.Itoa(int(r.SizeClass))}, {"hardware", r.HardwareID}, {"co-located", strconv.FormatBool(r.CoLocated)},
		{"collector", r.Collector},
	}
	if r.InTurns != "" {
		facts = append(facts, [2]string{"in-turns", r.InTurns})
	}
	for _, c := range facts {
		config = append(config, benchfmt.Config{Key: c[0], Value: []byte(oneLine(c[1])), File: true})
	}
	for _, metric := range slices.Sorted(maps.Keys(r.Values)) {
		_, unit := metric.Split()
		if err := w.describe(unit, results.BenchfmtUnit(unit)); err != nil {
			return err
		}
	}
	for _, line := range results.BenchmarkResults(r.TestCase, r.Values) {
		line.Config = config
		if err := w.out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// describe writes once for each unit its direction, and whether it is exact.
func (w *benchfmtRows) describe(metric bench.Metric, unit string) error {
	if w.units[unit] {
		return nil
	}
	w.units[unit] = true
	facts := [][2]string{{"better", string(metric.Direction())}}
	if metric.Exact() {
		facts = append(facts, [2]string{"assume", "exact"})
	}
	for _, f := range facts {
		m := &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: f[0]}, OrigUnit: unit, Value: f[1]}
		if err := w.out.Write(m); err != nil {
			return err
		}
	}
	return nil
}

func (w *benchfmtRows) end() error { return nil }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// csvRows writes one line for each value.
type csvRows struct{ out *csv.Writer }

func newCSVRows(out io.Writer) *csvRows {
	w := csv.NewWriter(out)
	// A failed write shows up in end.
	_ = w.Write([]string{"tag", "kind", "benchmark", "profile", "scenario", "backend", "target", "size_class", "pool", "hardware_id", "co_located", "collector", "iteration", "collected_at", "metric", "value", "disturbed", "segment", "in_turns"})
	return &csvRows{out: w}
}

func (w *csvRows) row(r bench.ExportedCollection) error {
	for _, metric := range slices.Sorted(maps.Keys(r.Values)) {
		err := w.out.Write([]string{
			r.Tag, string(r.Kind), r.TestCase.Benchmark, r.TestCase.Profile, r.TestCase.Scenario, r.TestCase.Backend, string(r.TestCase.Target),
			strconv.Itoa(int(r.SizeClass)), r.Pool, r.HardwareID, strconv.FormatBool(r.CoLocated), r.Collector,
			strconv.Itoa(r.Iteration), r.CollectedAt.UTC().Format(time.RFC3339Nano), string(metric), strconv.FormatFloat(r.Values[metric], 'f', -1, 64), r.Disturbed, string(r.Segment), r.InTurns,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *csvRows) end() error {
	w.out.Flush()
	return w.out.Error()
}

// jsonRows writes an array with one element for each collection.
type jsonRows struct {
	out   *bufio.Writer
	begun bool
}

func (w *jsonRows) row(r bench.ExportedCollection) error {
	separator := ",\n"
	if !w.begun {
		w.begun, separator = true, "[\n"
	}
	if _, err := w.out.WriteString(separator); err != nil {
		return err
	}
	text, err := json.Marshal(apiclient.ExportedCollection{
		Tag: r.Tag, Kind: r.Kind, TestCase: r.TestCase, Collector: r.Collector, Pool: r.Pool, SizeClass: r.SizeClass,
		HardwareID: r.HardwareID, CoLocated: r.CoLocated, Iteration: r.Iteration, CollectedAt: r.CollectedAt, Values: r.Values, Disturbed: r.Disturbed, Segment: r.Segment, InTurns: r.InTurns,
	})
	if err != nil {
		return err
	}
	_, err = w.out.Write(text)
	return err
}

func (w *jsonRows) end() error {
	closing := "\n]\n"
	if !w.begun {
		closing = "[]\n"
	}
	_, err := w.out.WriteString(closing)
	return err
}
