package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/filter"
	"github.com/benchloom/benchloom/internal/history"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// HistoryRecord reads histories; *store.Store implements it. It is called under no lock, and calls are independent.
type HistoryRecord interface {
	Project(ctx context.Context, name string) (store.Project, error)
	HistoryArtifacts(ctx context.Context, project string, of bench.RequestType, most int) ([]store.HistoryArtifact, error)
	HistoryDetails(ctx context.Context, project string, of bench.RequestType, tags []string) ([]store.HistoryDetail, error)
	HistoryReleases(ctx context.Context, project string, from, to time.Time) ([]store.HistoryRelease, error)
	HistorySeriesOf(ctx context.Context, project string) ([]store.HistorySeries, error)
	HistoryPoints(ctx context.Context, artifacts, series []int64) ([]store.HistoryPoint, error)
	HistoryRuns(ctx context.Context, runs []bench.RunID) ([]store.HistoryRun, error)
	HistoryFailures(ctx context.Context, artifacts, testCases []int64, most int) ([]store.HistoryFailure, error)
	HistoryChanges(ctx context.Context, artifacts []int64) ([]store.HistoryChange, error)
}

// Bounds of histories.
const (
	// DefaultHistory is the number of artifacts that are read unless others are named.
	DefaultHistory = 200
	// maxHistory bounds the artifacts of a history, of which there are about 5,000 in a year of a busy project.
	maxHistory = 20_000
	// maxHistoryPoints bounds the points that are in memory at once: some 100 bytes each.
	maxHistoryPoints = 600_000
	// maxHistoryFailures bounds the failures that are marked.
	maxHistoryFailures = 20_000
)

// Errors of histories that name what is not there.
var (
	// ErrNoSuchArtifact reports a tag that the history does not have.
	ErrNoSuchArtifact = errors.New("no such artifact in the history")
	// ErrNoSuchMetric reports a metric that no series has.
	ErrNoSuchMetric = errors.New("no such metric")
)

// HistoryQuery says what is asked of a history.
type HistoryQuery struct {
	Project string
	// Type is that of the requests whose artifacts are listed; empty: merged commits, else releases, else try builds, else
	// ad-hoc work, whatever there is and has From and To.
	Type bench.RequestType
	// From and To are the first and the last artifact; empty: as many as Limit before To, after From, or up to the newest.
	From, To string
	Limit    int
	// Metric is that of all series, or the unit of their lines; empty: the one that most series have.
	Metric string
	// Words narrow the series, see package filter.
	Words string
	// Arrangement of the series.
	history.Arrangement
	// Chart is the name of the only chart that is asked for, if OneChart is set.
	Chart    string
	OneChart bool
}

// HistoryKeys are the keys of key:value in the words of a history.
var HistoryKeys = []string{"benchmark", "line", "profile", "scenario", "backend", "target", "metric", "category", "verdict"}

// History is a part of a project's history.
type History struct {
	Type      bench.RequestType
	Artifacts []HistoryArtifact
	// Total counts all artifacts of the type. Earlier and Later are those just beyond the part, OuterFrom and OuterTo the
	// ends of one twice as long; empty: there is none.
	Total                              int
	Earlier, Later, OuterFrom, OuterTo string
	// Narrowed says what was left out because it is too much at once; empty: nothing was.
	Narrowed string
	Metrics  []HistoryMetric
	Metric   bench.Metric
	// Series counts those that were found, Left the charts that are not among Charts.
	Series int
	Charts []HistoryChart
	Left   int
	// Places are those to which points refer.
	Places []history.Place
}

// HistoryArtifact is an artifact with what is known of it.
type HistoryArtifact struct {
	store.HistoryArtifact
	store.HistoryDetail
	// Releases are the tags of the releases that it was.
	Releases []string
}

// HistoryMetric counts the series of a metric.
type HistoryMetric struct {
	Metric bench.Metric
	Series int
}

// HistoryChart holds the lines that are drawn together.
type HistoryChart struct {
	Name  string
	Lines []HistoryLine
	// Left counts the lines that are not among them.
	Left int
}

// HistoryLine is one line: a series, or the geometric mean of several.
type HistoryLine struct {
	Name string
	// Series are the names of those that it is made of; TestCase and Metric are set if it is one.
	Series   []string
	TestCase *bench.TestCase
	Metric   bench.Metric
	// Relative is set if values are relative to the start of the line.
	Relative bool
	Shift    float64
	Points   []history.Point
	Failures []HistoryFailure
	Changes  []HistoryChange
}

// HistoryFailure says why there is no value at an artifact.
type HistoryFailure struct {
	At     int
	Reason string
}

// HistoryChange is a confirmed change at an artifact, compared with another one.
type HistoryChange struct {
	At      int
	Against string
	Change  float64
}

// ReadHistory reads a part of a project's history. It gives no verdicts: changes are those that are stored.
func ReadHistory(ctx context.Context, record HistoryRecord, suites Suites, q HistoryQuery) (History, error) {
	r := historyReading{record: record, query: q, facts: noFacts{}}
	project, err := record.Project(ctx, q.Project)
	if err != nil {
		return History{}, fmt.Errorf("reading project %s: %w", q.Project, err)
	}
	if project.SuiteHash != "" {
		loaded, err := suites.Suite(ctx, project.SuiteHash)
		if err != nil {
			return History{}, err
		}
		r.facts = loaded
	}
	for _, step := range []func(context.Context) error{r.part, r.choose, r.describe, r.arrange, r.mark} {
		if err := step(ctx); err != nil {
			return History{}, err
		}
	}
	return r.out, nil
}

// historyReading is a history that is being read.
type historyReading struct {
	record HistoryRecord
	query  HistoryQuery
	facts  Facts
	out    History
	// ids are those of the artifacts, at their numbers in the part.
	ids []int64
	at  map[int64]int
	// found are the series that fit, in the order of series.
	found  []store.HistorySeries
	series []history.Series
	// changes are by test case and metric.
	changes map[caseMetric][]store.HistoryChange
	places  map[history.Place]int
	// lines leads from the test cases of lines to the lines.
	lines map[int64][]*HistoryLine
}

type caseMetric struct {
	testCase int64
	metric   bench.Metric
}

// part finds the artifacts between the ends that were asked for.
func (r *historyReading) part(ctx context.Context) error {
	types := []bench.RequestType{bench.Master, bench.Release, bench.Try, bench.AdHoc}
	if r.query.Type != "" {
		types = []bench.RequestType{r.query.Type}
	}
	r.out.Type = types[0]
	var missing string
	for _, t := range types {
		line, err := r.record.HistoryArtifacts(ctx, r.query.Project, t, maxHistory)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			continue
		}
		if t == bench.Release {
			slices.SortStableFunc(line, func(a, b store.HistoryArtifact) int { return admission.CompareVersions(a.Tag, b.Tag) })
		}
		from, to, lacks := ends(line, r.query)
		if lacks != "" {
			missing = cmp.Or(missing, lacks)
			continue
		}
		r.out.Type, r.out.Total = t, len(line)
		r.cut(line, from, to)
		return nil
	}
	if missing == "" {
		missing = cmp.Or(r.query.From, r.query.To)
	}
	if missing != "" {
		return fmt.Errorf("%w: %q", ErrNoSuchArtifact, missing)
	}
	return nil
}

// ends returns the places of the first artifact of the part that was asked for and of the one after its last, or the tag that
// is not there.
func ends(line []store.HistoryArtifact, q HistoryQuery) (from, to int, lacks string) {
	find := func(tag string) int {
		return slices.IndexFunc(line, func(a store.HistoryArtifact) bool { return a.Tag == tag })
	}
	from, to = 0, len(line)
	if q.From != "" {
		if from = find(q.From); from < 0 {
			return 0, 0, q.From
		}
	}
	if q.To != "" {
		if to = find(q.To) + 1; to == 0 {
			return 0, 0, q.To
		}
	}
	switch {
	case q.From == "":
		from = max(0, to-q.Limit)
	case q.To == "":
		to = min(len(line), from+q.Limit)
	}
	return from, max(from, to), ""
}

// cut keeps a part of the line, with what lies around it.
func (r *historyReading) cut(line []store.HistoryArtifact, from, to int) {
	if from > 0 {
		r.out.Earlier = line[from-1].Tag
	}
	if to < len(line) {
		r.out.Later = line[to].Tag
	}
	if half := (to - from + 1) / 2; to > from && to-from < len(line) {
		r.out.OuterFrom, r.out.OuterTo = line[max(0, from-half)].Tag, line[min(len(line), to+half)-1].Tag
	}
	for _, a := range line[from:to] {
		r.out.Artifacts = append(r.out.Artifacts, HistoryArtifact{HistoryArtifact: a, HistoryDetail: store.HistoryDetail{Tag: a.Tag}})
	}
	r.number()
}

// number numbers the artifacts of the part.
func (r *historyReading) number() {
	r.ids, r.at = make([]int64, len(r.out.Artifacts)), make(map[int64]int)
	for i, a := range r.out.Artifacts {
		r.ids[i], r.at[a.ID] = a.ID, i
	}
}

// choose finds the series with the metric and the words that were asked for.
func (r *historyReading) choose(ctx context.Context) error {
	all, err := r.record.HistorySeriesOf(ctx, r.query.Project)
	if err != nil {
		return err
	}
	r.countMetrics(all)
	if r.out.Metric, err = r.metric(); err != nil {
		return err
	}
	changes, err := r.record.HistoryChanges(ctx, r.ids)
	if err != nil {
		return err
	}
	r.changes = make(map[caseMetric][]store.HistoryChange)
	for _, c := range changes {
		k := caseMetric{c.TestCaseID, c.Metric}
		r.changes[k] = append(r.changes[k], c)
	}
	words := filter.Read(r.query.Words, HistoryKeys)
	for _, s := range all {
		one := history.Series{TestCase: s.TestCase, Metric: s.Metric}
		if !s.Metric.Matches(string(r.out.Metric)) || !r.fits(words, s, one) || r.query.OneChart && one.Parameter(r.query.Split) != r.query.Chart {
			continue
		}
		r.found, r.series = append(r.found, s), append(r.series, one)
	}
	r.out.Series = len(r.found)
	return nil
}

// countMetrics lists the metrics of all series; metrics of lines are one by their unit. Those that only explain others come
// last.
func (r *historyReading) countMetrics(all []store.HistorySeries) {
	counts := make(map[bench.Metric]int)
	for _, s := range all {
		_, unit := s.Metric.Split()
		counts[unit]++
	}
	for m, n := range counts {
		r.out.Metrics = append(r.out.Metrics, HistoryMetric{m, n})
	}
	explains := func(m bench.Metric) int { return map[bool]int{true: 1}[m.Explains()] }
	slices.SortFunc(r.out.Metrics, func(a, b HistoryMetric) int {
		return cmp.Or(explains(a.Metric)-explains(b.Metric), strings.Compare(string(a.Metric), string(b.Metric)))
	})
}

// metric returns the metric that was asked for, or the one that decides in most series.
func (r *historyReading) metric() (bench.Metric, error) {
	if r.query.Metric == "" {
		best := HistoryMetric{}
		for _, m := range r.out.Metrics {
			better := m.Series > best.Series || m.Series == best.Series && m.Metric == bench.WallTime
			if best.Series == 0 || better && !m.Metric.Explains() {
				best = m
			}
		}
		return best.Metric, nil
	}
	names := make([]string, len(r.out.Metrics))
	for i, m := range r.out.Metrics {
		if m.Metric.Matches(r.query.Metric) {
			return m.Metric, nil
		}
		names[i] = string(m.Metric)
	}
	has := "it has no series yet"
	if len(names) > 0 {
		has = "it has " + strings.Join(names, ", ")
	}
	return "", fmt.Errorf("%w as %q in project %s: %s", ErrNoSuchMetric, r.query.Metric, r.query.Project, has)
}

// fits reports whether a series has the words that were asked for.
func (r *historyReading) fits(words filter.Filter, s store.HistorySeries, one history.Series) bool {
	return words.Shows(func(key string) []string {
		switch key {
		case "metric":
			_, unit := s.Metric.Split()
			return []string{string(s.Metric), string(unit)}
		case "category":
			return []string{string(r.facts.Category(s.Benchmark))}
		case "verdict":
			var verdicts []string
			for _, c := range r.changes[caseMetric{s.TestCaseID, s.Metric}] {
				verdicts = append(verdicts, "changed", direction(s.Metric, c.Change))
			}
			return verdicts
		}
		return []string{one.Parameter(key)}
	}, func() []string {
		texts := []string{string(s.Metric), s.TestCase.String()}
		for _, p := range history.Parameters {
			texts = append(texts, one.Parameter(p))
		}
		return texts
	})
}

// direction says what a change of a metric is.
func direction(m bench.Metric, change float64) string {
	if change > 0 == (m.Direction() == bench.HigherIsBetter) {
		return "improvement"
	}
	return "regression"
}

// arrange puts the series with the largest shifts into charts, and reads their points.
func (r *historyReading) arrange(ctx context.Context) error {
	if len(r.found) == 0 || len(r.ids) == 0 {
		return nil
	}
	r.places = make(map[history.Place]int)
	newest := min(len(r.ids), history.RecentPoints+history.EarlierPoints, max(2, maxHistoryPoints/len(r.found)))
	if err := r.read(ctx, len(r.ids)-newest, r.all()); err != nil {
		return err
	}
	shifts := make([]float64, len(r.series))
	for i, s := range r.series {
		shifts[i] = history.Shift(s.Points, r.out.Places)
	}
	charts, left := r.query.Arrange(r.series, shifts)
	r.out.Left = left
	var shown []int
	for _, c := range charts {
		for _, l := range c.Lines {
			shown = append(shown, l.Series...)
		}
	}
	if most := max(2, maxHistoryPoints/len(shown)); most < len(r.ids) {
		r.out.Narrowed = fmt.Sprintf("only the newest %d of %d artifacts are read, because these lines have %d series; narrow the series to see more", most, len(r.ids), len(shown))
		first := len(r.out.Artifacts) - most
		r.out.Earlier, r.out.Artifacts = r.out.Artifacts[first-1].HistoryArtifact.Tag, r.out.Artifacts[first:]
		r.number()
		newest = 0 // what was read has other numbers
	}
	if newest < len(r.ids) {
		if err := r.read(ctx, 0, shown); err != nil {
			return err
		}
	}
	r.draw(charts)
	return nil
}

func (r *historyReading) all() []int {
	out := make([]int, len(r.found))
	for i := range out {
		out[i] = i
	}
	return out
}

// read reads the points of some series on the artifacts from a number on.
func (r *historyReading) read(ctx context.Context, from int, some []int) error {
	ids, of := make([]int64, len(some)), make(map[int64]int)
	for i, s := range some {
		ids[i], of[r.found[s].ID] = r.found[s].ID, s
		r.series[s].Points = nil
	}
	points, err := r.record.HistoryPoints(ctx, r.ids[from:], ids)
	if err != nil {
		return err
	}
	var names []bench.RunID
	seen := make(map[bench.RunID]store.HistoryRun)
	for _, p := range points {
		if _, there := seen[p.Run]; !there {
			seen[p.Run], names = store.HistoryRun{}, append(names, p.Run)
		}
	}
	runs, err := r.record.HistoryRuns(ctx, names)
	if err != nil {
		return err
	}
	for _, run := range runs {
		seen[run.Run] = run
	}
	for _, p := range points {
		s := &r.series[of[p.SeriesID]]
		value := r.value(s.Metric, p)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			continue
		}
		run := seen[p.Run]
		s.Points = append(s.Points, history.Point{
			At: r.at[p.ArtifactID], Value: value, Low: p.Low, High: p.High, Min: p.Min, Max: p.Max, N: p.N, Run: p.Run,
			Place: r.place(history.Place{Surrounding: p.Surrounding, Segment: run.Segment, Suite: run.Suite}),
		})
	}
	for _, s := range some {
		slices.SortFunc(r.series[s].Points, func(a, b history.Point) int { return a.At - b.At })
	}
	return nil
}

// place numbers a place.
func (r *historyReading) place(p history.Place) int {
	n, there := r.places[p]
	if !there {
		n = len(r.out.Places)
		r.places[p], r.out.Places = n, append(r.out.Places, p)
	}
	return n
}

// value returns what comparisons use of a point.
func (r *historyReading) value(m bench.Metric, p store.HistoryPoint) float64 {
	switch r.facts.Aggregation(m) {
	case suite.AggregateMedian:
		return p.Middle
	case suite.AggregateMean:
		return p.Mean
	case suite.AggregateMax:
		return p.Max
	}
	return p.Min
}

// draw makes the lines of charts.
func (r *historyReading) draw(charts []history.Chart) {
	r.lines = make(map[int64][]*HistoryLine)
	for _, c := range charts {
		chart := HistoryChart{Name: c.Name, Left: c.Left, Lines: make([]HistoryLine, len(c.Lines))}
		for i, l := range c.Lines {
			line := &chart.Lines[i]
			line.Name, line.Shift, line.Metric = l.Name, l.Shift, r.out.Metric
			var several []history.Series
			for _, s := range l.Series {
				one := r.series[s]
				several, line.Series = append(several, one), append(line.Series, one.Name(nil))
				r.lines[r.found[s].TestCaseID] = append(r.lines[r.found[s].TestCaseID], line)
				for _, change := range r.changes[caseMetric{r.found[s].TestCaseID, one.Metric}] {
					if at, there := r.at[change.ArtifactID]; there {
						line.Changes = append(line.Changes, HistoryChange{At: at, Against: change.Against, Change: change.Change})
					}
				}
			}
			slices.SortFunc(line.Changes, func(a, b HistoryChange) int { return cmp.Or(a.At-b.At, strings.Compare(a.Against, b.Against)) })
			if len(several) == 1 && r.query.Line != history.AllSeries {
				line.TestCase, line.Metric, line.Points = &several[0].TestCase, several[0].Metric, several[0].Points
				continue
			}
			line.Relative, line.Points = true, finite(history.Mean(several, r.out.Places))
		}
		r.out.Charts = append(r.out.Charts, chart)
	}
}

// finite leaves out points that no answer can hold.
func finite(points []history.Point) []history.Point {
	return slices.DeleteFunc(points, func(p history.Point) bool { return math.IsNaN(p.Value) || math.IsInf(p.Value, 0) })
}

// mark adds why values are missing.
func (r *historyReading) mark(ctx context.Context) error {
	if len(r.lines) == 0 {
		return nil
	}
	cases := make([]int64, 0, len(r.lines))
	for id := range r.lines {
		cases = append(cases, id)
	}
	failures, err := r.record.HistoryFailures(ctx, r.ids, cases, maxHistoryFailures)
	if err != nil {
		return err
	}
	for _, f := range failures {
		for _, line := range r.lines[f.TestCaseID] {
			line.Failures = append(line.Failures, HistoryFailure{At: r.at[f.ArtifactID], Reason: f.Reason})
		}
	}
	for _, lines := range r.lines {
		for _, line := range lines {
			slices.SortFunc(line.Failures, func(a, b HistoryFailure) int { return cmp.Or(a.At-b.At, strings.Compare(a.Reason, b.Reason)) })
		}
	}
	return nil
}

// describe adds what is known of the artifacts, and which of them were released.
func (r *historyReading) describe(ctx context.Context) error {
	if len(r.out.Artifacts) == 0 {
		return nil
	}
	tags := make([]string, len(r.out.Artifacts))
	for i, a := range r.out.Artifacts {
		tags[i] = a.HistoryArtifact.Tag
	}
	details, err := r.record.HistoryDetails(ctx, r.query.Project, r.out.Type, tags)
	if err != nil {
		return err
	}
	known := make(map[string]int)
	for i, tag := range tags {
		known[tag] = i
	}
	for _, d := range details {
		r.out.Artifacts[known[d.Tag]].HistoryDetail = d
	}
	if r.out.Type == bench.Release {
		return nil // all of them are
	}
	first, last := r.out.Artifacts[0].At, r.out.Artifacts[len(tags)-1].At
	releases, err := r.record.HistoryReleases(ctx, r.query.Project, first, last)
	if err != nil {
		return err
	}
	for _, release := range releases {
		at, there := known[release.Commit]
		if !there {
			if release.At.Before(first) {
				continue
			}
			// The first artifact that is not older has what was released.
			if at = slices.IndexFunc(r.out.Artifacts, func(a HistoryArtifact) bool { return !a.At.Before(release.At) }); at < 0 {
				continue
			}
		}
		r.out.Artifacts[at].Releases = append(r.out.Artifacts[at].Releases, release.Tag)
	}
	return nil
}
