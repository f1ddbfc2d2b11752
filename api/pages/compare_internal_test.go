package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// anyComparison returns a comparison as the API answers it: metrics that decide and one that
// explains, exact and noisy ones, alone and in turns.
func anyComparison(t *testing.T, random *rand.Rand, benchmarks int) *apiclient.Comparison {
	t.Helper()
	var series []report.Series
	values := func(n int, at, noise float64) (out []float64) {
		for range n {
			out = append(out, at*(1+noise*random.Float64()))
		}
		return out
	}
	for i := range benchmarks {
		for k, metric := range []string{"wall-time", "size:binary", "cache-misses"} {
			s := report.Series{Series: stats.Series{
				Key:   stats.Key{TestCase: stats.TestCase{Benchmark: fmt.Sprintf("b%d", i), Profile: []string{"debug", "opt"}[random.IntN(2)], Scenario: "full", Target: "x"}, Metric: metric},
				Exact: k == 1, Category: stats.Primary,
			}, Deciding: k < 2, Evidence: verdict.Evidence{Exact: k == 1, Delta: []float64{0.01, 0, 0.01}[k]}}
			change := []float64{1, 1, 1.2, 0.5}[random.IntN(4)]
			if k == 1 {
				s.A, s.B = []float64{1000}, []float64{math.Round(1000 * change)}
			} else {
				s.A, s.B = values(5, 1, 0.02), values(5, change, 0.02)
			}
			if k == 0 && random.IntN(2) == 0 {
				for range 3 {
					var pairs []verdict.Pair
					for range 8 {
						pairs = append(pairs, verdict.Pair{A: 1 + 0.001*random.Float64(), B: change * (1 + 0.001*random.Float64())})
					}
					s.Evidence.Sessions = append(s.Evidence.Sessions, pairs)
				}
			}
			series = append(series, s)
		}
	}
	compared, err := report.New(series, report.Standing{})
	require.NoError(t, err)
	text, err := json.Marshal(apiclient.Comparison{A: "1", B: "2", Result: compared, Summary: report.Summarize(compared, report.TestCases{})})
	require.NoError(t, err)
	var read apiclient.Comparison
	require.NoError(t, json.Unmarshal(text, &read))
	return &read
}

func visitOf(t *testing.T, query url.Values) *visit {
	t.Helper()
	return &visit{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/projects/p/compare?"+query.Encode(), nil)}
}

// Whatever is asked for, a row is shown as it was judged, and all are found with show=all.
func TestNoFilterChangesARow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 2))
	words := []string{"b1", "-b1", "profile:opt", "-profile:opt", "metric:wall-time", "changed", "-undecided", "verdict:regression", "verdict:no-difference", "opt", "size:binary", "-category:primary", "noise:", "scenario:", "-"}
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	shown, followed := 0, 0
	for range 300 {
		c := anyComparison(t, random, 1+random.IntN(6))
		query := url.Values{"show": {pick("", "all")}, "only": {pick("", "regression", "improvement", "undecided")}, "group": {pick("", "profile", "metric", "benchmark", "category", "backend")}, "metric": {pick("", "", "wall-time", "cache-misses")}}
		query.Set("sort", pick("certainty", "-certainty", "name", "-name", "metric", "a", "-b", "change", "-change", "n"))
		var chosen []string
		for range random.IntN(3) {
			chosen = append(chosen, pick(words...))
		}
		query.Set("q", strings.Join(chosen, " "))
		v := visitOf(t, query)
		table, err := readTable(v)
		require.NoError(t, err)
		before := slices.Clone(c.Result.Rows)
		require.NoError(t, table.fill(v, c))
		require.Equal(t, before, c.Result.Rows)
		for _, row := range table.Rows {
			require.Contains(t, before, row.Row, query.Encode())
			require.True(t, table.All || row.Remarkable(), query.Encode())
		}
		require.Len(t, table.Rows, table.Found)
		requireGroups(t, table)
		for _, f := range table.Facets {
			for _, value := range f.Values {
				narrowed := maps.Clone(query)
				narrowed.Set("q", value.Text)
				v := visitOf(t, narrowed)
				follows, err := readTable(v)
				require.NoError(t, err)
				require.NoError(t, follows.fill(v, c))
				if value.Chosen {
					require.GreaterOrEqual(t, follows.Found, table.Found, "%s without %s:%s", query.Encode(), f.Key, value.Name)
					continue
				}
				require.Equal(t, value.Count, follows.Found, "%s with %s:%s", query.Encode(), f.Key, value.Name)
				followed++
			}
		}
		query.Set("show", "all")
		query.Del("sort")
		query.Del("group")
		v = visitOf(t, query)
		all, err := readTable(v)
		require.NoError(t, err)
		require.NoError(t, all.fill(v, c))
		require.Equal(t, table.Found+table.Others, all.Found, query.Encode())
		require.True(t, slices.IsSortedFunc(all.Rows, func(a, b comparedRow) int { return certaintyOf(a) - certaintyOf(b) }), "the most certain first")
		shown += table.Found
	}
	require.Greater(t, shown, 100, "the test tests nothing")
	require.Greater(t, followed, 100, "the test follows nothing")
}

// requireGroups requires that the groups of a table hold its rows, each in one, with the means
// that a report of their rows alone has.
func requireGroups(t *testing.T, table comparedTable) {
	t.Helper()
	var rows []comparedRow
	names := make(map[string]bool)
	for _, g := range table.Groups {
		require.False(t, names[g.Name], "%s is there twice", g.Name)
		names[g.Name] = true
		for _, r := range g.Rows {
			if table.Group != "" {
				require.Equal(t, []string{g.Name}, properties(r.Row, table.Group))
			}
		}
		if table.Group != "" && table.All {
			var alone []report.Row
			for _, r := range g.Rows {
				alone = append(alone, r.Row)
			}
			slices.SortStableFunc(alone, func(a, b report.Row) int { return strings.Compare(a.Metric, b.Metric) })
			sum := report.Summarize(report.Report{Rows: alone}, report.TestCases{})
			require.Equal(t, sum.Tally, g.Tally)
			require.Len(t, g.Means, len(sum.Metrics))
			for i, m := range sum.Metrics {
				require.Contains(t, g.Means[i], m.Mean())
			}
			require.Equal(t, len(g.Rows), g.Series)
		}
		rows = append(rows, g.Rows...)
	}
	require.Equal(t, table.Rows, rows)
}

func TestASentenceBeginsWithACapitalLetter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "a change": "A change", "ümlaut": "Ümlaut", "p=1e-10 is below 0.001": "p=1e-10 is below 0.001", "p": "P"} {
		require.Equal(t, want, capital(text))
	}
}

// What a value of a facet is called may have spaces, capital letters and signs.
func TestAFacetNarrowsToWhatItCounts(t *testing.T) {
	t.Parallel()
	var rows []report.Row
	for _, name := range []string{"a b", "A B", "x:y", "-z", "a\u00a0c", ""} {
		rows = append(rows, report.Row{Key: stats.Key{TestCase: stats.TestCase{Benchmark: "one", Profile: name}, Metric: "wall-time"}, Noise: "skewed, as in other series"})
	}
	c := &apiclient.Comparison{Result: report.Report{Rows: rows}}
	found := make(map[string]int)
	read := func(q string) comparedTable {
		v := visitOf(t, url.Values{"show": {"all"}, "q": {q}})
		table, err := readTable(v)
		require.NoError(t, err)
		require.NoError(t, table.fill(v, c))
		return table
	}
	all := read("")
	require.Len(t, all.Facets, 1, "what all rows share tells nothing apart")
	for _, value := range all.Facets[0].Values {
		narrowed := read(value.Text)
		require.Equal(t, value.Count, narrowed.Found, value.Text)
		found[value.Name] = value.Count
		require.True(t, narrowed.Facets[0].Values[0].Chosen)
		require.Empty(t, narrowed.Facets[0].Values[0].Text, "it leads back")
	}
	require.Equal(t, map[string]int{"a b": 2, "x:y": 1, "-z": 1, "a\u00a0c": 1}, found)
	require.Equal(t, 6, read("noise:as-in-other-series").Found)
}

func certaintyOf(r comparedRow) int {
	for i, k := range []verdict.Kind{verdict.Changed, verdict.Undecided, verdict.NoDifference, verdict.NoSuspicion} {
		if r.Is(k) {
			return i
		}
	}
	return 4
}

// However many rows there are, a page shows some of them, and all pages show each once.
func TestManyRowsArePaged(t *testing.T) {
	t.Parallel()
	c := anyComparison(t, rand.New(rand.NewPCG(14, 3)), 200)
	seen := make(map[stats.Key]bool)
	query := url.Values{"show": {"all"}, "sort": {"name"}}
	pages := 0
	for next := "1"; next != ""; pages++ {
		query.Set("page", next)
		v := visitOf(t, query)
		table, err := readTable(v)
		require.NoError(t, err)
		require.NoError(t, table.fill(v, c))
		require.LessOrEqual(t, len(table.Rows), comparedAtOnce)
		for _, r := range table.Rows {
			require.False(t, seen[r.Key], r.Key)
			seen[r.Key] = true
		}
		next = table.Next
	}
	require.Len(t, seen, 600)
	require.Equal(t, 6, pages)
}

func TestBarsStayInTheirBox(t *testing.T) {
	t.Parallel()
	row := func(change float64, interval *stats.Interval) comparedRow {
		r := comparedRow{Row: report.Row{Change: stats.Change{Value: change}, Interval: interval, Delta: 0.01, Sees: 0.5}}
		r.Text.Change = "+"
		return r
	}
	for name, rows := range map[string][]comparedRow{
		"nothing":          {row(0, nil)},
		"small and large":  {row(0.001, &stats.Interval{Low: -0.001, High: 0.002}), row(40, &stats.Interval{Low: 2, High: 1e9})},
		"downwards":        {row(-0.99, &stats.Interval{Low: -1, High: 7})},
		"beyond all sense": {row(math.MaxFloat64, nil), row(-1, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drawBars(rows)
			for _, r := range rows {
				b := r.Bar
				require.True(t, b.Drawn)
				for _, x := range []float64{b.Value, b.Band.X, b.Band.X + b.Band.Width, b.Interval.X, b.Interval.X + b.Interval.Width} {
					require.GreaterOrEqual(t, x, 0.0)
					require.LessOrEqual(t, x, barWidth+1e-6)
				}
				require.GreaterOrEqual(t, r.Change.Value*(b.Value+estimateWidth/2-barZero), 0.0, "its side is that of the change")
			}
		})
	}
}
