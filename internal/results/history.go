package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/filter"
	"github.com/benchloom/benchloom/internal/history"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/store"
)

// HistoryRecord reads histories; *store.Store implements it. [ReadHistory] calls it under no lock, and many readings call it
// concurrently; it is never nil.
type HistoryRecord interface {
	Project(ctx context.Context, name string) (store.Project, error)
	HistoryArtifacts(ctx context.Context, project string, of bench.RequestType, most int) ([]store.HistoryArtifact, error)
	HistoryDetails(ctx context.Context, project string, of bench.RequestType, tags []string) ([]store.HistoryDetail, error)
	HistoryReleases(ctx context.Context, project string, from, to time.Time, commits []string, most int) (releases []store.HistoryRelease, left int, err error)
	SeriesOf(ctx context.Context, project string, most int) (series []store.Series, left int, err error)
	Histories(ctx context.Context, artifacts, series []int64, fields packed.Fields, each func(of []store.History) error) error
	HistoryState(ctx context.Context, project string, artifacts, series []int64) (store.HistoryState, error)
	HistoryRuns(ctx context.Context, artifacts, series []int64) ([]store.HistoryRun, error)
	HistoryFailures(ctx context.Context, artifacts, testCases []int64, most int) (failures []store.HistoryFailure, left int, err error)
	HistoryChanges(ctx context.Context, artifacts []int64, metrics []bench.Metric, most int) (changes []store.HistoryChange, left int, err error)
}

// Bounds of histories.
const (
	// DefaultHistory is the number of artifacts that are read unless others are named.
	DefaultHistory = 200
	// maxHistory bounds the artifacts of a history, of which there are about 5,000 in a year of a busy project.
	maxHistory = 20_000
	// maxHistoryPoints bounds the points that are in memory at once: some 100 bytes each.
	maxHistoryPoints = 600_000
	// maxHistoryMarks bounds the failures, the confirmed changes and the releases that are marked, each.
	maxHistoryMarks = 20_000
	// maxHistorySeries bounds the series of a project that are searched for the largest shifts.
	maxHistorySeries = 100_000
	// maxHistoryRuns bounds the artifacts whose runs are named.
	maxHistoryRuns = 1000
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
	// Type of the requests whose artifacts are listed; empty: merged commits, releases, try builds or ad-hoc work, the first
	// of these types that has artifacts, From and To.
	Type bench.RequestType
	// From and To are the first and the last artifact, of which either may be empty; then at most Limit artifacts, ending at
	// To, else starting at From, else the newest.
	From, To string
	Limit    int
	// Metric of all series, with or without its line; empty: the unit that most series have.
	Metric string
	// Words narrow the series, see package filter.
	Words string
	// Arrangement of the series.
	history.Arrangement
	// Chart is the name of the only chart that is asked for, if OneChart is set.
	Chart    string
	OneChart bool
	// Columns is the width in pixels of a drawing; only the points that it shows are wanted, and extremes only if Band has them.
	// 0: all are. ByDate is set if it places artifacts along x by their dates, and Band is what it draws around lines.
	Columns int
	ByDate  bool
	Band    history.Band
	// Runs asks for the runs that measured the points, Bare leaves out what is known of artifacts besides tag and date.
	Runs, Bare bool
	// Drawn reports whether the caller has the drawing of a chart with a digest; the lines of such a chart are left out. It
	// is called by the goroutine that reads. nil: it has none.
	Drawn func(digest string) bool
	// Facets asks for the counts of the series by their properties.
	Facets bool
	// Shifts keeps the shifts of series; nil: they are not kept.
	Shifts *Shifts
}

// HistoryKeys are the keys of key:value in the words of a history.
var HistoryKeys = []string{"benchmark", "line", "profile", "scenario", "backend", "target", "metric", "category", "verdict"}

// History is a part of a project's history.
type History struct {
	Type      bench.RequestType
	Artifacts []HistoryArtifact
	// Total counts all artifacts of the type. Earlier and Later are the artifacts just beyond the part, OuterFrom and
	// OuterTo the ends of a part twice as long; empty: there is none.
	Total                              int
	Earlier, Later, OuterFrom, OuterTo string
	// Narrowed says what was left out because it is too much at once.
	Narrowed []string
	Metrics  []HistoryMetric
	Metric   bench.Metric
	// Series counts the series found, Left the charts that are not among Charts. Facets count the series found by their
	// properties.
	Series int
	Facets []filter.Facet
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
	// Digest identifies all that a drawing of the chart shows; empty: it is not known. Drawn is set if the caller has the
	// drawing, and the lines are left out.
	Digest string
	Drawn  bool
}

// HistoryLine is one line: a series, or the geometric mean of several.
type HistoryLine struct {
	Name string
	// Series names the series that it is made of; TestCase is set if it is a single one.
	Series   []string
	TestCase *bench.TestCase
	Metric   bench.Metric
	// Relative is set if values are relative to the start of the line.
	Relative bool
	Shift    float64
	// Cut holds its points, or only those that a drawing shows, Runs the runs that measured these, if requested, and Count is
	// the number of all.
	history.Cut
	Runs     []bench.RunID
	Count    int
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
		r.facts, r.suite = loaded, project.SuiteHash
	}
	for _, step := range []func(context.Context) error{r.part, r.choose, r.describe, r.readState, r.arrange, r.findFailures, r.readLines, r.nameRuns} {
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
	// suite is the content hash of the suite; empty: there is none.
	suite string
	// state identifies the results of the part before they were read, and learned holds the shifts computed from them,
	// to be kept under a key if the state is the same afterwards.
	state   store.HistoryState
	learned learnedShifts
	out     History
	// ids of the artifacts, by their numbers in the part.
	ids []int64
	at  map[int64]int
	// found are the series that fit, in the order of series.
	found  []store.Series
	series []history.Series
	// changes are by test case and metric.
	changes map[caseMetric][]store.HistoryChange
	// compared says where points do not compare.
	compared history.Changes
	// charts are the charts of the answer, and failures those of their series, by test case.
	charts   []history.Chart
	failures map[int64][]HistoryFailure
	// drawing of the part; drawn holds the lines of one series, odd the artifacts for which a series has a value that is not
	// finite, both by the index of the series.
	drawing history.Drawing
	drawn   map[int]drawnLine
	odd     map[int][]int
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
			line = slices.Clone(line) // the record's own stays as it is
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

// ends returns the places of the first artifact of the requested part and of the one after its last, or the missing tag.
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
	r.out.Artifacts = make([]HistoryArtifact, 0, to-from)
	for _, a := range line[from:to] {
		r.out.Artifacts = append(r.out.Artifacts, HistoryArtifact{HistoryArtifact: a, HistoryDetail: store.HistoryDetail{Tag: a.Tag}})
	}
	r.number()
}

// number numbers the artifacts of the part.
func (r *historyReading) number() {
	r.ids, r.at = make([]int64, len(r.out.Artifacts)), make(map[int64]int, len(r.out.Artifacts))
	for i := range r.out.Artifacts {
		id := r.out.Artifacts[i].ID
		r.ids[i], r.at[id] = id, i
	}
}

// narrow notes what is left out, unless left is 0.
func (r *historyReading) narrow(left int, format string, args ...any) {
	if left > 0 {
		r.out.Narrowed = append(r.out.Narrowed, fmt.Sprintf(format, args...))
	}
}

// describe adds what is known of the artifacts, and which of them were released.
func (r *historyReading) describe(ctx context.Context) error {
	if len(r.out.Artifacts) == 0 {
		return nil
	}
	tags := make([]string, len(r.out.Artifacts))
	known := make(map[string]int, len(tags))
	for i := range r.out.Artifacts {
		tags[i] = r.out.Artifacts[i].HistoryArtifact.Tag
		known[tags[i]] = i
	}
	if !r.query.Bare {
		details, err := r.record.HistoryDetails(ctx, r.query.Project, r.out.Type, tags)
		if err != nil {
			return err
		}
		for _, d := range details {
			r.out.Artifacts[known[d.Tag]].HistoryDetail = d
		}
	}
	if r.out.Type == bench.Release {
		return nil // all of them are
	}
	first, last := r.out.Artifacts[0].At, r.out.Artifacts[len(tags)-1].At
	releases, left, err := r.record.HistoryReleases(ctx, r.query.Project, first, last, tags, maxHistoryMarks)
	if err != nil {
		return err
	}
	r.narrow(left, "the oldest %d of %d releases are not marked", left, left+len(releases))
	slices.SortFunc(releases, func(a, b store.HistoryRelease) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Tag, b.Tag)) })
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
