package results

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/history"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/store"
)

// arrange puts the series with the largest shifts into charts.
func (r *historyReading) arrange(ctx context.Context) error {
	if len(r.found) == 0 || len(r.ids) == 0 {
		return nil
	}
	shifts, err := r.shifts(ctx)
	if err != nil {
		return err
	}
	r.charts, r.out.Left = r.query.Arrange(r.series, shifts)
	shown := 0
	for _, c := range r.charts {
		for _, l := range c.Lines {
			shown += len(l.Series)
		}
	}
	if most := max(2, maxHistoryPoints/shown); most < len(r.ids) {
		older := len(r.ids) - most
		r.narrow(older, "only the newest %d of %d artifacts are read, because these lines have %d series; narrow the series to see more", most, len(r.ids), shown)
		r.out.Earlier, r.out.Artifacts = r.out.Artifacts[older-1].HistoryArtifact.Tag, r.out.Artifacts[older:]
		r.number()
	}
	return nil
}

// findFailures finds out why the series of the charts lack values.
func (r *historyReading) findFailures(ctx context.Context) error {
	var cases []int64
	for _, c := range r.charts {
		for _, l := range c.Lines {
			for _, s := range l.Series {
				cases = append(cases, r.found[s].TestCaseID)
			}
		}
	}
	if len(cases) == 0 {
		return nil
	}
	slices.Sort(cases)
	failures, left, err := r.record.HistoryFailures(ctx, r.ids, slices.Compact(cases), maxHistoryMarks)
	if err != nil {
		return err
	}
	r.narrow(left, "%d failures of the oldest artifacts are not marked", left)
	r.failures = make(map[int64][]HistoryFailure)
	for _, f := range failures {
		r.failures[f.TestCaseID] = append(r.failures[f.TestCaseID], HistoryFailure{At: r.at[f.ArtifactID], Reason: f.Reason})
	}
	return nil
}

// readLines reads the points of the charts of which the caller has no drawing.
func (r *historyReading) readLines(ctx context.Context) error {
	if len(r.charts) == 0 {
		return nil
	}
	if err := r.lookForDrawings(); err != nil {
		return err
	}
	var shown []int
	alone := make(map[int]bool)
	for i, c := range r.charts {
		if r.out.Charts[i].Drawn {
			continue
		}
		for _, l := range c.Lines {
			shown = append(shown, l.Series...)
			alone[l.Series[0]] = r.alone(l)
		}
	}
	r.drawing = history.NewDrawing(r.along(), r.query.Columns, r.query.Band)
	r.drawn, r.odd = make(map[int]drawnLine), make(map[int][]int)
	if err := r.read(ctx, r.ids, shown, r.drawnFields(), &placing{list: &r.out.Places}, func(s int, line mergedLine) {
		r.odd[s] = slices.Clone(line.odd)
		if alone[s] {
			r.drawn[s] = r.lay(line.points)
		} else {
			r.series[s].Points = slices.Clone(line.points)
		}
	}); err != nil {
		return err
	}
	if err := r.keep(ctx); err != nil {
		return err
	}
	for i, c := range r.charts {
		if one := &r.out.Charts[i]; !one.Drawn {
			one.Lines = make([]HistoryLine, len(c.Lines))
			for k, l := range c.Lines {
				r.line(&one.Lines[k], l)
			}
		}
	}
	return nil
}

// drawnFields returns the fields of summaries that lines have, besides their values.
func (r *historyReading) drawnFields() packed.Fields {
	if r.query.Columns > 0 && r.query.Band != history.ExtremeBand {
		return packed.QuartileFields
	}
	return packed.AllFields
}

// read reads some series on artifacts, whose points are numbered from the first and have at least some fields. Lines are
// valid until each returns.
func (r *historyReading) read(ctx context.Context, artifacts []int64, some []int, fields packed.Fields, places *placing, each func(s int, line mergedLine)) error {
	ids, of := make([]int64, len(some)), make(map[int64]int, len(some))
	for i, s := range some {
		ids[i], of[r.found[s].ID] = r.found[s].ID, s
		fields = fields.With(aggregateFields(r.facts.Aggregation(r.found[s].Metric)))
	}
	m := newMerging(artifacts, places.number)
	return r.record.Histories(ctx, artifacts, ids, fields, func(histories []store.History) error {
		s := of[histories[0].Series]
		each(s, m.merge(histories, r.facts.Aggregation(r.found[s].Metric)))
		return nil
	})
}

// placing numbers places as they are met.
type placing struct {
	list    *[]history.Place
	numbers map[history.Place]int
}

func (p *placing) number(of history.Place) int {
	n, there := p.numbers[of]
	if !there {
		if p.numbers == nil {
			p.numbers = make(map[history.Place]int)
		}
		n = len(*p.list)
		p.numbers[of], *p.list = n, append(*p.list, of)
	}
	return n
}

// alone reports whether a line is one series, not the mean of several.
func (r *historyReading) alone(l history.Line) bool {
	return len(l.Series) == 1 && r.query.Line != history.AllSeries
}

// along returns the places of the artifacts along x.
func (r *historyReading) along() []float64 {
	places := make([]float64, len(r.out.Artifacts))
	for i := range r.out.Artifacts {
		if places[i] = float64(i); r.query.ByDate {
			places[i] = float64(r.out.Artifacts[i].At.Unix())
		}
	}
	return places
}

// drawnLine is a line of the answer, with the number of its points before those that no drawing shows were left out.
type drawnLine struct {
	history.Cut
	runs  []bench.RunID // of its points, to be named; nil: not requested
	count int
}

// lay returns the points of a line that are answered.
func (r *historyReading) lay(points []history.Point) drawnLine {
	r.compared.Places = r.out.Places
	line := drawnLine{count: len(points)}
	if r.query.Columns > 0 {
		line.Cut = r.drawing.Cut(points, &r.compared)
	} else {
		line.Cut = history.Cut{Fields: history.FieldsOf(points), Breaks: history.Breaks(points, &r.compared)}
	}
	if r.query.Runs {
		line.runs = make([]bench.RunID, len(line.At))
	}
	return line
}

// line makes one line.
func (r *historyReading) line(line *HistoryLine, l history.Line) {
	line.Name, line.Shift, line.Metric = l.Name, l.Shift, r.out.Metric
	var several []history.Series
	for _, s := range l.Series {
		one, testCase := r.series[s], r.found[s].TestCaseID
		several, line.Series = append(several, one), append(line.Series, one.Name(nil))
		for _, change := range r.changes[caseMetric{testCase, one.Metric}] {
			if at, there := r.at[change.ArtifactID]; there {
				line.Changes = append(line.Changes, HistoryChange{At: at, Against: change.Against, Change: change.Change})
			}
		}
		for _, at := range r.odd[s] {
			line.Failures = append(line.Failures, HistoryFailure{At: at, Reason: "a value is not finite"})
		}
		line.Failures = append(line.Failures, r.failures[testCase]...)
	}
	slices.SortFunc(line.Failures, func(a, b HistoryFailure) int { return cmp.Or(a.At-b.At, strings.Compare(a.Reason, b.Reason)) })
	slices.SortFunc(line.Changes, func(a, b HistoryChange) int { return cmp.Or(a.At-b.At, strings.Compare(a.Against, b.Against)) })
	if r.alone(l) {
		drawn := r.drawn[l.Series[0]]
		line.TestCase, line.Metric, line.Cut, line.Runs, line.Count = &several[0].TestCase, several[0].Metric, drawn.Cut, drawn.runs, drawn.count
		return
	}
	mean := slices.DeleteFunc(history.Mean(several, r.out.Places), func(p history.Point) bool { return !finite(p.Value) })
	drawn := r.lay(mean)
	line.Relative, line.Cut, line.Count = true, drawn.Cut, drawn.count
}

// nameRuns names the runs that measured the points of the newest artifacts.
func (r *historyReading) nameRuns(ctx context.Context) error {
	if !r.query.Runs {
		return nil
	}
	var series []int64
	for _, s := range slices.Sorted(maps.Keys(r.drawn)) {
		series = append(series, r.found[s].ID)
	}
	runs, err := r.record.HistoryRuns(ctx, r.ids[max(0, len(r.ids)-maxHistoryRuns):], series)
	if err != nil {
		return err
	}
	type measured struct {
		series int64
		at     int
		bench.Surrounding
	}
	of := make(map[measured]bench.RunID, len(runs))
	for _, run := range runs {
		of[measured{run.SeriesID, r.at[run.ArtifactID], run.Surrounding}] = run.Run
	}
	for s, line := range r.drawn {
		for i := range line.runs {
			p := line.Point(i)
			line.runs[i] = of[measured{r.found[s].ID, p.At, r.out.Places[p.Place].Surrounding}]
		}
	}
	return nil
}
