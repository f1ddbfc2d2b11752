package apiclient

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// History is a part of a project's history: artifacts in their order, and the values of series for them.
type History struct {
	Project string            `json:"project"`
	Type    bench.RequestType `json:"type" doc:"Type of the requests whose artifacts are listed."`
	// Artifacts are in order; points refer to them by number, from 0.
	Artifacts []HistoryArtifact `json:"artifacts" doc:"The oldest first, releases by version. Points refer to them by number, from 0."`
	Total     int               `json:"total" doc:"All artifacts of the type."`
	Earlier   string            `json:"earlier,omitempty" doc:"Tag of the artifact before the first."`
	Later     string            `json:"later,omitempty" doc:"Tag of the artifact after the last."`
	OuterFrom string            `json:"outer_from,omitempty" doc:"First artifact of a part twice as long; absent: these are all."`
	OuterTo   string            `json:"outer_to,omitempty" doc:"Last artifact of a part twice as long."`
	Narrowed  string            `json:"narrowed,omitempty" doc:"What was left out because it is too much at once."`
	Metrics   []HistoryMetric   `json:"metrics" doc:"Those that only explain others come last."`
	Metric    bench.Metric      `json:"metric" doc:"The metric of all lines, or the unit of their metrics."`
	Series    int               `json:"series" doc:"Series that were found."`
	Facets    []HistoryFacet    `json:"facets,omitempty" doc:"With facets=true: the series that were found, counted by their properties. What is the same for all is left out, unless the words ask for it."`
	Charts    []HistoryChart    `json:"charts" doc:"Those with the largest recent shift first."`
	Left      int               `json:"left" doc:"Charts that are not among them."`
	Places    []HistoryPlace    `json:"places" doc:"Where values were measured; points refer to them by number, from 0."`
}

// HistoryArtifact is an artifact in a history.
type HistoryArtifact struct {
	Tag      string            `json:"tag"`
	At       time.Time         `json:"at" doc:"Date of the commit, or time of the request."`
	Dated    bool              `json:"dated" doc:"The date is known; else it is the time of the request."`
	Subject  string            `json:"subject,omitempty"`
	Author   string            `json:"author,omitempty"`
	PR       int               `json:"pr,omitempty"`
	Type     bench.RequestType `json:"type,omitempty"`
	Request  bench.RequestID   `json:"request,omitempty"`
	Baseline string            `json:"baseline,omitempty" doc:"What its own request compared it with."`
	Releases []string          `json:"releases,omitempty" doc:"Releases that were made of it, or since the artifact before it."`
}

// HistoryMetric counts the series of a metric.
type HistoryMetric struct {
	Metric   bench.Metric `json:"metric"`
	Series   int          `json:"series"`
	Explains bool         `json:"explains,omitempty" doc:"It only explains changes of others."`
}

// HistoryFacet counts series by one of their properties.
type HistoryFacet struct {
	Key    string              `json:"key" enum:"benchmark,line,profile,scenario,backend,target,category,verdict"`
	Values []HistoryFacetValue `json:"values" doc:"Those that the words ask for first, then the most frequent ones, twelve at most."`
}

// HistoryFacetValue is a value that some series have.
type HistoryFacetValue struct {
	Name   string `json:"name"`
	Count  int    `json:"series" doc:"Number of series."`
	Chosen bool   `json:"chosen,omitempty" doc:"The words ask for it already."`
	Text   string `json:"q" doc:"The words with this value added or, if it is chosen, removed."`
}

// HistoryPlace describes the conditions of measuring. Values of two places compare only if all of these are equal.
type HistoryPlace struct {
	SizeClass  bench.SizeClass `json:"size_class"`
	HardwareID string          `json:"hardware_id"`
	CoLocated  bool            `json:"co_located,omitempty" doc:"Measured beside other jobs."`
	Segment    bench.Segment   `json:"segment,omitempty" doc:"Settings of the machine."`
	Suite      string          `json:"suite,omitempty" doc:"Content hash of the suite."`
}

// HistoryChart holds lines that belong together.
type HistoryChart struct {
	Name  string        `json:"name" doc:"Value of the parameter by which charts are split; empty: the series have none."`
	Lines []HistoryLine `json:"lines" doc:"Those with the largest recent shift first."`
	Left  int           `json:"left,omitempty" doc:"Lines that are not among them."`
	// Digest identifies all that a drawing of the chart shows, and Drawn is set if the caller has that drawing: then
	// there are no lines. Both are set only on request, see [HistoryQuery].
	Digest string `json:"-"`
	Drawn  bool   `json:"-"`
}

// HistoryLine is a series, or the geometric mean of several. All its columns have the same length: their entries at one
// index are a point.
type HistoryLine struct {
	Name     string          `json:"name"`
	TestCase *bench.TestCase `json:"test_case,omitempty" doc:"Absent: it is the geometric mean of several series."`
	Metric   bench.Metric    `json:"metric"`
	Unit     string          `json:"unit,omitempty" doc:"Unit of the values, as in benchmark results of Go."`
	Relative bool            `json:"relative,omitempty" doc:"Values are relative to the start of the line, which is 1."`
	Series   []string        `json:"series" doc:"The series that it is made of."`
	Shift    float64         `json:"shift" doc:"Distance of the newest values from those before them, in units of their scatter. It says where to look first, and is no verdict."`
	At       []int           `json:"at" doc:"Numbers of artifacts, ascending."`
	Points   int             `json:"points,omitempty" doc:"With columns: the number of all points."`
	Gaps     []int           `json:"gaps,omitempty" doc:"With columns: numbers of artifacts before which a drawing shows that others have no value."`
	Values   []float64       `json:"values" doc:"What comparisons use: the median, the mean or an extreme, as the suite says."`
	// Low to Runs belong to the points of a single series; N also to those of a geometric mean.
	Low      []float64        `json:"low,omitempty" doc:"Lower quartiles."`
	High     []float64        `json:"high,omitempty" doc:"Upper quartiles."`
	Min      []float64        `json:"min,omitempty" doc:"With columns: only if they are the band."`
	Max      []float64        `json:"max,omitempty"`
	N        []int            `json:"n" doc:"Numbers of values; of a geometric mean, of series."`
	Places   []int            `json:"places,omitempty" doc:"Numbers of places."`
	Runs     []bench.RunID    `json:"runs,omitempty" doc:"With runs=true; empty for artifacts before the newest 1,000."`
	Breaks   []HistoryBreak   `json:"breaks,omitempty" doc:"Where values do not compare with those before."`
	Failures []HistoryFailure `json:"failures,omitempty"`
	Changes  []HistoryChange  `json:"changes,omitempty" doc:"Confirmed changes, as their verdicts are stored."`
}

// HistoryBreak marks the point at which a line begins anew.
type HistoryBreak struct {
	At     int    `json:"at"`
	Reason string `json:"reason"`
}

// HistoryFailure says why an artifact has no value.
type HistoryFailure struct {
	At     int    `json:"at"`
	Reason string `json:"reason"`
}

// HistoryChange is a confirmed change.
type HistoryChange struct {
	At      int     `json:"at"`
	Against string  `json:"against" doc:"What the artifact was compared with."`
	Change  float64 `json:"change" doc:"Relative: 0.1 is ten per cent more."`
}

// HistoryQuery narrows a history; zero values do not narrow.
type HistoryQuery struct {
	Type     bench.RequestType
	From, To string
	Metric   string
	Words    string
	Split    string
	Line     string
	// Chart is the name of the only chart that is wanted, if OneChart is set.
	Chart    string
	OneChart bool
	// Limit, Charts and Lines bound artifacts, charts and the lines of each; 0: as many as the API answers.
	Limit, Charts, Lines int
	// Columns is the width of a drawing in pixels, X its x axis, and Band the band around its lines: only the points that it
	// shows are answered. 0: all are.
	Columns int
	X, Band string
	// Runs asks for the runs that measured the points, Bare leaves out what is known of artifacts besides tag, date and
	// releases.
	Runs, Bare bool
	// Facets asks for counts of the series by their properties.
	Facets bool
	// Drawings are those that the caller has: the lines of their charts are left out. Only an API in the same process asks
	// for them. nil: there are none.
	Drawings Drawings
}

// Drawings are kept drawings of charts. The API asks for them before it answers, in the goroutine of the call.
type Drawings interface {
	// Has reports whether there is a drawing of a chart with a digest; if so, it stays until the answer has been shown.
	Has(digest string) bool
}

// Values returns the query as parameters of the address.
func (q HistoryQuery) Values() url.Values {
	out := url.Values{}
	for name, value := range map[string]string{
		"type": string(q.Type), "from": q.From, "to": q.To, "metric": q.Metric, "q": q.Words, "split": q.Split, "line": q.Line,
		"x": q.X, "band": q.Band,
	} {
		if value != "" {
			out.Set(name, value)
		}
	}
	if q.OneChart {
		out.Set("chart", q.Chart)
		out.Set("one", "true")
	}
	for name, n := range map[string]int{"limit": q.Limit, "charts": q.Charts, "lines": q.Lines, "columns": q.Columns} {
		if n > 0 {
			out.Set(name, strconv.Itoa(n))
		}
	}
	for name, set := range map[string]bool{"runs": q.Runs, "bare": q.Bare, "facets": q.Facets} {
		if set {
			out.Set(name, "true")
		}
	}
	return out
}

// History reads a part of a project's history.
func (c *Client) History(ctx context.Context, project string, q HistoryQuery) (History, error) {
	return read[History](ctx, c, v1("projects", project, "history"), q.Values())
}
