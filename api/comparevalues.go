package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

type comparedValues struct {
	Project string `query:"project" required:"true"`
	A       string `query:"a" doc:"Tag of the baseline; absent: what B was or will be compared with by its own request."`
	B       string `query:"b" required:"true" doc:"Tag of the artifact to judge."`
	Row     string `query:"row" required:"true" maxLength:"3000" doc:"ID of the row: benchmark, profile, scenario, backend, target, line if there is one, and metric, separated by slashes, each escaped as a part of a path." example:"gin/build/full/gc/x86_64-unknown-linux-gnu/wall-time"`
}

// comparedValues lists the values behind a row. Without values the list is empty; the
// comparison says why.
func (s *resultHandlers) comparedValues(ctx context.Context, in *comparedValues) (*body[apiclient.ComparedValues], error) {
	out, key, err := s.valuesOf(ctx, in)
	if err != nil {
		return nil, err
	}
	if out.Profilers, err = s.profilers(ctx, in.Project, key.Benchmark); err != nil {
		return nil, err
	}
	out.Turns, err = turnsPreview(out.Values)
	return answer(out, err)
}

// profilers lists the profilers of the project's suite for a benchmark.
func (s *resultHandlers) profilers(ctx context.Context, project, benchmark string) ([]string, error) {
	p, err := s.project(ctx, project, http.StatusNotFound)
	if err != nil || p.SuiteHash == "" {
		return []string{}, err
	}
	loaded, err := s.suites.Suite(ctx, p.SuiteHash)
	if err != nil {
		return nil, fmt.Errorf("reading the suite of project %s: %w", project, err)
	}
	return notNil(loaded.Profilers(benchmark)), nil
}

// valuesOf reads the values behind a row and the row's key, and writes the tags of both artifacts in full.
func (s *resultHandlers) valuesOf(ctx context.Context, in *comparedValues) (none apiclient.ComparedValues, key stats.Key, err error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return none, key, err
	}
	if key, err = report.ParseRowID(in.Row); err != nil {
		return none, key, invalid("%s", err)
	}
	if err := s.pair(ctx, in.Project, &in.A, &in.B); err != nil {
		return none, key, err
	}
	found, complete, err := s.record.ComparedValues(ctx, in.Project, [2]string{in.A, in.B}, results.TestCase(key.TestCase), results.Metric(key))
	if err != nil {
		return none, key, err
	}
	out := apiclient.ComparedValues{Project: in.Project, A: in.A, B: in.B, Row: in.Row, Values: make([]apiclient.ComparedValue, len(found)), More: !complete}
	where, shared := sharedBy(found, in.A, in.B)
	for i, v := range found {
		out.Values[i] = comparedValue(v, in.A)
		out.Values[i].Elsewhere = !v.InTurns && !(shared && v.Surrounding == where)
	}
	return out, key, nil
}

// turnsPreview tells what measuring a test case in turns would take, by the iterations so
// far: each side takes as long as it took, or as the other if only that one is known.
func turnsPreview(values []apiclient.ComparedValue) (apiclient.TurnsPreview, error) {
	family, err := verdict.NewFamily(1)
	if err != nil {
		return apiclient.TurnsPreview{}, err
	}
	out := apiclient.TurnsPreview{Looks: family.Looks}
	seconds, known := make(map[string]float64), make(map[string]int)
	for _, v := range values {
		if v.DurationSeconds > 0 {
			seconds[v.Side] += v.DurationSeconds
			known[v.Side]++
		}
	}
	pair := 0.0
	for side, n := range known {
		pair += seconds[side] / float64(n) * 2 / float64(len(known))
	}
	out.AtLeastSeconds, out.AtMostSeconds = pair*float64(out.Looks[0]), pair*float64(out.Looks[len(out.Looks)-1])
	return out, nil
}

// sharedBy returns the surrounding in which the stored values of two artifacts are compared.
func sharedBy(values []store.ComparedValue, a, b string) (bench.Surrounding, bool) {
	var sides [2][]bench.Samples
	for _, v := range values {
		if v.InTurns {
			continue
		}
		for i, tag := range []string{a, b} {
			if v.Tag == tag {
				sides[i] = append(sides[i], bench.Samples{Surrounding: v.Surrounding, Segment: v.Segment})
			}
		}
	}
	return results.Shared(sides[0], sides[1])
}

func comparedValue(v store.ComparedValue, a string) apiclient.ComparedValue {
	out := apiclient.ComparedValue{
		Side: "b", Value: v.Value, Iteration: v.Iteration, CollectedAt: v.CollectedAt, Run: v.Run, Collector: v.Collector,
		SizeClass: v.SizeClass, HardwareID: v.HardwareID, CoLocated: v.CoLocated, InTurns: v.InTurns, Disturbed: v.Disturbed,
	}
	if v.Tag == a {
		out.Side = "a"
	}
	if !finite(v.Value) {
		out.Value, out.NotFinite = 0, strconv.FormatFloat(v.Value, 'g', -1, 64)
	}
	var facts struct {
		DurationSeconds float64        `json:"duration_seconds"`
		Machine         *machine.Delta `json:"machine"`
	}
	if json.Unmarshal(v.Facts, &facts) != nil {
		return out // another collector's facts: what they say is not known here
	}
	out.DurationSeconds = facts.DurationSeconds
	if m := facts.Machine; m != nil {
		out.Load, out.Steal = m.Shares()
	}
	return out
}

// finite reports whether JSON can hold a number.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

type earlierValues struct {
	Project string   `query:"project" required:"true"`
	B       string   `query:"b" required:"true" doc:"Tag of the artifact that is judged."`
	Rows    []string `query:"row,explode" required:"true" minItems:"1" maxItems:"200" doc:"IDs of the rows."`
}

// shownEarlier bounds the artifacts before the one that is judged.
const shownEarlier = 30

// earlierValues reads the history of rows. An artifact that no tracked request was made for
// has no place in it.
func (s *resultHandlers) earlierValues(ctx context.Context, in *earlierValues) (*body[apiclient.EarlierValues], error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	names := make([]store.SeriesName, len(in.Rows))
	for i, id := range in.Rows {
		key, err := report.ParseRowID(id)
		if err != nil {
			return nil, invalid("%s", err)
		}
		names[i] = store.SeriesName{TestCase: results.TestCase(key.TestCase), Metric: results.Metric(key)}
	}
	if err := s.tags(ctx, in.Project, &in.B); err != nil {
		return nil, err
	}
	line := []string{in.B}
	r, err := s.named.RequestByTag(ctx, in.Project, in.B)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		if line, err = s.record.Line(ctx, r, shownEarlier+1, admission.CompareVersions); err != nil {
			return nil, err
		}
	}
	centers, err := s.record.Centers(ctx, in.Project, line, names)
	if err != nil {
		return nil, err
	}
	out := apiclient.EarlierValues{Project: in.Project, B: in.B, Tags: line, Rows: make([]apiclient.EarlierRow, len(in.Rows))}
	for i, id := range in.Rows {
		out.Rows[i] = apiclient.EarlierRow{Row: id, Values: valuesOn(centers[names[i]], line)}
	}
	return answer(out, nil)
}

// valuesOn returns the values of a series on each artifact of a line, all of the surrounding
// in which the last one was measured, or else any.
func valuesOn(centers []store.Center, line []string) []*float64 {
	values := make([]*float64, len(line))
	if len(centers) == 0 {
		return values
	}
	own := line[len(line)-1]
	best := &centers[0]
	for i := range centers {
		c := &centers[i]
		if of, known := c.Tag == own, best.Tag == own; of && !known || of == known && c.Before(best.Surrounding) {
			best = c
		}
	}
	for i := range centers {
		c := &centers[i]
		if at := slices.Index(line, c.Tag); at >= 0 && c.Surrounding == best.Surrounding && finite(c.Value) {
			values[at] = &c.Value
		}
	}
	return values
}
