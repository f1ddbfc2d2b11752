package api_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// releases measures releases of go, in another order than that of their versions, and ends
// their jobs; each takes a tenth longer than the one before it.
func (b *bundle) releases(t *testing.T, n int) {
	t.Helper()
	b.project(t)
	c := b.register(t, "c1")
	for i := range n {
		minor := (i*3 + 1) % n // n is no multiple of 3
		j := b.measure(t, fmt.Sprintf("1.%d.0", minor), 1+float64(minor)/10, c)
		require.NoError(t, b.store.FinishJobsOf(t.Context(), j.request.ID))
	}
}

func TestAHistoryIsAnswered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.releases(t, 5)
	h, err := b.nobody.History(t.Context(), "go", apiclient.HistoryQuery{})
	require.NoError(t, err)
	var tags []string
	for _, a := range h.Artifacts {
		tags = append(tags, a.Tag)
		require.NotEmpty(t, a.Request)
		require.False(t, a.Dated)
	}
	require.Equal(t, []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"}, tags, "by version")
	require.Equal(t, bench.Release, h.Type, "there are no commits")
	require.Equal(t, bench.WallTime, h.Metric)
	require.Equal(t, 2, h.Series)
	require.Len(t, h.Places, 1)
	require.Len(t, h.Charts, 1)
	require.Len(t, h.Charts[0].Lines, 2)
	for _, l := range h.Charts[0].Lines {
		require.Equal(t, []int{0, 1, 2, 3, 4}, l.At)
		require.Equal(t, "sec", l.Unit)
		require.Empty(t, l.Runs)
		for i, v := range l.Values {
			require.InDelta(t, (1+float64(i)/10)/1*l.Values[0], v, 1e-9)
			require.LessOrEqual(t, l.Min[i], l.Low[i])
			require.LessOrEqual(t, l.Low[i], l.High[i])
			require.LessOrEqual(t, l.High[i], l.Max[i])
			require.Equal(t, 5, l.N[i])
		}
	}

	// A part of it, with ways further.
	part, err := b.nobody.History(t.Context(), "go", apiclient.HistoryQuery{From: "1.1.0", To: "1.2.0", Words: "scenario:full", Runs: true})
	require.NoError(t, err)
	require.Len(t, part.Artifacts, 2)
	require.Equal(t, []any{"1.0.0", "1.3.0", "1.0.0", "1.3.0", 5}, []any{part.Earlier, part.Later, part.OuterFrom, part.OuterTo, part.Total})
	require.Len(t, part.Charts[0].Lines, 1)
	require.Len(t, part.Charts[0].Lines[0].Runs, 2)
	for query, want := range map[apiclient.HistoryQuery]string{
		{Limit: 2}:                                "1.3.0 1.4.0",
		{Limit: 2, To: "1.2.0"}:                   "1.1.0 1.2.0",
		{Limit: 2, From: "1.0.0"}:                 "1.0.0 1.1.0",
		{From: "1.3.0", To: "1.1.0"}:              "",
		{From: "1.4.0", Type: bench.Release}:      "1.4.0",
		{Words: "no-such-benchmark", To: "1.0.0"}: "1.0.0",
	} {
		h, err := b.nobody.History(t.Context(), "go", query)
		require.NoError(t, err, "%+v", query)
		var tags []string
		for _, a := range h.Artifacts {
			tags = append(tags, a.Tag)
		}
		require.Equal(t, want, strings.Join(tags, " "), "%+v", query)
	}

	mean, err := b.nobody.History(t.Context(), "go", apiclient.HistoryQuery{Line: "all"})
	require.NoError(t, err)
	require.Len(t, mean.Charts[0].Lines, 1)
	require.True(t, mean.Charts[0].Lines[0].Relative)
	require.Len(t, mean.Charts[0].Lines[0].Series, 2)
	require.InDelta(t, 1.4, mean.Charts[0].Lines[0].Values[4], 1e-9)

	r := b.send(t, "", http.MethodGet, "/api/v1/projects/go/history?format=csv&metric=max-rss", "")
	require.Equal(t, http.StatusOK, r.status, r.body)
	rows, err := csv.NewReader(strings.NewReader(r.body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+2*5)
	require.Equal(t, "max-rss", rows[1][2])
}

func TestAHistoryBreaksWhereTheSizeClassChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.releases(t, 4)
	b.past(t, `update test_result set size_class = 3 where artifact_id = (select id from artifact where tag = '1.3.0')`)
	h, err := b.nobody.History(t.Context(), "go", apiclient.HistoryQuery{Words: "scenario:full"})
	require.NoError(t, err)
	breaks := h.Charts[0].Lines[0].Breaks
	require.Equal(t, []apiclient.HistoryBreak{{At: 3, Reason: "size class 3 instead of 2"}}, breaks)
}

func TestAHistoryNamesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.releases(t, 1)
	for query, want := range map[string]string{
		"from=9.9":                      `"9.9"`,
		"to=9.9":                        `"9.9"`,
		"from=1.0.0&type=master":        `"1.0.0"`,
		"metric=no-such-metric":         "it has",
		"type=build":                    "type",
		"split=no-such-parameter":       "split",
		"line=no-such-parameter":        "line",
		"limit=0":                       "limit",
		"limit=20001":                   "limit",
		"charts=1001":                   "charts",
		"format=xml":                    "format",
		"q=" + strings.Repeat("x", 401): "q",
	} {
		r := b.send(t, "", http.MethodGet, "/api/v1/projects/go/history?"+query, "")
		require.Contains(t, []int{http.StatusNotFound, http.StatusBadRequest, http.StatusUnprocessableEntity}, r.status, query)
		require.Contains(t, r.body, strings.ReplaceAll(want, `"`, `\"`), query)
	}
	_, err := b.nobody.History(t.Context(), "nothing", apiclient.HistoryQuery{})
	require.ErrorContains(t, err, "there is no project")
}

func TestAHistoryWithoutArtifactsIsEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	h, err := b.nobody.History(t.Context(), "go", apiclient.HistoryQuery{})
	require.NoError(t, err)
	require.Empty(t, h.Artifacts)
	require.NotNil(t, h.Artifacts)
	require.Empty(t, h.Charts)
	require.Equal(t, bench.Master, h.Type)
}

// A test case that failed has no value, and says why.
func TestAHistoryTellsOfFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.releases(t, 1)
	j := b.submit(t, "1.1.0")
	plan := b.start(t, j, b.register(t, "c2"), 1)
	failed := block(j.cases[:1], 1)
	failed.Errors = []apiclient.BlockError{{TestCase: &j.cases[1], Kind: bench.FailJob, Message: "exit status 3"}}
	_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, failed)
	require.NoError(t, err)
	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunFailure, Message: "one test case failed"}))
	_, err = b.store.FinishJob(t.Context(), j.key, 0, "one test case failed")
	require.NoError(t, err)
	require.NoError(t, b.store.FinishJobsOf(t.Context(), j.request.ID))
	h, err := b.nobody.History(t.Context(), "go", apiclient.HistoryQuery{})
	require.NoError(t, err)
	failures := 0
	for _, l := range h.Charts[0].Lines {
		if *l.TestCase == j.cases[1] {
			require.Equal(t, []apiclient.HistoryFailure{{At: 1, Reason: "exit status 3"}}, l.Failures)
			require.Equal(t, []int{0}, l.At)
			failures++
		} else {
			require.Empty(t, l.Failures)
			require.Equal(t, []int{0, 1}, l.At)
		}
	}
	require.Equal(t, 1, failures)
}
