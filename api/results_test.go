package api_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// measured has two releases of go; the second takes a fifth longer.
func measured(t *testing.T, change ...func(*api.Config)) (*bundle, job) {
	t.Helper()
	b := setup(t, change...)
	b.project(t)
	c := b.register(t, "c1")
	b.measure(t, "1.25.0", 1, c)
	return b, b.measure(t, "1.26.0", 1.2, c)
}

func TestTwoReleasesAreCompared(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	query := apiclient.CompareQuery{Project: "go", A: "1.25.0", B: "1.26.0"}
	c, err := b.nobody.Compare(t.Context(), query)
	require.NoError(t, err)
	require.Len(t, c.Result.Rows, 4*2)
	require.Empty(t, c.Missing)
	var slower int
	all := make(map[stats.Key]report.Row)
	for _, r := range c.Result.Rows {
		all[r.Key] = r
		if r.Metric == string(bench.WallTime) {
			require.True(t, r.Is(verdict.Undecided), r.Reason)
			require.NotEmpty(t, r.Suspicion, "stored results alone decide nothing")
			require.InDelta(t, 0.2, r.Change.Value, 1e-9)
			slower++
		}
	}
	require.Equal(t, 2, slower)

	// Narrowed, the verdicts stay the same: what is not asked for is hidden.
	query.Metrics, query.Scenarios = []bench.Metric{bench.WallTime}, []string{"full"}
	c, err = b.nobody.Compare(t.Context(), query)
	require.NoError(t, err)
	require.Len(t, c.Result.Rows, 1)
	require.Equal(t, all[c.Result.Rows[0].Key], c.Result.Rows[0])

	query.Reasons = true
	text, err := b.nobody.CompareText(t.Context(), query, apiclient.FormatText)
	require.NoError(t, err)
	require.Contains(t, text, "+20.00 %")
	require.Contains(t, text, "not measured in turns")
	require.NotContains(t, text, "incr-patched")
	text, err = b.nobody.CompareText(t.Context(), query, apiclient.FormatMarkdown)
	require.NoError(t, err)
	require.Contains(t, text, "| ")

	query.Metrics = []bench.Metric{"instructions:u"}
	_, err = b.nobody.Compare(t.Context(), query)
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	require.ErrorContains(t, err, "no results that all parameters name; left out was, for example, MB/s of gin")
}

func TestWhatCannotBeComparedIsNamed(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	for want, q := range map[string]apiclient.CompareQuery{
		`project go has no results of "1.27.0"; measured are 1.25.0, 1.26.0`: {Project: "go", A: "1.25.0", B: "1.27.0"},
		`there is no project "rust"; the projects are adhoc, go`:             {Project: "rust", A: "1", B: "2"},
		`project adhoc has no results of "1"; none is measured yet`:          {Project: "adhoc", A: "1", B: "2"},
	} {
		_, err := b.nobody.Compare(t.Context(), q)
		require.ErrorIs(t, err, apiclient.ErrNotFound)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, b.nobody.Export(t.Context(), &bytes.Buffer{}, q.Project, "csv", q.B), apiclient.ErrNotFound)
	}

	// What was measured on other hardware does not compare.
	r := registration("c2")
	r.HardwareID = "cpu1"
	other, err := b.collector.RegisterCollector(t.Context(), r)
	require.NoError(t, err)
	b.measure(t, "1.27.0", 1, other)
	c, err := b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: "1.26.0", B: "1.27.0"})
	require.NoError(t, err)
	require.Empty(t, c.Result.Rows)
	require.Len(t, c.Missing, 2)
	require.Contains(t, c.Missing[0].Reason, "measured only in another surrounding (size class 2 on hardware cpu1 instead of size class 2 on hardware cpu0)")
	text, err := b.nobody.CompareText(t.Context(), apiclient.CompareQuery{Project: "go", A: "1.26.0", B: "1.27.0"}, apiclient.FormatText)
	require.NoError(t, err)
	require.Contains(t, text, "Not compared\n\n1.27.0: gin build full gc")
}

func TestAnExportIsReadByBenchstat(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	var out bytes.Buffer
	require.NoError(t, b.nobody.Export(t.Context(), &out, "go", "benchfmt"))
	reader := benchfmt.NewReader(&out, "export")
	values := make(map[string][]float64)
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			require.Equal(t, "x86_64-unknown-linux-gnu go main 2 cpu0 false c1", strings.Join([]string{
				r.GetConfig("target"), r.GetConfig("project"), r.GetConfig("pool"), r.GetConfig("size-class"), r.GetConfig("hardware"),
				r.GetConfig("co-located"), r.GetConfig("collector"),
			}, " "))
			for _, v := range r.Values {
				key := r.GetConfig("tag") + " " + r.Name.String() + " " + v.Unit
				values[key] = append(values[key], v.Value)
			}
		case *benchfmt.SyntaxError:
			require.NoError(t, r)
		}
	}
	require.NoError(t, reader.Err())
	require.Len(t, values, 2*2*4)
	require.Equal(t, []float64{1, 1.001, 1.002, 1.003, 1.004}, values["1.25.0 Gin/profile=build/scenario=full/backend=gc wall-time-sec"])
	require.Equal(t, float64(1<<20), values["1.25.0 Gin/profile=build/scenario=full/backend=gc max-rss-bytes"][0])
	require.Equal(t, 1e8, values["1.25.0 Gin/profile=build/scenario=full/backend=gc B/s"][0])
	require.Equal(t, benchmath.AssumeExact, reader.Units().GetAssumption("size:binary-bytes"))
	require.Equal(t, -1, reader.Units().GetBetter("wall-time-sec"))
	require.Equal(t, 1, reader.Units().GetBetter("MB/s"))
}

func TestAnExportAsCSVAndJSON(t *testing.T) {
	t.Parallel()
	b, j := measured(t)
	var out bytes.Buffer
	require.NoError(t, b.nobody.Export(t.Context(), &out, "go", "csv", "1.26.0"))
	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+2*5*4)
	require.Equal(t, "1.26.0 compiletime gin build full gc x86_64-unknown-linux-gnu 2 main cpu0 false c1 1 2026-01-02T03:04:00Z max-rss 1048576   ", strings.Join(rows[2], " "), "neither disturbed, nor of a known segment")

	out.Reset()
	require.NoError(t, b.nobody.Export(t.Context(), &out, "go", "json"))
	var list []apiclient.ExportedCollection
	require.NoError(t, json.Unmarshal(out.Bytes(), &list))
	require.Len(t, list, 2*2*5)
	require.Equal(t, j.cases[0], list[10].TestCase)
	require.Equal(t, "1.26.0", list[10].Tag)
	require.InDelta(t, 1.2, list[10].Values[bench.WallTime], 1e-9)

	out.Reset()
	require.NoError(t, b.nobody.Export(t.Context(), &out, "adhoc", "json"))
	require.JSONEq(t, "[]", out.String())
	require.ErrorContains(t, b.nobody.Export(t.Context(), &out, "go", "xml"), "query.format")
}

// broken is a record whose exports break off after some rows.
type broken struct {
	api.Store
	after int
}

func (b broken) ExportCollections(ctx context.Context, project string, tags []string, yield func(bench.ExportedCollection) error) error {
	return b.Store.ExportCollections(ctx, project, tags, func(r bench.ExportedCollection) error {
		for range b.after {
			if err := yield(r); err != nil {
				return err
			}
		}
		return errors.New("the disk is gone")
	})
}

func TestAFailedExportIsNoticed(t *testing.T) {
	t.Parallel()
	// Before anything was sent there is still room for a problem.
	for after, want := range map[int]string{0: "for a reason that is not yours", 3: "for a reason that is not yours", 5000: "the export broke off"} {
		b, _ := measured(t, func(c *api.Config) { c.Store = broken{Store: c.Store, after: after} })
		err := b.nobody.Export(t.Context(), &bytes.Buffer{}, "go", "csv")
		require.ErrorContains(t, err, want)
		require.True(t, apiclient.IsTransient(err))
		require.Contains(t, b.log.String(), "the disk is gone")
	}
}
