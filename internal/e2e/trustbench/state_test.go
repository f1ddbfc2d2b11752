package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/verdict"
)

// A run that was killed while it wrote loses the line under way, and the next one repeats only that trial.
func TestAStateSurvivesKilling(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trials.jsonl")
	trials := whole.trials()
	s, err := openState(path, whole)
	require.NoError(t, err)
	require.Len(t, whole.missing(s.outcomes), 80)
	first := outcome{
		Trial: trials[0].ID, Request: "r1", Begun: time.Unix(1, 0).UTC(), Seconds: 2,
		Rows:     []row{{Benchmark: slowed, Metric: slowedMetric, Verdict: verdict.Changed, Change: 0.1, Worse: true, Pairs: 14}},
		Sessions: []session{{Run: "run", Benchmark: slowed, Iterations: 12, Marked: true, Load: 0.5}},
	}
	require.NoError(t, s.add(first))
	require.NoError(t, s.file.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, `{"trial":"same-`...), 0o600))

	s, err = openState(path, whole)
	require.NoError(t, err)
	require.Equal(t, []outcome{first}, s.outcomes)
	require.Equal(t, trials[1:], whole.missing(s.outcomes))
	require.NoError(t, s.add(outcome{Trial: trials[1].ID}))
	require.NoError(t, s.file.Close())
	outcomes, size, err := readState(path, whole)
	require.NoError(t, err)
	require.Len(t, outcomes, 2)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, info.Size(), size)
}

func TestAStateOfSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	header := `{"seed":2026,"requests":40,"slowdowns":10}` + "\n"
	one := `{"trial":"same-quiet-01"}` + "\n"
	for name, c := range map[string]struct{ text, err string }{
		"another plan":     {`{"seed":2026,"requests":4,"slowdowns":1}` + "\n", "is of 4 requests and 1 slowdowns"},
		"no JSON":          {"trials\n", "line 1 of"},
		"no outcome":       {header + "[]\n", "line 2 of"},
		"unknown trial":    {header + `{"trial":"same-quiet-21"}` + "\n", `no trial "same-quiet-21"`},
		"trial twice":      {header + one + one, "line 3 of"},
		"unknown verdicts": {header + `{"trial":"same-quiet-01","rows":[{"verdict":"maybe"}]}` + "\n", "maybe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "trials.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			_, err := openState(path, whole)
			require.ErrorContains(t, err, c.err)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, c.text, string(text), "it stays as it was")
		})
	}
}
