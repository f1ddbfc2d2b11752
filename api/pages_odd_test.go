package api_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/verdict"
)

// told holds the answers of the API and its pages about two artifacts and a history.
type told struct {
	compared           apiclient.Comparison
	history            apiclient.History
	text, markdown     string
	page, whole, lines shownPage
}

// everywhere reads two artifacts, and the history of a metric, in each form that there is.
// None may fail or be unsound.
func (b *bundle) everywhere(t *testing.T, left, right, metric string) told {
	t.Helper()
	var out told
	var err error
	query := apiclient.CompareQuery{Project: "go", A: left, B: right}
	out.compared, err = b.nobody.Compare(t.Context(), query)
	require.NoError(t, err)
	out.text, err = b.nobody.CompareText(t.Context(), query, apiclient.FormatText)
	require.NoError(t, err)
	out.markdown, err = b.nobody.CompareText(t.Context(), query, apiclient.FormatMarkdown)
	require.NoError(t, err)
	at := compareGo + "?" + url.Values{"a": {left}, "b": {right}}.Encode()
	out.page, out.whole = b.bears(t, at), b.bears(t, at+"&show=all")
	var rows []string
	for _, r := range out.compared.Result.Rows[:min(len(out.compared.Result.Rows), 20)] {
		rows = append(rows, r.ID())
	}
	for _, id := range rows {
		_, err := b.nobody.ComparedValues(t.Context(), "go", left, right, id)
		require.NoError(t, err, id)
		b.bears(t, at+"&"+url.Values{"open": {id}}.Encode())
	}
	_, err = b.nobody.EarlierValues(t.Context(), "go", right, rows)
	require.NoError(t, err)

	out.history, err = b.nobody.History(t.Context(), "go", apiclient.HistoryQuery{Metric: metric, Limit: 20_000, Runs: true})
	require.NoError(t, err)
	values := url.Values{"metric": {metric}}
	whole := url.Values{"metric": {metric}}
	if n := len(out.history.Artifacts); n > 0 {
		whole.Set("from", out.history.Artifacts[0].Tag)
		whole.Set("to", out.history.Artifacts[n-1].Tag)
	}
	table := b.send(t, "", http.MethodGet, "/api/v1/projects/go/history?format=csv&"+whole.Encode(), "")
	require.Equal(t, http.StatusOK, table.status, table.body)
	_, err = csv.NewReader(strings.NewReader(table.body)).ReadAll()
	require.NoError(t, err)
	out.lines = b.bears(t, goHistory+"?"+values.Encode())
	for _, more := range []url.Values{{"y": {"change"}}, {"y": {"geomean"}}, {"scale": {"log"}, "band": {"minmax"}, "x": {"date"}}} {
		for name, v := range whole {
			more[name] = v
		}
		b.bears(t, goHistory+"?"+more.Encode())
	}
	for _, c := range out.history.Charts[:min(len(out.history.Charts), 3)] {
		whole.Set("chart", c.Name)
		picture := b.send(t, "", http.MethodGet, goHistory+"/chart.svg?"+whole.Encode(), "")
		require.Equal(t, http.StatusOK, picture.status, picture.body)
		require.NoError(t, wellFormed(picture.body))
		require.NotContains(t, picture.body, "NaN")
		require.NotContains(t, picture.body, "Inf")
	}
	return out
}

// bears opens a page that must be there.
func (b *bundle) bears(t *testing.T, path string) shownPage {
	t.Helper()
	p := b.page(t, "", path)
	require.Equal(t, http.StatusOK, p.status, "%s: %.500s", path, p.text())
	p.requireSound(t, path)
	p.requireHarmless(t, path)
	return p
}

// ended measures releases with values around one, whose jobs have ended.
func (b *bundle) ended(t *testing.T, tags ...string) {
	t.Helper()
	b.project(t)
	c := b.register(t, "c1")
	for _, tag := range tags {
		require.NoError(t, b.store.FinishJobsOf(t.Context(), b.measure(t, tag, 1, c).request.ID))
	}
}

// wallTimes selects the values of the wall time with one scenario.
const wallTimes = `series_id in (select se.id from pstat_series se join test_case tc on tc.id = se.test_case_id where se.metric = 'wall-time' and tc.scenario = 'full')`

// Values that are no finite numbers are told where values are, decide nothing, and leave gaps.
func TestValuesThatAreNotFiniteDecideNothing(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"NaN", "Infinity", "-Infinity"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.ended(t, "1.25.0", "1.26.0", "1.27.0")
			b.past(t, `update pstat p set value = '`+value+`' from collection c where c.id = p.collection_id and c.iteration = 2 and `+wallTimes+`
				and p.artifact_id = (select id from artifact where tag = '1.26.0')`)
			found := b.everywhere(t, "1.25.0", "1.26.0", "wall-time")
			b.everywhere(t, "1.26.0", "1.27.0", "wall-time")
			odd := 0
			for _, r := range found.compared.Result.Rows {
				if r.Metric == "wall-time" && r.Scenario == "full" {
					odd++
					require.True(t, r.Is(verdict.Undecided), r.Reason)
					require.NotEmpty(t, r.Change.Undefined)
				}
			}
			require.Equal(t, 1, odd)
			require.Contains(t, found.text, "not a finite number")

			values, err := b.nobody.ComparedValues(t.Context(), "go", "1.25.0", "1.26.0", fullWallTime)
			require.NoError(t, err)
			require.Len(t, values.Values, 10)
			opened := b.bears(t, compareGo+"?"+url.Values{"a": {"1.25.0"}, "b": {"1.26.0"}, "open": {fullWallTime}}.Encode())
			require.Contains(t, opened.section("row"), "10 values")

			// A sheet holds such values as they are.
			n, err := b.store.PackResults(t.Context(), "go")
			require.NoError(t, err)
			require.Equal(t, 3, n)
			packed := b.everywhere(t, "1.25.0", "1.26.0", "wall-time")
			require.Equal(t, found.text, packed.text)
			require.Equal(t, found.history.Charts, packed.history.Charts)
		})
	}
}

// A series with one value is told, and says nothing.
func TestASeriesWithOneValueIsShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ended(t, "1.25.0")
	alone := b.everywhere(t, "1.25.0", "1.25.0", "wall-time")
	require.Len(t, alone.history.Artifacts, 1)
	for _, c := range alone.history.Charts {
		for _, l := range c.Lines {
			require.Len(t, l.At, 1)
		}
	}
	b.ended(t, "1.26.0")
	b.past(t, `delete from collection where iteration > 1`)
	found := b.everywhere(t, "1.25.0", "1.26.0", "wall-time")
	for _, r := range found.compared.Result.Rows {
		require.Equal(t, []int{1, 1}, []int{r.A.N, r.B.N})
		if !r.Exact && r.Verdict != nil {
			require.True(t, r.Is(verdict.Undecided), r.Reason)
		}
	}
}

// Many equal values are no change.
func TestFiveHundredEqualValuesAreShown(t *testing.T) {
	t.Parallel()
	equalValues(t, 500)
}

func TestLongFiveThousandEqualValuesAreShown(t *testing.T) {
	t.Parallel()
	equalValues(t, 5000)
}

func equalValues(t *testing.T, values int) {
	t.Helper()
	b := setup(t)
	b.ended(t, "1.25.0", "1.26.0")
	b.past(t, `
		update pstat set value = 2 where `+wallTimes+`;
		with more as (
			insert into collection (result_id, iteration, collected_at)
			select r.id, n, timestamptz '2026-01-03' + n * interval '1 second' from test_result r, generate_series(101, 95 + `+fmt.Sprint(values)+`) n returning id, result_id
		)
		insert into pstat (series_id, artifact_id, collection_id, value)
		select se.id, r.artifact_id, more.id, 2 from more join test_result r on r.id = more.result_id
		join pstat_series se on se.test_case_id = r.test_case_id and se.metric = 'wall-time' join test_case tc on tc.id = se.test_case_id and tc.scenario = 'full';
		analyze`)
	found := b.everywhere(t, "1.25.0", "1.26.0", "wall-time")
	equal := 0
	for _, r := range found.compared.Result.Rows {
		if r.Metric == "wall-time" && r.Scenario == "full" {
			equal++
			require.Equal(t, []int{values, values}, []int{r.A.N, r.B.N})
			require.Zero(t, r.Change.Value)
			require.False(t, r.Significant)
			require.Empty(t, r.Suspicion)
		}
	}
	require.Equal(t, 1, equal)
}

// A long history of equal values is a line.
func TestAHistoryOfFiveHundredEqualPointsIsShown(t *testing.T) {
	t.Parallel()
	equalPoints(t, 500)
}

func TestLongAHistoryOfFiveThousandEqualPointsIsShown(t *testing.T) {
	t.Parallel()
	equalPoints(t, 5000)
}

func equalPoints(t *testing.T, points int) {
	t.Helper()
	b := setup(t)
	b.ended(t, "1.25.0", "1.26.0")
	b.past(t, `update pstat set value = 2 where `+wallTimes)
	b.past(t, `
		with added as (
			insert into artifact (project, tag) select 'go', '2.' || n || '.0' from generate_series(1, `+fmt.Sprint(points-2)+`) n returning id, tag
		), asked as (
			insert into benchmark_request (id, project, type, tag, status, outcome, submitter, jobs_done_at, completed_at)
			select 'r' || translate(lpad(id::text, 10, '0'), '0123456789', 'abcdefghjk'), 'go', 'release', tag, 'completed', 'success', 'ada', now(), now() from added
		)
		insert into test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status)
		select added.id, r.test_case_id, r.size_class, r.hardware_id, r.co_located, r.generation, r.run_id, 'ok'
		from added, test_result r join test_case tc on tc.id = r.test_case_id and tc.scenario = 'full' where r.artifact_id = (select min(id) from artifact);
		with more as (
			insert into collection (result_id, iteration, collected_at)
			select r.id, 1, '2026-01-03' from test_result r where not exists (select from collection c where c.result_id = r.id) returning id, result_id
		)
		insert into pstat (series_id, artifact_id, collection_id, value)
		select se.id, r.artifact_id, more.id, 2 from more join test_result r on r.id = more.result_id
		join pstat_series se on se.test_case_id = r.test_case_id and se.metric = 'wall-time';
		analyze`)
	long := b.everywhere(t, fmt.Sprintf("2.%d.0", points-3), fmt.Sprintf("2.%d.0", points-2), "wall-time")
	require.Contains(t, long.lines.text(), fmt.Sprintf("of %d", points))
	require.Len(t, long.history.Artifacts, points)
	for _, l := range long.history.Charts[0].Lines {
		if l.TestCase.Scenario != "full" {
			continue
		}
		require.Len(t, l.At, points)
		for i, v := range l.Values {
			require.Equal(t, 2.0, v, i)
		}
	}
}

// Artifacts of which no date is known have the time of their request, and say so.
func TestAnArtifactWithoutDateIsShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ended(t, "1.25.0", "1.26.0")
	found := b.everywhere(t, "1.25.0", "1.26.0", "wall-time")
	for i, side := range found.compared.Sides {
		require.Nil(t, side.Commit)
		require.False(t, found.history.Artifacts[i].Dated)
		require.False(t, found.history.Artifacts[i].At.IsZero())
	}
	byDate := b.bears(t, goHistory+"?x=date")
	require.Len(t, byDate.texts("figure"), 1)
}

// Ten thousand benchmarks are compared, and the ones that matter come first.
func TestLongTenThousandBenchmarksAreShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ended(t, "1.25.0", "1.26.0")
	const benchmarks = 10_000
	b.past(t, fmt.Sprintf(`
		insert into test_case (project, benchmark, profile, scenario, backend, target)
		select 'go', 'bench' || n, 'build', 'full', 'gc', 'x86_64-unknown-linux-gnu' from generate_series(1, %d) n;
		insert into pstat_series (test_case_id, metric) select id, 'wall-time' from test_case where benchmark like 'bench%%';
		insert into test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status)
		select r.artifact_id, tc.id, r.size_class, r.hardware_id, r.co_located, r.generation, r.run_id, 'ok'
		from (select distinct on (artifact_id) * from test_result order by artifact_id, id) r, test_case tc where tc.benchmark like 'bench%%';
		insert into collection (result_id, iteration, collected_at)
		select r.id, n, timestamptz '2026-01-03' + n * interval '1 second' from test_result r join test_case tc on tc.id = r.test_case_id, generate_series(1, 3) n
		where tc.benchmark like 'bench%%';
		insert into pstat (series_id, artifact_id, collection_id, value)
		select se.id, r.artifact_id, c.id, (1 + c.iteration / 1e4) * case when tc.benchmark = 'bench77' and r.artifact_id = (select max(id) from artifact) then 2 else 1 end
		from collection c join test_result r on r.id = c.result_id join test_case tc on tc.id = r.test_case_id and tc.benchmark like 'bench%%'
		join pstat_series se on se.test_case_id = r.test_case_id;
		analyze`, benchmarks))
	found := b.everywhere(t, "1.25.0", "1.26.0", "wall-time")
	require.Len(t, found.compared.Result.Rows, benchmarks+8)
	require.Len(t, found.page.rows(), 1, "what matters")
	require.Contains(t, found.page.rows()[0], "bench77")
	require.Less(t, len(found.whole.rows()), 1000, "the rest is on further pages")
	require.Equal(t, benchmarks+2, found.history.Series)
	require.LessOrEqual(t, len(found.history.Charts), 24)
	require.Less(t, len(found.lines.body), 2<<20)
	one := b.bears(t, compareGo+"?a=1.25.0&b=1.26.0&show=all&q=bench9999")
	require.Len(t, one.rows(), 1)
}

// Benchmarks may have names that mean something elsewhere.
func TestNamesOfBenchmarksAreOnlyTextEverywhere(t *testing.T) {
	t.Parallel()
	for scenario, names := range map[string][]string{"full": {markup, strings.Repeat("abc", 300)}, "incr-patched": {backwards}} {
		for _, name := range names {
			b := setup(t) // processes keep the names of test cases, which do not change
			b.ended(t, "1.25.0", "1.26.0")
			b.past(t, fmt.Sprintf(`update test_case set benchmark = $name$%s$name$ where scenario = '%s'`, name, scenario))
			found := b.everywhere(t, "1.25.0", "1.26.0", "wall-time")
			require.True(t, slices.ContainsFunc(found.compared.Result.Rows, func(r report.Row) bool { return r.Benchmark == name }), name)
			require.NotContains(t, found.markdown, "<img")
			require.Contains(t, found.whole.section("rows"), strings.TrimSpace(strings.Trim(name, "\u202e\u2066"))[:7])
		}
	}
}

// A range without artifacts, or without rows, says what it is.
func TestAnEmptyRangeSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ended(t, "1.25.0", "1.26.0")
	h, err := b.nobody.History(t.Context(), "go", apiclient.HistoryQuery{From: "1.26.0", To: "1.25.0"})
	require.NoError(t, err)
	require.Empty(t, h.Artifacts)
	require.Contains(t, b.bears(t, goHistory+"?from=1.26.0&to=1.25.0").text(), "the first is later than the last")
	same := b.everywhere(t, "1.26.0", "1.26.0", "wall-time")
	require.Empty(t, same.compared.Between)
	for _, r := range same.compared.Result.Rows {
		require.False(t, r.Significant)
		require.Zero(t, r.Change.Value)
	}
	_, err = b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: "1.25.0", B: "1.26.0", Benchmarks: []string{"none"}})
	require.ErrorContains(t, err, "no results that all parameters name")
	require.Contains(t, b.bears(t, compareGo+"?a=1.25.0&b=1.26.0&q=none").section("rows"), "No row")
}

// An address of another version of Benchloom is refused with what may be written instead, be
// it of a page or of the API, and nothing is guessed.
func TestAddressesOfOtherVersionsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ended(t, "1.25.0", "1.26.0")
	at := compareGo + "?a=1.25.0&b=1.26.0"
	_, digest, found := strings.Cut(b.bears(t, at).linkWith("digest="), "digest=")
	require.True(t, found)
	for path, says := range map[string]string{
		at + "&digest=0" + digest[1:]:                      "copy the link of a comparison again",
		at + "&stat=wall-time":                             `no parameter "stat"`,
		at + "&sort=significance":                          "the columns are",
		at + "&open=wall-time":                             "the ID of a row",
		compareGo + "?start=1.25.0&end=1.26.0":             `no parameters "end", "start"`,
		goHistory + "?start=1.25.0":                        `no parameter "start"`,
		goHistory + "?metric=instructions:u":               "it has",
		goHistory + "?y=percent":                           "it may be",
		goHistory + "/chart.svg?kind=percentfromfirst":     `"kind"`,
		"/api/v1/compare?project=go&start=1&end=2":         "end",
		"/api/v1/compare?project=go&b=1.26.0&sort=change":  "sort",
		"/api/v1/compare/values?project=go&b=1.26.0&row=1": "BENCHMARK/PROFILE/SCENARIO/BACKEND/TARGET/METRIC",
		"/api/v1/projects/go/history?start=1.25.0":         "start",
		"/api/v1/projects/go/history?split=kind":           "split",
	} {
		r := b.send(t, "", http.MethodGet, path, "")
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, r.status, "%s: %.300s", path, r.body)
		text := r.body
		if strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
			text = b.page(t, "", path).text()
		}
		require.Contains(t, strings.ReplaceAll(text, `\"`, `"`), says, path)
	}
}

// linkWith returns the first link that contains a word.
func (p shownPage) linkWith(word string) string {
	for _, link := range p.links() {
		if strings.Contains(link, word) {
			return link
		}
	}
	return ""
}
