package api_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/benchloom/benchloom/api/pages"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// onlyComparison is an API that knows one comparison, of whatever is asked for.
type onlyComparison struct {
	pages.API
	comparison apiclient.Comparison
}

func (a onlyComparison) Info(context.Context) (apiclient.Info, error) { return apiclient.Info{}, nil }

func (a onlyComparison) Revision(_ context.Context, subject string) (apiclient.Revision, error) {
	return apiclient.Revision{Subject: subject, Revision: "1"}, nil
}

func (a onlyComparison) Project(_ context.Context, name string) (apiclient.Project, error) {
	return apiclient.Project{Name: name}, nil
}

func (a onlyComparison) Requests(_ context.Context, q apiclient.RequestQuery) (apiclient.RequestList, error) {
	return apiclient.RequestList{Requests: []apiclient.Request{{ID: "rabcdefghij", Project: q.Project, Tag: q.Tag, Type: bench.Master, Status: bench.Completed}}}, nil
}

func (a onlyComparison) Compare(_ context.Context, q apiclient.CompareQuery) (apiclient.Comparison, error) {
	out := a.comparison
	out.A, out.B = q.A, q.B
	return out, nil
}

func (a onlyComparison) CompareText(context.Context, apiclient.CompareQuery, string) (string, error) {
	return strings.Join(nasty, "\n"), nil
}

func (a onlyComparison) EarlierValues(_ context.Context, _, _ string, rows []string) (apiclient.EarlierValues, error) {
	var out apiclient.EarlierValues
	for _, id := range rows {
		low, high := -1e308, 1e308
		out.Rows = append(out.Rows, apiclient.EarlierRow{Row: id, Values: []*float64{&low, nil, &high, &high}})
	}
	return out, nil
}

// withoutEarlier is a comparison whose earlier values cannot be read.
type withoutEarlier struct{ onlyComparison }

func (withoutEarlier) EarlierValues(context.Context, string, string, []string) (apiclient.EarlierValues, error) {
	return apiclient.EarlierValues{}, errors.New("a database that is too busy")
}

func (a onlyComparison) ComparedValues(_ context.Context, _, _, _, row string) (apiclient.ComparedValues, error) {
	out := apiclient.ComparedValues{Row: row, More: true}
	for i, name := range nasty {
		for _, side := range []string{"a", "b"} {
			out.Values = append(out.Values, apiclient.ComparedValue{Side: side, Value: []float64{-1e308, 0, 1e308}[i%3], Collector: name, Disturbed: name, HardwareID: name, Elsewhere: i == 1})
		}
	}
	return out, nil
}

// shows opens a page of the service that knows one comparison.
func (a onlyComparison) shows(t *testing.T, path string) shownPage {
	t.Helper()
	return shows(t, a, path)
}

// shows opens a page of a service.
func shows(t *testing.T, a pages.API, path string) shownPage {
	t.Helper()
	all, err := pages.New(pages.Config{
		API: func(string) (pages.API, error) { return a, nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler), Random: rand.Reader,
	})
	require.NoError(t, err)
	mux := http.NewServeMux()
	for pattern, handler := range all.Handlers() {
		mux.HandleFunc(pattern, handler)
	}
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	root, err := html.Parse(strings.NewReader(answer.Body.String()))
	require.NoError(t, err)
	return shownPage{reply{status: answer.Code, header: answer.Header(), body: answer.Body.String()}, root}
}

// One row is spoken of as one, several as several.
func TestUndecidedRowsAreCounted(t *testing.T) {
	t.Parallel()
	var series []report.Series
	for _, want := range []string{"Why 1 is undecided", "Why 2 are undecided"} {
		s := report.Series{Series: stats.Series{
			Key: stats.Key{TestCase: stats.TestCase{Benchmark: want, Target: string(linux)}, Metric: "wall-time"}, A: []float64{1, 1, 1}, B: []float64{2, 2, 2},
		}, Deciding: true, Evidence: verdict.Evidence{Delta: 0.01}}
		s.Stored = &report.Stored{Verdict: verdict.Verdict{Kind: verdict.Undecided}}
		series = append(series, s)
		compared, err := report.New(series, report.Standing{})
		require.NoError(t, err)
		known := onlyComparison{comparison: apiclient.Comparison{Result: compared, Summary: report.Summarize(compared, report.TestCases{})}}
		require.Contains(t, known.shows(t, "/projects/p/compare?a=a1&b=b1").text(), want)
	}
}

// Benchmarks, metrics, machines and reasons with names as an attacker would choose them do no
// harm, wherever a comparison shows them.
func TestNamesInAComparisonAreOnlyText(t *testing.T) {
	t.Parallel()
	var series []report.Series
	var missing []apiclient.MissingTestCase
	for _, name := range nasty {
		for _, metric := range []string{"wall-time", name} {
			s := report.Series{Series: stats.Series{
				Key: stats.Key{TestCase: stats.TestCase{Benchmark: name, Profile: name, Scenario: name, Backend: name, Target: name}, Line: name, Metric: metric},
				A:   []float64{1, 1, 1}, B: []float64{2, 2, 2},
			}, Deciding: true, Noise: name, Evidence: verdict.Evidence{Delta: 0.01}}
			s.Stored = &report.Stored{Verdict: verdict.Verdict{Kind: verdict.Undecided, Reason: name, Needs: name}, Against: name}
			series = append(series, s)
		}
		for _, tag := range []string{"a1", "b1"} {
			missing = append(missing, apiclient.MissingTestCase{Tag: tag, TestCase: bench.TestCase{Benchmark: name, Target: linux}, Reason: name})
		}
	}
	compared, err := report.New(series, report.Standing{Hint: markup + backwards})
	require.NoError(t, err)
	summary := report.Summarize(compared, report.TestCases{A: []stats.TestCase{{Benchmark: backwards, Target: string(linux)}}})
	summary.Warnings = nasty
	part := apiclient.MeasuredPart{Target: bench.Target(markup), Pool: backwards, HardwareID: long, Suite: markup, Collectors: []string{markup, backwards}, TestCases: 1}
	text, err := json.Marshal(apiclient.Comparison{
		Result: compared, Summary: summary, Missing: missing, Differences: nasty, Previous: backwards, Next: markup,
		Sides: []apiclient.ComparedSide{{Tag: "a1", Parts: []apiclient.MeasuredPart{part}}, {Tag: "b1", Parts: []apiclient.MeasuredPart{part}}},
	})
	require.NoError(t, err)
	var known onlyComparison
	require.NoError(t, json.Unmarshal(text, &known.comparison))
	for _, query := range []string{"", "&show=all&sort=-name", "&metric=wall-time", "&open=markdown", "&q=benchmark:none", "&cols=p&cols=median"} {
		p := known.shows(t, "/projects/p/compare?a=a1&b=b1"+query)
		require.Equal(t, http.StatusOK, p.status, p.text())
		p.requireSound(t, query)
		p.requireHarmless(t, query)
	}
	for _, r := range compared.Rows {
		opened := known.shows(t, "/projects/p/compare?"+url.Values{"a": {"a1"}, "b": {"b1"}, "open": {r.ID()}, "group": {"profile"}}.Encode())
		if strings.ContainsFunc(r.Benchmark+r.Metric, unicode.IsControl) {
			require.Equal(t, http.StatusBadRequest, opened.status, "no collector delivers such a name")
			continue
		}
		require.Equal(t, http.StatusOK, opened.status, opened.text())
		opened.requireSound(t, r.ID())
		opened.requireHarmless(t, r.ID())
		require.NotContains(t, opened.section("row"), "is not there")
	}
	p := known.shows(t, "/projects/p/compare?a=a1&b=b1")
	require.Len(t, p.rows(), 6)
	for _, word := range []string{`<img src=x onerror=alert(1)>`, "gnp.exe"} {
		require.Contains(t, p.section("rows"), word)
		require.Contains(t, p.section("uncompared"), word)
	}
}

// An artifact of which no date, request or machine is known is compared like any other.
func TestAComparisonNeedsNoFacts(t *testing.T) {
	t.Parallel()
	series := report.Series{Series: stats.Series{Key: stats.Key{TestCase: stats.TestCase{Benchmark: "one"}, Metric: "wall-time"}, A: []float64{0}, B: []float64{3}}, Deciding: true, Evidence: verdict.Evidence{Delta: 0.01}}
	compared, err := report.New([]report.Series{series}, report.Standing{})
	require.NoError(t, err)
	known := onlyComparison{comparison: apiclient.Comparison{Result: compared, Summary: report.Summarize(compared, report.TestCases{})}}
	p := known.shows(t, "/projects/p/compare?a=a1&b=b1")
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, "no facts")
	require.Contains(t, p.section("sides"), "not known")
	require.Contains(t, p.rows()[0], "undefined", "a change from zero has no size")
}

// A comparison does not fail because of what came before it.
func TestAComparisonIsShownWithoutItsEarlierValues(t *testing.T) {
	t.Parallel()
	series := report.Series{Series: stats.Series{Key: stats.Key{TestCase: stats.TestCase{Benchmark: "one"}, Metric: "wall-time"}, A: []float64{1}, B: []float64{3}}, Deciding: true, Evidence: verdict.Evidence{Delta: 0.01}}
	compared, err := report.New([]report.Series{series}, report.Standing{})
	require.NoError(t, err)
	known := onlyComparison{comparison: apiclient.Comparison{Result: compared, Summary: report.Summarize(compared, report.TestCases{})}}
	sound := shows(t, known, "/projects/p/compare?a=a1&b=b1")
	require.Contains(t, sound.section("rows"), "medians on up to 30 artifacts")
	p := shows(t, withoutEarlier{known}, "/projects/p/compare?a=a1&b=b1")
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, "without earlier values")
	require.Contains(t, p.section("rows"), "Earlier: could not be read")
	require.Len(t, p.rows(), len(sound.rows()))
}

// One value, many equal ones, and a row of which the values are gone are drawn without harm.
func TestAnOpenedRowDrawsWhateverThereIs(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]float64{"none": nil, "one": {2}, "equal": slices.Repeat([]float64{3}, 5000), "largest": {-math.MaxFloat64, math.MaxFloat64, 0}} {
		series := report.Series{Series: stats.Series{Key: stats.Key{TestCase: stats.TestCase{Benchmark: "one"}, Metric: "wall-time"}, A: []float64{1}, B: []float64{2}}, Deciding: true, Evidence: verdict.Evidence{Delta: 0.01}}
		compared, err := report.New([]report.Series{series}, report.Standing{})
		require.NoError(t, err)
		known := valuesOnly{onlyComparison{comparison: apiclient.Comparison{Result: compared, Summary: report.Summarize(compared, report.TestCases{})}}, values}
		p := shows(t, known, "/projects/p/compare?a=a1&b=b1&open="+url.QueryEscape("one/////wall-time"))
		require.Equal(t, http.StatusOK, p.status, p.text())
		p.requireSound(t, name)
		marks := 0
		p.each("circle", func(n *html.Node) {
			if attribute(n, "class") != "b" {
				return
			}
			marks++
			y, err := strconv.ParseFloat(attribute(n, "cy"), 64)
			require.NoError(t, err)
			require.True(t, y >= 0 && y <= 160, "%s: %g", name, y)
		})
		require.Equal(t, min(len(values), 1000), marks, name)
		if len(values) == 0 {
			require.Contains(t, p.section("row"), "The values themselves are gone")
		}
	}
}

// valuesOnly knows the values of one row.
type valuesOnly struct {
	onlyComparison
	values []float64
}

func (a valuesOnly) ComparedValues(context.Context, string, string, string, string) (apiclient.ComparedValues, error) {
	var out apiclient.ComparedValues
	for _, value := range a.values {
		out.Values = append(out.Values, apiclient.ComparedValue{Side: "b", Value: value})
	}
	return out, nil
}
