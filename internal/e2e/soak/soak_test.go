package main

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/perf/benchfmt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"argument":          {"all"},
		"hardly a flood":    {"-duration", "1s"},
		"for ever":          {"-duration", "25h"},
		"few connections":   {"-connections", "4"},
		"many connections":  {"-connections", "1001"},
		"no memory":         {"-memory", "0"},
		"nothing to export": {"-filling", "0"},
		"no silence":        {"-silence", "3s"},
		"unknown option":    {"-fast"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout bytes.Buffer
			require.Error(t, run(t.Context(), args, &stdout, io.Discard))
			require.Empty(t, stdout.String())
		})
	}
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 15*time.Minute, o.duration)
	require.Equal(t, 200, o.connections)
	require.Equal(t, 150, o.memory)
}

func TestSharesOfConnectionsAddUp(t *testing.T) {
	t.Parallel()
	sum := 0
	for _, k := range kinds() {
		sum += k.share
	}
	require.Equal(t, 100, sum)
}

func TestFindingsAreJudged(t *testing.T) {
	t.Parallel()
	fine := findings{ready: make([]time.Duration, 200), failed: []error{errors.New("not ready")}, silence: 4 * time.Second, jobs: 3, peak: 149_000_000, heartbeats: histogram{math.Inf(1): 5}}
	require.NoError(t, fine.judge(150_000_000, 7*time.Second))
	for want, spoil := range map[string]func(*findings){
		"the API needed 151 MB of memory, of at most 150": func(f *findings) { f.peak = 151_000_000 },
		"the API refused 2 heartbeats":                    func(f *findings) { f.refused = 2 },
		"a collector was silent for 7.1s":                 func(f *findings) { f.silence = 7100 * time.Millisecond },
		"no heartbeat was counted":                        func(f *findings) { f.heartbeats = nil },
		"no job ended":                                    func(f *findings) { f.jobs = 0 },
		"3 of 203 probes failed: not ready":               func(f *findings) { f.failed = slices.Repeat(f.failed, 3) },
		"a job failed":                                    func(f *findings) { f.errs = []error{errors.New("a job failed")} },
		"and 2 more":                                      func(f *findings) { f.errs = make([]error, 7) },
	} {
		spoilt := fine
		spoil(&spoilt)
		require.ErrorContains(t, spoilt.judge(150_000_000, 7*time.Second), want)
	}
}

func TestFiguresAreInTheBenchmarkFormat(t *testing.T) {
	t.Parallel()
	f := findings{
		ready: []time.Duration{time.Millisecond, 3 * time.Millisecond, 2 * time.Millisecond}, silence: 3 * time.Second, jobs: 7, peak: 90_000_000,
		heartbeats: histogram{.005: 10, .01: 18, .025: 20, math.Inf(1): 20}.since(histogram{.005: 5, .01: 5, .025: 5, math.Inf(1): 5}),
	}
	var out bytes.Buffer
	require.NoError(t, f.print(&out, map[string]int64{"methods": 60_000}))
	values := make(map[string]float64)
	reader := benchfmt.NewReader(&out, "soak")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		require.True(t, ok, "%v", reader.Result())
		for _, v := range result.Values {
			values[result.Name.String()+" "+v.Unit] = v.Value
		}
	}
	require.NoError(t, reader.Err())
	require.Equal(t, map[string]float64{
		"Soak/of=readyz p50-sec": 0.002, "Soak/of=readyz p99-sec": 0.003, "Soak/of=requests p50-sec": 0, "Soak/of=requests p99-sec": 0,
		"Soak/of=heartbeat p50-sec": 0.01, "Soak/of=heartbeat p99-sec": 0.025, "Soak/of=heartbeat silence-sec": 3,
		"Soak/process=api rss-B": 9e7, "Soak/of=jobs jobs": 7, "Soak/of=failed-probes probes": 0, "Soak/flood=methods calls": 60_000,
	}, values)
}

// A short form of 'make soak'. Beside other tests, a heartbeat may be late.
func TestLongSoak(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-duration", "20s", "-filling", "500", "-silence", "20s"}, &out, t.Output()))
	require.Contains(t, out.String(), "BenchmarkSoak/of=heartbeat")
}
