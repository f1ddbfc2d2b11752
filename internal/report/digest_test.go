package report_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

func digestRows(n int) []report.Row {
	rows := make([]report.Row, n)
	for i := range rows {
		kind := verdict.NoSuspicion
		rows[i] = report.Row{
			Key: stats.Key{TestCase: stats.TestCase{Benchmark: fmt.Sprintf("b%d", i), Target: "x"}, Metric: "wall-time"},
			A:   stats.Side{N: 5, Value: 1}, B: stats.Side{N: 5, Value: 2}, Verdict: &kind,
		}
	}
	return rows
}

// Whatever changes in a few rows is named, and hardly anything else.
func TestADigestNamesWhatHasChanged(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 5))
	missed, wrong, changed := 0, 0, 0
	for range 60 {
		n := []int{1, 2, 7, 40, 500, 3000}[random.IntN(6)]
		rows := digestRows(n)
		digest := report.Digest(rows)
		require.LessOrEqual(t, len(digest), 800)
		shuffled := slices.Clone(rows)
		random.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		since, err := report.Since(digest, shuffled)
		require.NoError(t, err)
		require.Equal(t, report.Changed{Same: true}, since)

		now := slices.Clone(rows)
		touched := make(map[string]bool)
		for range 1 + random.IntN(min(n, 5)) {
			r := &now[random.IntN(n)]
			if touched[r.ID()] {
				continue
			}
			touched[r.ID()] = true
			switch random.IntN(4) {
			case 0:
				r.B.Value++
			case 1:
				r.A.N++
			case 2:
				kind := verdict.Changed
				r.Verdict, r.Direction = &kind, report.Regression
			case 3:
				r.Turns = &report.Turns{Pairs: 6}
			}
		}
		changed += len(touched)
		since, err = report.Since(digest, now)
		require.NoError(t, err)
		require.False(t, since.Same)
		missed += len(touched)
		for _, r := range since.Rows {
			if touched[r.ID()] {
				missed--
			} else {
				wrong++
			}
		}
	}
	require.Greater(t, changed, 100)
	require.LessOrEqual(t, missed, 3)
	require.LessOrEqual(t, wrong, 30)
}

func TestADigestTellsOfNewAndLostRows(t *testing.T) {
	t.Parallel()
	rows := digestRows(20)
	since, err := report.Since(report.Digest(rows[1:]), rows)
	require.NoError(t, err)
	require.False(t, since.Gone)
	require.Contains(t, since.Rows, rows[0])
	since, err = report.Since(report.Digest(rows), rows[1:])
	require.NoError(t, err)
	require.Equal(t, report.Changed{Gone: true}, since)
	since, err = report.Since(report.Digest(nil), nil)
	require.NoError(t, err)
	require.True(t, since.Same)
	for _, bad := range []string{"", "1", "2" + report.Digest(rows)[1:], report.Digest(rows)[:60], "1not base64", report.Digest(rows) + "A"} {
		_, err := report.Since(bad, rows)
		require.Error(t, err, bad)
	}
}

func FuzzSince(f *testing.F) {
	rows := digestRows(9)
	f.Add(report.Digest(rows))
	f.Fuzz(func(t *testing.T, digest string) {
		since, err := report.Since(digest, rows)
		if err == nil && since.Same {
			require.Empty(t, since.Rows)
		}
	})
}
