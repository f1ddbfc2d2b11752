package api

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/history"
	"github.com/benchloom/benchloom/internal/results"
)

// historySlots bounds the concurrent histories of clients of the API; each holds some 100 MB at most.
const historySlots = 4

type historyHandlers struct {
	*base
	record results.HistoryRecord
	shifts *results.Shifts
}

func (s *historyHandlers) register() {
	handle(s.base, operation{id: "read-history", method: http.MethodGet, path: "/projects/{project}/history", need: toRead, tag: "results", slots: historySlots, computes: true,
		summary:     "Read the history of a project's series",
		description: "Series are put into charts, those with the largest recent shift first. A line breaks where the size class, the hardware, its settings or the suite changed: values before and after do not compare. Changes are those that were confirmed; nothing here gives a verdict.",
		answers:     []documented{{status: http.StatusOK, json: reflect.TypeFor[apiclient.History](), media: []string{"text/csv"}}}}, s.read)
}

type readHistory struct {
	Project string            `path:"project" doc:"Name of the project." example:"go"`
	Type    bench.RequestType `query:"type" enum:"master,release,try,adhoc" doc:"Artifacts of requests of this type; absent: merged commits, else releases, else try builds, else ad-hoc work."`
	From    string            `query:"from" doc:"Tag of the first artifact. With to alone, the history ends there; with neither, at the newest."`
	To      string            `query:"to" doc:"Tag of the last artifact. With from alone, the history begins there."`
	Limit   int               `query:"limit" minimum:"1" maximum:"20000" default:"200" doc:"Artifacts, unless both ends are named."`
	Metric  string            `query:"metric" doc:"Metric of the series with its line, or unit of their metrics; absent: the unit that most series have."`
	Words   string            `query:"q" maxLength:"400" doc:"Words that must all fit: parts of names, key:value, and -word for what must not."`
	Split   string            `query:"split" enum:"benchmark,line,profile,scenario,backend,target" default:"benchmark" doc:"Parameter by which charts are split."`
	Line    string            `query:"line" enum:"series,all,benchmark,line,profile,scenario,backend,target" default:"series" doc:"What makes a line; of several series, it is their geometric mean."`
	Charts  int               `query:"charts" minimum:"1" maximum:"1000" default:"24"`
	Lines   int               `query:"lines" minimum:"1" maximum:"1000" default:"5" doc:"Lines of a chart."`
	One     bool              `query:"one" doc:"Only the chart that is named."`
	Chart   string            `query:"chart" doc:"Name of the chart, with one=true."`
	Runs    bool              `query:"runs" doc:"Name the run that measured each point, of the newest 1,000 artifacts."`
	Columns int               `query:"columns" minimum:"0" maximum:"10000" doc:"Width of a drawing in pixels: of the points of a line that share a column, only the first, the lowest, the highest and the last are answered, and the newest two, without extremes unless they are its band. 0: all are."`
	X       string            `query:"x" enum:"commit,date" default:"commit" doc:"What the drawing has along x, with columns: artifacts one after another, or by date."`
	Band    history.Band      `query:"band" enum:"none,quartile,minmax" default:"none" doc:"What the drawing has around lines, with columns: its ends are answered as well."`
	Bare    bool              `query:"bare" doc:"Leave out what is known of artifacts besides tag, date and releases."`
	Facets  bool              `query:"facets" doc:"Count the series by their properties."`
	Format  string            `query:"format" enum:"json,csv" default:"json"`
}

func (s *historyHandlers) read(ctx context.Context, in *readHistory) (*written, error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	if err := s.tags(ctx, in.Project, &in.From, &in.To); err != nil {
		return nil, err
	}
	read, err := results.ReadHistory(ctx, s.record, s.suites, results.HistoryQuery{
		Project: in.Project, Type: in.Type, From: in.From, To: in.To, Limit: in.Limit, Metric: in.Metric, Words: in.Words,
		Arrangement: history.Arrangement{Split: in.Split, Line: in.Line, Charts: in.Charts, Lines: in.Lines}, Chart: in.Chart, OneChart: in.One,
		Columns: in.Columns, ByDate: in.X == "date", Band: in.Band, Runs: in.Runs, Bare: in.Bare, Drawn: drawings(ctx), Facets: in.Facets, Shifts: s.shifts,
	})
	switch {
	case errors.Is(err, results.ErrNoSuchArtifact):
		return nil, problemf(http.StatusNotFound, "unmeasured-tag", "the history of project %s cannot be read: %v, or its jobs have not ended; 'benchloom status --project %s' lists the requests", in.Project, err, in.Project)
	case errors.Is(err, results.ErrNoSuchMetric):
		return nil, problemf(http.StatusBadRequest, "unknown-metric", "%v", err)
	case err != nil:
		return nil, fmt.Errorf("reading the history of %s: %w", in.Project, err)
	}
	out := historyOf(read, in)
	if in.Format == "csv" {
		return &written{ContentType: "text/csv; charset=utf-8", Body: historyCSV(out)}, nil
	}
	if handOver(ctx, &out) {
		return &written{ContentType: "application/json", Body: []byte(handedOver)}, nil
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding the history: %w", err)
	}
	return &written{ContentType: "application/json", Body: body}, nil
}

// historyOf writes a history as it is answered.
func historyOf(h results.History, in *readHistory) apiclient.History {
	out := apiclient.History{
		Project: in.Project, Type: h.Type, Artifacts: make([]apiclient.HistoryArtifact, len(h.Artifacts)), Total: h.Total, Earlier: h.Earlier, Later: h.Later,
		OuterFrom: h.OuterFrom, OuterTo: h.OuterTo, Narrowed: strings.Join(h.Narrowed, "; "), Metrics: []apiclient.HistoryMetric{}, Metric: h.Metric,
		Series: h.Series, Charts: []apiclient.HistoryChart{}, Left: h.Left, Places: []apiclient.HistoryPlace{},
	}
	for i := range h.Artifacts {
		a := &h.Artifacts[i]
		out.Artifacts[i] = apiclient.HistoryArtifact{
			Tag: a.HistoryArtifact.Tag, At: a.At, Dated: a.Dated, Subject: a.Subject, Author: a.Author, PR: a.PR, Type: a.Type, Request: a.Request,
			Baseline: a.Baseline, Releases: a.Releases,
		}
	}
	for _, m := range h.Metrics {
		out.Metrics = append(out.Metrics, apiclient.HistoryMetric{Metric: m.Metric, Series: m.Series, Explains: m.Metric.Explains()})
	}
	for _, f := range h.Facets {
		facet := apiclient.HistoryFacet{Key: f.Key, Values: []apiclient.HistoryFacetValue{}}
		for _, v := range f.Values {
			facet.Values = append(facet.Values, apiclient.HistoryFacetValue{Name: v.Name, Count: v.Count, Chosen: v.Chosen, Text: v.Text})
		}
		out.Facets = append(out.Facets, facet)
	}
	for _, p := range h.Places {
		out.Places = append(out.Places, apiclient.HistoryPlace{SizeClass: p.SizeClass, HardwareID: p.HardwareID, CoLocated: p.CoLocated, Segment: p.Segment, Suite: p.Suite})
	}
	for _, c := range h.Charts {
		chart := apiclient.HistoryChart{Name: c.Name, Left: c.Left, Lines: make([]apiclient.HistoryLine, len(c.Lines)), Digest: c.Digest, Drawn: c.Drawn}
		for i, l := range c.Lines {
			chart.Lines[i] = historyLine(l, in)
		}
		out.Charts = append(out.Charts, chart)
	}
	return out
}

func historyLine(l results.HistoryLine, in *readHistory) apiclient.HistoryLine {
	out := apiclient.HistoryLine{
		Name: l.Name, TestCase: l.TestCase, Metric: l.Metric, Relative: l.Relative, Series: l.Series, Shift: l.Shift,
		At: l.At, Values: l.Values, N: l.N, Gaps: l.Gaps,
	}
	if in.Columns > 0 {
		out.Points = l.Count
	}
	if !l.Relative {
		out.Unit = results.Unit(l.Metric)
		out.Low, out.High, out.Places, out.Runs = l.Low, l.High, l.Places, l.Runs
	}
	if !l.Relative && (in.Columns == 0 || in.Band == history.ExtremeBand) {
		out.Min, out.Max = l.Min, l.Max
	}
	for _, b := range l.Breaks {
		out.Breaks = append(out.Breaks, apiclient.HistoryBreak{At: b.At, Reason: b.Reason})
	}
	for _, f := range l.Failures {
		out.Failures = append(out.Failures, apiclient.HistoryFailure{At: f.At, Reason: f.Reason})
	}
	for _, c := range l.Changes {
		out.Changes = append(out.Changes, apiclient.HistoryChange{At: c.At, Against: c.Against, Change: c.Change})
	}
	return out
}

// historyCSV writes a row per point.
func historyCSV(h apiclient.History) []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	number := func(list []float64, i int) string {
		if i >= len(list) {
			return ""
		}
		return strconv.FormatFloat(list[i], 'g', -1, 64)
	}
	write := func(cells ...string) { _ = w.Write(cells) } // into memory
	write("chart", "line", "metric", "unit", "tag", "at", "value", "low", "high", "min", "max", "n", "size_class", "hardware_id")
	for _, c := range h.Charts {
		for _, l := range c.Lines {
			unit := l.Unit
			if l.Relative {
				unit = "of the start"
			}
			for i, at := range l.At {
				a, sizeClass, hardware := h.Artifacts[at], "", ""
				if i < len(l.Places) {
					p := h.Places[l.Places[i]]
					sizeClass, hardware = strconv.Itoa(int(p.SizeClass)), p.HardwareID
				}
				write(c.Name, l.Name, string(l.Metric), unit, a.Tag, a.At.UTC().Format(time.RFC3339), number(l.Values, i), number(l.Low, i), number(l.High, i),
					number(l.Min, i), number(l.Max, i), strconv.Itoa(l.N[i]), sizeClass, hardware)
			}
		}
	}
	w.Flush()
	return out.Bytes()
}
