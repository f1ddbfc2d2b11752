package api_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

// shows opens a page of the service that knows one comparison.
func (a onlyComparison) shows(t *testing.T, path string) shownPage {
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
