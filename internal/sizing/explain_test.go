package sizing_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	const target = bench.Target("x86_64-unknown-linux-gnu")
	var fleet plan.Fleet
	for _, class := range []bench.SizeClass{1, 2, 4} {
		fleet = append(fleet, placement.Collector{Name: string(rune('a' + class)), Pool: bench.Pool{Target: target, SizeClass: class, Name: "p"}, Live: true, Active: true})
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	job := store.Sizing{Project: "go", Config: json.RawMessage(`{}`), Target: target, SizeClass: 4, Command: &bench.Command{Argv: []string{"true"}}}
	e, err := sizing.Explain(fleet, job, sizeclass.Statistics{}, now)
	require.NoError(t, err)
	require.Empty(t, e.Pinned)
	require.Equal(t, bench.SizeClass(1), e.Selection.Class, "the smallest is tried first")
	require.Len(t, e.Selection.Choices, 3)

	// Where class 4 has succeeded, a command would try class 1; results of a suite are
	// compared, so that none of its jobs does.
	analyzer, err := sizeclass.New(sizeclass.Defaults())
	require.NoError(t, err)
	known := analyzer.Learn(sizeclass.Statistics{}, sizeclass.Attempt{
		ID: "1", Job: "1", Class: 4, Outcome: sizeclass.Succeeded, Duration: time.Minute, At: now, Largest: true, Complete: true,
	})
	e, err = sizing.Explain(fleet, job, known, now)
	require.NoError(t, err)
	require.Equal(t, []any{bench.SizeClass(1), true}, []any{e.Selection.Class, e.Selection.Probe})
	measuring := job
	measuring.Command = nil
	e, err = sizing.Explain(fleet, measuring, known, now)
	require.NoError(t, err)
	require.Equal(t, []any{bench.SizeClass(4), false}, []any{e.Selection.Class, e.Selection.Probe})
	require.Zero(t, e.Selection.Choices[0].Probability)
	e, err = sizing.Explain(fleet, measuring, sizeclass.Statistics{}, now)
	require.NoError(t, err)
	require.Equal(t, bench.SizeClass(1), e.Selection.Class, "the first one founds the series")

	job.Config = json.RawMessage(`{"size": {"class": 4}}`)
	e, err = sizing.Explain(fleet, job, sizeclass.Statistics{}, now)
	require.NoError(t, err)
	require.Equal(t, "project go", e.Pinned)
	require.Len(t, e.Selection.Choices, 1)
	job.Pinned = true
	e, err = sizing.Explain(fleet, job, sizeclass.Statistics{}, now)
	require.NoError(t, err)
	require.Equal(t, "a request that waits for it", e.Pinned)

	_, err = sizing.Explain(nil, store.Sizing{Config: json.RawMessage(`{}`), Target: target}, sizeclass.Statistics{}, now)
	require.ErrorIs(t, err, sizeclass.ErrNoClasses)
	_, err = sizing.Explain(fleet, store.Sizing{Config: json.RawMessage(`[]`), Target: target}, sizeclass.Statistics{}, now)
	require.ErrorContains(t, err, "project")
}

func TestReadStatistics(t *testing.T) {
	t.Parallel()
	for _, nothing := range []string{"", "null"} {
		known, err := sizing.ReadStatistics(json.RawMessage(nothing))
		require.NoError(t, err)
		require.Zero(t, known)
	}
	_, err := sizing.ReadStatistics(json.RawMessage(`{"format": 9}`))
	require.ErrorIs(t, err, sizeclass.ErrFormat)
}
