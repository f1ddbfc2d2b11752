package main

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/verdict"
)

// perfect returns outcomes that keep every limit.
func perfect() []outcome {
	var all []outcome
	for _, t := range whole.trials() {
		o := outcome{Trial: t.ID, Seconds: 60, Version: "v1"}
		switch t.Slower {
		case 0:
			o.Rows = []row{{Benchmark: slowed, Metric: slowedMetric, Verdict: verdict.NoSuspicion}, {Benchmark: "Words", Metric: slowedMetric, Verdict: verdict.NoDifference}}
			o.Sessions = []session{{}, {Load: 0.1}, {Steal: 0.01, Marked: true}}
			if t.Loaded {
				o.Sessions = append(o.Sessions, session{Load: 0.5, Marked: true})
			}
		case 2:
			o.Rows = []row{{Benchmark: slowed, Metric: slowedMetric, Verdict: verdict.Undecided}}
		default:
			o.Rows = []row{{Benchmark: slowed, Metric: slowedMetric, Verdict: verdict.Changed, Worse: true}}
			o.Sessions = []session{{Marked: true}} // that of a planted slowdown counts for nothing
		}
		all = append(all, o)
	}
	return all
}

// change alters the first outcomes of a kind.
func change(all []outcome, k kind, count int, alter func(*outcome)) []outcome {
	all = slices.Clone(all)
	for n := range count {
		id := trialID(k.slower, k.loaded, n)
		alter(&all[slices.IndexFunc(all, func(o outcome) bool { return o.Trial == id })])
	}
	return all
}

func TestLimits(t *testing.T) {
	t.Parallel()
	changed := func(o *outcome) { o.Rows = append(o.Rows, row{Benchmark: "Words", Verdict: verdict.Changed}) }
	none := func(o *outcome) { o.Rows[0].Verdict = verdict.NoDifference }
	undecided := func(o *outcome) { o.Rows[0].Verdict = verdict.Undecided }
	better := func(o *outcome) { o.Rows[0].Worse = false }
	unseen := func(o *outcome) { o.Sessions[3].Marked = false }
	marked := func(o *outcome) { o.Sessions[0].Marked = true }
	for name, c := range map[string]struct {
		kind
		count  int
		alter  func(*outcome)
		broken string // empty: none
		early  bool   // known before all trials are there
	}{
		"nothing":                              {kind{}, 0, nil, "", false},
		"a false change without load":          {kind{0, false}, 1, changed, "without load: 1 of 20", true},
		"a false change under load":            {kind{0, true}, 1, changed, "under a load that starts and stops: 1 of 20", true},
		"two loaded sessions not seen":         {kind{0, true}, 2, unseen, "", false},
		"three loaded sessions not seen":       {kind{0, true}, 3, unseen, "loaded sessions that are marked disturbed: 17 of 20", false},
		"one quiet session of 40 marked":       {kind{0, false}, 1, marked, "quiet sessions that are marked disturbed: 1 of 40, the limit is at most 2 %", false},
		"10 % are no difference":               {kind{10, false}, 1, none, "10 % slower: *no difference*: 1 of 10", true},
		"10 % are no difference under load":    {kind{10, true}, 1, none, "10 % slower under load: *no difference*: 1 of 10", true},
		"10 % undecided":                       {kind{10, false}, 1, undecided, "10 % slower: *changed*: 9 of 10", true},
		"10 % faster":                          {kind{10, false}, 1, better, "10 % slower: *changed*: 9 of 10", true},
		"10 % undecided four times under load": {kind{10, true}, 4, undecided, "", false},
		"10 % undecided five times under load": {kind{10, true}, 5, undecided, "10 % slower under load: *changed*: 5 of 10, the limit is at least 60 %", true},
		"2 % are no difference":                {kind{2, true}, 1, none, "2 % slower under load: *no difference*: 1 of 10", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := change(perfect(), c.kind, c.count, c.alter)
			err := judge(whole, all)
			if c.broken == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.broken)
			}
			last := trialID(0, false, 19)
			err = judge(whole, slices.DeleteFunc(all, func(o outcome) bool { return o.Trial == last }))
			if c.early {
				require.ErrorContains(t, err, "limit")
			} else {
				require.NoError(t, err, "more trials may change it")
			}
		})
	}
}

// Without any quiet session nothing is known of them.
func TestAFigureOfNothingKeepsNoLimit(t *testing.T) {
	t.Parallel()
	all := perfect()
	for i := range all {
		all[i].Sessions = nil
	}
	require.ErrorContains(t, judge(whole, all), "quiet sessions that are marked disturbed: 0 of 0")
}

// Values of Clopper and Pearson's interval at 95 %, as in common tables.
func TestClopperPearson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		found, of int
		low, high float64
	}{
		{0, 40, 0, 0.0881},
		{10, 10, 0.6915, 1},
		{6, 10, 0.2624, 0.8784},
		{1, 20, 0.0013, 0.2487},
		{0, 10, 0, 0.3085},
	} {
		low, high := clopperPearson(c.found, c.of)
		require.InDelta(t, c.low, low, 0.0001, "%+v", c)
		require.InDelta(t, c.high, high, 0.0001, "%+v", c)
	}
}

func TestTheReportIsATable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, writeReport(&out, whole, perfect()))
	require.Contains(t, out.String(), "80 of 80 trials")
	require.Contains(t, out.String(), "in 1h20m0s; Benchloom v1.")
	require.Contains(t, out.String(), "| requests of unchanged code that tell a change, without load | 0 of 20 | 0 % | 0 % to 16.8 % | at most 0 % |")
	require.NotContains(t, out.String(), "by cause")
	require.Contains(t, out.String(), "| 10 % slower under load: *changed* | 10 of 10 | 100 % | 69.2 % to 100 % | at least 60 % |")
}

func TestTheReportNamesWhatDisturbedQuietSessions(t *testing.T) {
	t.Parallel()
	all := change(perfect(), kind{0, false}, 3, func(o *outcome) { o.Sessions[0] = session{Marked: true, Cause: "foreign CPU time"} })
	var out bytes.Buffer
	require.NoError(t, writeReport(&out, whole, all))
	require.Contains(t, out.String(), "Marks of quiet sessions, by cause: foreign CPU time (3).")
}

func TestSessionsMeetTheLoad(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	in := interval{at(10), at(20)}
	ran := []interval{{at(0), at(5)}, {at(8), at(12)}, {at(14), at(15)}, {at(19), at(40)}}
	require.InDelta(t, 0.4, loadShare(in, ran), 1e-9)
	require.Zero(t, loadShare(in, nil))
	require.Zero(t, loadShare(interval{at(10), at(10)}, ran), "an empty session")
	samples := []sample{{at(0), time.Second}, {at(9), time.Second}, {at(15), 2 * time.Second}, {at(21), 4 * time.Second}, {at(30), 9 * time.Second}}
	require.InDelta(t, 3.0/12/2, stealShare(in, samples, 2), 1e-9)
	require.Zero(t, stealShare(in, samples[:1], 2))
	require.Zero(t, stealShare(in, nil, 2))
}
