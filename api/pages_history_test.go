package api_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/api/pages"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

const goHistory = "/projects/go/history"

func TestAPageShowsAHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.releases(t, 5)
	p := b.page(t, api.RoleReader, goHistory)
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, goHistory)
	require.Contains(t, p.text(), "5 artifacts, 2 series")
	require.Len(t, p.texts("figure"), 1)
	require.Contains(t, p.section("table"), "+40.00 %")
	require.Contains(t, p.links(), "/projects/go/compare?a=1.3.0&b=1.4.0", "the newest with the one before it")
	require.Contains(t, b.page(t, "", "/projects/go").links(), goHistory)

	// Each point of an opened chart leads to its comparison, or to that with the pinned one.
	open := b.page(t, "", goHistory+"?open=gin")
	open.requireSound(t, "open")
	require.Contains(t, open.links(), "/projects/go/compare?a=1.0.0&b=1.1.0")
	require.Contains(t, open.links(), goHistory+"?open=gin&pin=1.1.0#values")
	pinned := b.page(t, "", goHistory+"?open=gin&pin=1.1.0")
	require.Contains(t, pinned.links(), "/projects/go/compare?a=1.1.0&b=1.4.0")
	require.NotContains(t, pinned.links(), "/projects/go/compare?a=1.1.0&b=1.1.0")
	require.Contains(t, pinned.section("values"), "1.1.0 pinned")
	require.Contains(t, pinned.links(), goHistory+"?open=gin#values", "it is released there")
	require.Regexp(t, `quartiles [0-9.]+ m?s to [0-9.]+ m?s, n 5`, pinned.section("values"))

	// A zoom is an address, and so is a chart.
	part := b.page(t, "", goHistory+"?from=1.1.0&to=1.2.0")
	require.Contains(t, part.text(), "2 artifacts of 5")
	require.Subset(t, part.links(), []string{goHistory + "?to=1.0.0", goHistory + "?from=1.3.0", goHistory + "?from=1.0.0&to=1.3.0", goHistory})
	for _, query := range []string{"y=change", "y=geomean", "scale=log", "band=minmax&x=date", "line=scenario&split=target", "metric=max-rss&band=quartile"} {
		shown := b.page(t, "", goHistory+"?"+query)
		require.Equal(t, http.StatusOK, shown.status, shown.text())
		shown.requireSound(t, query)
		require.Len(t, shown.texts("figure"), 1, query)
	}
	// What a scale cannot show is said, not passed over.
	const linear = "Charts of changes have a linear scale"
	require.Contains(t, b.page(t, "", goHistory+"?scale=log&y=change").text(), linear)
	require.Contains(t, b.page(t, "", goHistory+"?scale=log&line=all").text(), linear)
	require.NotContains(t, b.page(t, "", goHistory+"?scale=log").text(), linear)
	require.NotContains(t, b.page(t, "", goHistory+"?y=change").links(), goHistory+"?scale=log&y=change")

	picture := b.send(t, "", http.MethodGet, goHistory+"/chart.svg?chart=gin&y=change", "")
	require.Equal(t, http.StatusOK, picture.status)
	require.Equal(t, "image/svg+xml; charset=utf-8", picture.header.Get("Content-Type"))
	require.NoError(t, wellFormed(picture.body))
	require.Contains(t, picture.body, `class="line"`)
	require.Equal(t, http.StatusNotFound, b.send(t, "", http.MethodGet, goHistory+"/chart.svg?chart=none", "").status)
	require.Equal(t, http.StatusBadRequest, b.send(t, "", http.MethodGet, goHistory+"/chart.svg?chart=gin&open=gin", "").status)
}

// Series are narrowed by links with the numbers that they leave, which keep the rest of the address.
func TestAHistoryIsNarrowedByLinks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.releases(t, 4)
	all := b.page(t, "", goHistory+"?band=quartile")
	all.requireSound(t, "facets")
	require.Contains(t, all.section("facets"), "scenario full 1 incr-patched 1")
	require.NotContains(t, all.section("facets"), "profile", "what all have in common tells nothing")
	to := goHistory + "?band=quartile&q=scenario%3Afull"
	require.Contains(t, all.links(), to+"#charts")
	narrowed := b.page(t, "", to)
	narrowed.requireSound(t, "narrowed")
	require.Contains(t, narrowed.text(), "4 artifacts, 1 series")
	require.Contains(t, narrowed.section("facets"), "scenario full 1")
	require.Contains(t, narrowed.links(), goHistory+"?band=quartile#charts", "the same link leads back")
	require.Equal(t, all.section("facets"), b.page(t, "", goHistory+"?band=quartile").section("facets"), "narrowing changes nothing for others")
	require.Contains(t, b.page(t, "", goHistory+"?q=-full+-incr").text(), "No series fits the words")
	require.Contains(t, b.page(t, "", goHistory+"?open=gin").section("facets"), "scenario full 1", "an opened chart has its own")
}

// Where reading is closed, a chart is read with the cookie of its page, and not without.
func TestTheValuesOfAChartAreReadAsItsPageIs(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.OpenRead = false })
	b.releases(t, 2)
	charts := 0
	b.page(t, api.RoleReader, goHistory).each("figure", func(n *html.Node) {
		charts++
		values := attribute(n, "data-history")
		require.Equal(t, http.StatusUnauthorized, b.send(t, "", http.MethodGet, values, "").status)
		r := b.send(t, "", http.MethodGet, values, "", "Cookie", b.cookieOf(t, api.RoleReader))
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.Equal(t, "application/json", r.header.Get("Content-Type"))
		var h apiclient.History
		require.NoError(t, json.Unmarshal([]byte(r.body), &h))
		require.Len(t, h.Artifacts, 2)
		require.Len(t, h.Charts, 1)
	})
	require.Equal(t, 1, charts)
}

func wellFormed(text string) error {
	parser := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := parser.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Why there is nothing to see is said, each reason in its own words.
func TestAHistoryWithoutChartsSaysWhy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	none := b.page(t, "", goHistory)
	none.requireSound(t, "empty")
	require.Contains(t, none.text(), "The jobs of no artifact have ended yet")
	b.releases(t, 2)
	for query, want := range map[string]string{
		"?from=1.1.0&to=1.0.0": "the first is later than the last",
		"?q=no-such-benchmark": "No series fits the words",
		"?from=9.9":            `"9.9"`,
		"?metric=none-such":    "it has",
		"?pinned=1":            "knows",
	} {
		p := b.page(t, "", goHistory+query)
		p.requireSound(t, query)
		require.Contains(t, p.text(), want, query)
	}
}

// onlyHistory is an API that knows one history, whatever is asked for.
type onlyHistory struct {
	pages.API
	history apiclient.History
}

func (a onlyHistory) Project(context.Context, string) (apiclient.Project, error) {
	return apiclient.Project{}, nil
}

func (a onlyHistory) Info(context.Context) (apiclient.Info, error) { return apiclient.Info{}, nil }

func (a onlyHistory) History(context.Context, string, apiclient.HistoryQuery) (apiclient.History, error) {
	return a.history, nil
}

// shows opens the page of the history.
func (a onlyHistory) shows(t *testing.T, query url.Values) (status int, body string) {
	t.Helper()
	all, err := pages.New(pages.Config{
		API: func(string) (pages.API, error) { return a, nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler), Random: rand.Reader,
	})
	require.NoError(t, err)
	mux := http.NewServeMux()
	for pattern, page := range all.Handlers() {
		mux.HandleFunc(pattern, page)
	}
	out := httptest.NewRecorder()
	mux.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/projects/p/history?"+query.Encode(), nil))
	return out.Code, out.Body.String()
}

// historyOf is the history of lines, each of values by artifact.
func historyOf(artifacts int, names []string, values func(line, at int) float64) apiclient.History {
	h := apiclient.History{Project: "p", Type: bench.Master, Total: artifacts, Metric: bench.WallTime, Metrics: []apiclient.HistoryMetric{{Metric: bench.WallTime, Series: len(names)}}, Series: len(names)}
	for i := range artifacts {
		h.Artifacts = append(h.Artifacts, apiclient.HistoryArtifact{Tag: fmt.Sprintf("%040d", i), At: time.Unix(int64(i)*3600, 0), Dated: i%3 > 0, Request: "rabcdefghij"})
	}
	for i, name := range names {
		l := apiclient.HistoryLine{Name: name, Metric: bench.WallTime, Unit: "sec", TestCase: &bench.TestCase{Benchmark: name}, Series: []string{name}}
		for at := range artifacts {
			v := values(i, at)
			l.At, l.Values, l.N = append(l.At, at), append(l.Values, v), append(l.N, 1)
			l.Low, l.High, l.Min, l.Max, l.Places = append(l.Low, v), append(l.High, v), append(l.Min, v), append(l.Max, v), append(l.Places, 0)
		}
		h.Charts = append(h.Charts, apiclient.HistoryChart{Name: name, Lines: []apiclient.HistoryLine{l}})
	}
	return h
}

func TestAHistoryBearsAnyInput(t *testing.T) {
	t.Parallel()
	one := func(int, int) float64 { return 1 }
	failing := historyOf(3, []string{"b"}, one)
	l := &failing.Charts[0].Lines[0]
	l.At, l.Values, l.N, l.Low, l.High, l.Min, l.Max = nil, nil, nil, nil, nil, nil, nil
	l.Failures = []apiclient.HistoryFailure{{At: 0, Reason: nasty[0]}, {At: 2, Reason: "exit status 3"}}
	marked := historyOf(3, []string{"b"}, one)
	marked.Charts[0].Lines[0].Breaks = []apiclient.HistoryBreak{{At: 1, Reason: nasty[0]}}
	marked.Charts[0].Lines[0].Changes = []apiclient.HistoryChange{{At: 2, Against: nasty[0], Change: 0.1}}
	marked.Artifacts[1].Releases = nasty
	for name, h := range map[string]apiclient.History{
		"one point":          historyOf(1, []string{"b"}, one),
		"5,000 equal points": historyOf(5000, []string{"b"}, one),
		"zero":               historyOf(3, []string{"b"}, func(int, int) float64 { return 0 }),
		"below zero":         historyOf(3, []string{"b"}, func(_, at int) float64 { return float64(-at) }),
		"not a number":       historyOf(3, []string{"b"}, func(_, at int) float64 { return []float64{1, math.NaN(), math.Inf(1)}[at] }),
		"huge":               historyOf(3, []string{"b"}, func(_, at int) float64 { return []float64{1, math.MaxFloat64, -math.MaxFloat64}[at] }),
		"names of others":    historyOf(3, nasty, one),
		"only failures":      failing,
		"breaks and marks":   marked,
		"the same date always": func() apiclient.History {
			h := historyOf(3, []string{"b"}, one)
			h.Artifacts[1].At, h.Artifacts[2].At = h.Artifacts[0].At, h.Artifacts[0].At
			return h
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, query := range []url.Values{{}, {"x": {"date"}}, {"y": {"change"}}, {"scale": {"log"}, "band": {"minmax"}}, {"open": {"b"}}, {"pin": {h.Artifacts[0].Tag}, "open": {"b"}}} {
				status, body := onlyHistory{history: h}.shows(t, query)
				require.Equal(t, http.StatusOK, status, query.Encode())
				for _, bad := range []string{"<script>alert", "ZgotmplZ", ` d="MNaN`, "%!"} {
					require.NotContains(t, body, bad, query.Encode())
				}
				require.Contains(t, body, "<svg")
			}
		})
	}
}

// Addresses that nobody should write are refused, and say what may be written.
func TestAHistoryRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	h := historyOf(2, []string{"b"}, func(int, int) float64 { return 1 })
	for name := range map[string]string{"x": "", "y": "", "scale": "", "band": "", "split": "", "line": "", "type": ""} {
		status, body := onlyHistory{history: h}.shows(t, url.Values{name: {"<b>"}})
		require.Equal(t, http.StatusBadRequest, status, name)
		require.Contains(t, body, "it may be", name)
		require.NotContains(t, body, "<b>", name)
	}
}
