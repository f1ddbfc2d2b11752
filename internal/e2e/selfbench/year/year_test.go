package year

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// little is a year of which some artifacts are measured again, before and after rows begin.
var little = Size{Artifacts: 120, Benchmarks: 2, Values: 3, Rows: 70}

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func quietly(string, ...any) {}

// The record of a year is one that a service could have written: what is packed agrees with
// the rows, and pages find a history of all of it.
func TestTheRecordOfAYearIsSound(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	y := New(little, newYear)
	require.NoError(t, y.Fill(t.Context(), url, quietly))
	record := storetest.Open(t, url)

	// The artifacts with rows: sheets and points are those of their rows.
	first := artifactID(little.Artifacts-little.Rows) - 1
	for after := first; ; {
		c, err := record.CheckPacked(t.Context(), Project, after, 16)
		require.NoError(t, err)
		require.Empty(t, c.Differences)
		require.Zero(t, c.Stale)
		require.Positive(t, c.Sheets)
		if after = c.Next; after == 0 {
			break
		}
	}

	// All others have the values that they are to have, the latest of those measured again.
	for _, n := range []int{0, 20, 49, 50, 60, 119} {
		_, again := y.again(n)
		want := y.latest(n, again && n+againAfter < little.Artifacts)
		samples, err := record.SamplesOf(t.Context(), Project, y.tags[n])
		require.NoError(t, err)
		found := make(map[bench.TestCase]map[bench.Metric][]float64)
		for _, s := range samples {
			if found[s.TestCase] == nil {
				found[s.TestCase] = make(map[bench.Metric][]float64)
			}
			found[s.TestCase][s.Metric] = s.Values
			require.Equal(t, y.surrounding(n), s.Surrounding)
		}
		for c, o := range want {
			for m := range metrics {
				if o.values == nil {
					require.Empty(t, found[y.tests[c].TestCase])
					continue
				}
				require.Equal(t, o.of(m), found[y.tests[c].TestCase][metrics[m].Metric], "artifact %d, %s", n, y.tests[c])
			}
		}
	}

	line, err := record.HistoryArtifacts(t.Context(), Project, bench.Master, 1000)
	require.NoError(t, err)
	require.Len(t, line, little.Artifacts)
	require.Equal(t, y.tags[0], line[0].Tag)
	require.Equal(t, y.tags[little.Artifacts-1], line[little.Artifacts-1].Tag)
	ids := make([]int64, little.Artifacts)
	for n := range ids {
		ids[n] = artifactID(n)
	}
	found := 0
	require.NoError(t, record.Histories(t.Context(), ids, []int64{seriesID(0, 0)}, packed.AllFields, func(of []store.History) error {
		require.Len(t, of, 2, "the machine was replaced")
		found += len(of[0].Points) + len(of[1].Points)
		return nil
	}))
	require.Len(t, points(y, 0), found)

	// Jobs of several artifacts were measured at the same time.
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	var atOnce, again, rows int
	require.NoError(t, conn.QueryRow(t.Context(), `
		select (select count(distinct artifact_id) from (select artifact_id from test_result order by id limit $1) r),
			(select count(*) from test_result where generation = 1), (select count(distinct artifact_id) from test_result)`, inProgress).Scan(&atOnce, &again, &rows))
	require.Equal(t, inProgress, atOnce)
	require.Positive(t, again)
	require.Equal(t, little.Rows, rows)

	// The service goes on where the year ends.
	_, err = record.ApplyProject(t.Context(), store.Project{Name: "next", Config: []byte(`{}`)})
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `insert into artifact (project, tag) values ('next', 'v1')`)
	require.NoError(t, err)
}

// points are the artifacts with results of a test case.
func points(y *Year, testCase int) (list []int) {
	for n := range y.Artifacts {
		_, again := y.again(n)
		if y.latest(n, again && n+againAfter < y.Artifacts)[testCase].values != nil {
			list = append(list, n)
		}
	}
	return list
}

func TestAYearIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	one, other := New(little, newYear), New(little, newYear)
	require.Equal(t, one, other)
	require.Equal(t, one.measure(7, 0), other.measure(7, 0))
	require.NotEqual(t, one.measure(7, 0), one.measure(7, 1))
	larger := little
	larger.Values++
	require.NotEqual(t, little.key("schema"), larger.key("schema"))
	require.NotEqual(t, little.key("schema"), little.key("another"))

	dates := make(map[time.Time]bool)
	for n := range little.Artifacts {
		dates[one.date(n)] = true
	}
	require.Len(t, dates, little.Artifacts)
	require.Equal(t, newYear, one.date(little.Artifacts-1))
	require.WithinDuration(t, newYear.AddDate(-1, 0, 0), one.date(0), 4*24*time.Hour)
}

func TestSizesAreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, Full().Check())
	require.Equal(t, 28_000_000, Full().Points())
	for _, s := range []Size{
		{}, {Artifacts: 1, Benchmarks: 1}, {Artifacts: 1, Benchmarks: 1, Values: 1, Rows: 2}, {Artifacts: 1, Benchmarks: 1, Values: 1, Rows: -1},
		{Artifacts: 1, Benchmarks: 1, Values: bench.MaxIterations + 1},
	} {
		require.Error(t, s.Check())
	}
	require.NoError(t, Size{Artifacts: 1, Benchmarks: 1, Values: 1}.Check())
}
