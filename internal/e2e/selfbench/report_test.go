package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
)

func TestPercentileIsNearestRank(t *testing.T) {
	t.Parallel()
	values := make([]time.Duration, 300)
	for i := range values {
		values[len(values)-1-i] = time.Duration(i + 1)
	}
	require.EqualValues(t, 150, percentile(values, 50))
	require.EqualValues(t, 297, percentile(values, 99), "three of 300 may be slower")
	require.EqualValues(t, 300, percentile(values, 100))
	require.EqualValues(t, 1, percentile(values, 0))
	require.EqualValues(t, 7, percentile([]time.Duration{7}, 99))
	require.Zero(t, percentile[time.Duration](nil, 50))
	require.EqualValues(t, 300, values[0], "the values keep their order")
}

func TestMedian(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	require.Zero(t, median[float64](nil))
}

func TestAddedIsTheMedianOfDifferencesWithinPairs(t *testing.T) {
	t.Parallel()
	bare := []cost{{wall: 10 * time.Millisecond}, {wall: 100 * time.Millisecond}, {wall: 20 * time.Millisecond}}
	wrapped := []cost{{wall: 11 * time.Millisecond}, {wall: 101 * time.Millisecond}, {wall: 50 * time.Millisecond}}
	f := added("Wrapper", wrapped, bare, func(c cost) time.Duration { return c.wall })
	got := map[string]float64{}
	for _, v := range f.values {
		got[v.Unit] = v.Value
	}
	require.Equal(t, map[string]float64{"wrapped-sec": 0.050, "bare-sec": 0.020, unitAdded: 0.001, unitPercent: 5}, got)
	require.Equal(t, 3, f.iters)

	none := added("Wrapper", wrapped, bare, func(c cost) time.Duration { return c.cpu })
	require.Zero(t, none.values[3].Value, "per cent of nothing")
}

func TestReportIsReadableAsBenchmarkFormat(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := newReport(&out, [][2]string{{"goos", "linux"}, {"cpu", "Some CPU @ 2 GHz"}})
	require.NoError(t, r.addDurations(dispatchName(ofCommand, fromPost, toCommand), []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}))
	require.NoError(t, r.add(usage{cpu: time.Second, rss: 40e6}.figure(idleName("api", "used"), 10)))

	reader := benchfmt.NewReader(&out, "output")
	var read []*benchfmt.Result
	for reader.Scan() {
		result, isResult := reader.Result().(*benchfmt.Result)
		require.True(t, isResult, "%v", reader.Result())
		read = append(read, result.Clone())
	}
	require.NoError(t, reader.Err())
	require.Len(t, read, 2)
	require.Equal(t, "Dispatch/of=command/from=post/to=command", string(read[0].Name.Full()))
	require.Equal(t, 3, read[0].Iters)
	require.Equal(t, "Some CPU @ 2 GHz", read[0].GetConfig("cpu"))
	for unit, want := range map[string]float64{unitP50: 2, unitP99: 3} {
		got, found := read[0].Value(unit)
		require.True(t, found, unit)
		require.Equal(t, want, got, unit)
	}
	rss, _ := read[1].Value(unitRSS)
	require.Equal(t, 40e6, rss)
	cpu, _ := read[1].Value(unitCPU)
	require.Equal(t, 0.1, cpu)
}

func TestJudgeComparesTheMedianWithTheLimit(t *testing.T) {
	t.Parallel()
	most := limit{part: partStack, benchmark: "Dispatch", unit: unitP99, most: 0.1}
	figures := func(values ...float64) (all []figure) {
		for _, v := range values {
			all = append(all, figure{"Dispatch", 300, []benchfmt.Value{{Value: 9, Unit: unitP50}, {Value: v, Unit: unitP99}}},
				figure{"Other", 300, []benchfmt.Value{{Value: 9, Unit: unitP99}}})
		}
		return all
	}
	for _, c := range []struct {
		name    string
		figures []figure
		kept    bool
		says    string
	}{
		{"kept, though two of five are above", figures(0.05, 0.3, 0.1, 0.2, 0.09), true, "ok    Dispatch: median of 5 is 0.1 p99-sec, the limit is 0.1"},
		{"broken", figures(0.05, 0.3, 0.11, 0.2, 0.09), false, "FAIL  Dispatch: median of 5 is 0.11 p99-sec, the limit is 0.1"},
		{"not measured", nil, false, "FAIL  Dispatch was not measured (limit 0.1 p99-sec)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			verdicts := judge([]limit{most}, c.figures)
			require.Len(t, verdicts, 1)
			require.Equal(t, c.kept, verdicts[0].kept())
			require.Equal(t, c.says, verdicts[0].String())
		})
	}
}

func TestALimitGrowsWithABareWorkflowOfTheSameRun(t *testing.T) {
	t.Parallel()
	grows := limit{part: partStack, benchmark: "Dispatch", unit: unitP99, most: 0.1, times: 3, of: "Bare"}
	for _, c := range []struct {
		name           string
		dispatch, bare float64
		kept           bool
		says           string
	}{
		{"a fast machine", 0.09, 0.02, true, "ok    Dispatch: median of 1 is 0.09 p99-sec, the limit is 0.1 (the larger of 0.1 and 3 times the 0.02 of Bare)"},
		{"too late on a fast machine", 0.11, 0.02, false, "FAIL  Dispatch: median of 1 is 0.11 p99-sec, the limit is 0.1 (the larger of 0.1 and 3 times the 0.02 of Bare)"},
		{"a slow machine", 0.11, 0.04, true, "ok    Dispatch: median of 1 is 0.11 p99-sec, the limit is 0.12 (the larger of 0.1 and 3 times the 0.04 of Bare)"},
		{"too late on a slow machine", 0.13, 0.04, false, "FAIL  Dispatch: median of 1 is 0.13 p99-sec, the limit is 0.12 (the larger of 0.1 and 3 times the 0.04 of Bare)"},
	} {
		verdicts := judge([]limit{grows}, []figure{
			{"Dispatch", 300, []benchfmt.Value{{Value: c.dispatch, Unit: unitP99}}},
			{"Bare", 300, []benchfmt.Value{{Value: 9, Unit: unitP50}, {Value: c.bare, Unit: unitP99}}},
		})
		require.Equal(t, c.kept, verdicts[0].kept(), c.name)
		require.Equal(t, c.says, verdicts[0].String(), c.name)
	}
}

func TestALimitOfEachRepetitionIsBrokenByOne(t *testing.T) {
	t.Parallel()
	figures := func(wrong ...float64) (all []figure) {
		for _, v := range wrong {
			all = append(all, figure{"Accuracy", 10, []benchfmt.Value{{Value: v, Unit: unitWrong}}})
		}
		return all
	}
	none := limit{part: partAccuracy, benchmark: "Accuracy", unit: unitWrong, most: 0, each: true}
	require.Equal(t, "FAIL  Accuracy: maximum of 3 is 1 wrong-verdicts, the limit is 0", judge([]limit{none}, figures(0, 1, 0))[0].String())
	require.True(t, judge([]limit{none}, figures(0, 0, 0))[0].kept())
	none.each = false
	require.True(t, judge([]limit{none}, figures(0, 1, 0))[0].kept(), "at most one of three")
	require.False(t, judge([]limit{none}, figures(1, 1, 0))[0].kept())
}

func TestDisturbanceIsTheMedianOfOthers(t *testing.T) {
	t.Parallel()
	idle := func(process, state string, cores float64) figure {
		return figure{idleName(process, state), 1, []benchfmt.Value{{Value: cores, Unit: unitCPU}}}
	}
	require.Zero(t, disturbance(nil), "the wrapper alone was measured")
	require.Equal(t, 0.3, disturbance([]figure{idle("api", "used", 9), idle(othersProcess, "fresh", 0.1), idle(othersProcess, "used", 0.5), idle(othersProcess, "fresh", 0.3)}))
}

// The limits are promises: changing one is a decision, not an accident.
func TestLimits(t *testing.T) {
	t.Parallel()
	got, relative := map[string]float64{}, map[string]string{}
	var strict []string
	for _, l := range limits() {
		got[l.benchmark+" "+l.unit] = l.most
		if l.times > 0 {
			relative[l.benchmark+" "+l.unit] = fmt.Sprintf("%g times %s", l.times, l.of)
		}
		if l.each {
			strict = append(strict, l.benchmark+" "+l.unit)
		}
	}
	require.Equal(t, map[string]string{
		"Dispatch/of=command/from=job/to=command p99-sec":  "3 times Bare/from=workflow/to=code",
		"Dispatch/of=command/from=post/to=command p50-sec": "6 times Bare/from=call/to=code",
		"Dispatch/of=suite/from=job/to=command p99-sec":    "3 times Bare/from=workflow/to=code",
		"Dispatch/of=suite/from=post/to=command p50-sec":   "6 times Bare/from=call/to=code",
	}, relative)
	never := []string{
		"Accuracy/by=command/toolchain=same wrong-verdicts", "Accuracy/by=command/toolchain=slow wrong-verdicts",
		"Accuracy/by=service/toolchain=same wrong-verdicts", "Accuracy/by=service/toolchain=slow wrong-verdicts",
	}
	for _, of := range pagesOfResults {
		for _, state := range statesOfResults {
			never = append(never, resultsName(of, state)+" failed")
		}
	}
	require.ElementsMatch(t, never, strict)
	require.Equal(t, map[string]float64{
		"Dispatch/of=command/from=job/to=command p99-sec":    0.1,
		"Dispatch/of=command/from=post/to=command p50-sec":   0.2,
		"Dispatch/of=suite/from=job/to=command p99-sec":      0.1,
		"Dispatch/of=suite/from=post/to=command p50-sec":     0.2,
		"Rate/of=command/state=now/collectors=1 of-bare-sec": 2,
		"Rate/of=command/state=now/collectors=4 of-bare-sec": 2,
		"Wrapper/command=true added-sec":                     0.005,
		"Wrapper/command=loop added-%":                       0.5,
		"WrapperCPU/command=loop added-%":                    0.5,
		"Isolation/command=loop beyond-%":                    0.5,
		"Isolation/command=loop spread-off":                  0.15,
		"Isolation/command=forks beyond-%":                   0.5,
		"Isolation/command=forks spread-off":                 0.15,
		"Profile/of=agent cpu-sec/sec":                       0.005,
		"Profile/of=agent growth-B":                          20e6,
		"Profile/beside=loop high-%":                         0.5,
		"Graph/of=graph/nodes=5000 of-flat-sec":              1 / 0.7, "GraphHistory/nodes=5000 events": 10_000, "Retrigger/jobs=500 sec": 2,
		"Makespan/slots=1 p90-of-allowed": 1, "Makespan/slots=2 p90-of-allowed": 1, "Gap/between=requests p99-sec": 1,
		"TwoOfEach/from=post/to=fence p99-sec":                  1,
		"Overtaken/waiting=10000 p99-jobs":                      1,
		"Overtaken/waiting=10000 most-jobs":                     2,
		"Accuracy/by=command/toolchain=same wrong-verdicts":     0,
		"Accuracy/by=command/toolchain=slow wrong-verdicts":     0,
		"Accuracy/by=command/toolchain=slow off-%":              5,
		"Accuracy/by=command/toolchain=slow undecided-verdicts": 0,
		"Accuracy/by=service/toolchain=slow undecided-verdicts": 0,
		"Accuracy/by=service/toolchain=same wrong-verdicts":     0,
		"Accuracy/by=service/toolchain=slow wrong-verdicts":     0,
		"Accuracy/by=service/toolchain=slow off-%":              5,
		"Accept/by=file/jobs=10000 sec":                         10,
		"Gap/between=jobs/waiting=10000 p50-of-few":             1.5,
		"Gap/between=jobs/waiting=100000 p50-of-few":            1.5,
		"Growth/process=api/waiting=100000 growth-B":            100e6,
		"Growth/process=orchestrator/waiting=100000 growth-B":   100e6,
		"Growth/process=collector/waiting=100000 growth-B":      100e6,
		"Growth/process=temporal/waiting=100000 growth-B":       100e6,
		"Growth/process=up/waiting=100000 growth-B":             100e6,
		"Pages/of=request p99-sec":                              0.1,
		"Pages/of=queue p99-sec":                                0.1,
		"Shown/state=waiting most-sec":                          2,
		"Shown/state=admitted most-sec":                         2,
		"Shown/state=expanded most-sec":                         2,
		"Shown/state=running most-sec":                          2,
		"Shown/state=completing most-sec":                       2,
		"Shown/state=completed most-sec":                        2,
		"Followers/compared=one looks/sec":                      1 + 1.0/15,
		"Followers/compared=one of-one":                         1.15,
		"Results/of=neighbours/state=warm p99-sec":              0.1,
		"Results/of=neighbours/state=warm failed":               0,
		"Results/of=neighbours/state=cold p99-sec":              0.25,
		"Results/of=neighbours/state=cold failed":               0,
		"Results/of=neighbours/state=stale p99-sec":             0.5,
		"Results/of=neighbours/state=stale failed":              0,
		"Answer/of=neighbours most-B":                           300e3,
		"Results/of=distant/state=warm p99-sec":                 0.1,
		"Results/of=distant/state=warm failed":                  0,
		"Results/of=distant/state=cold p99-sec":                 0.25,
		"Results/of=distant/state=cold failed":                  0,
		"Results/of=distant/state=stale p99-sec":                0.5,
		"Results/of=distant/state=stale failed":                 0,
		"Answer/of=distant most-B":                              300e3,
		"Results/of=newest/state=warm p99-sec":                  0.1,
		"Results/of=newest/state=warm failed":                   0,
		"Results/of=newest/state=cold p99-sec":                  0.25,
		"Results/of=newest/state=cold failed":                   0,
		"Results/of=newest/state=stale p99-sec":                 0.5,
		"Results/of=newest/state=stale failed":                  0,
		"Answer/of=newest most-B":                               300e3,
		"Results/of=whole/state=warm p99-sec":                   0.1,
		"Results/of=whole/state=warm failed":                    0,
		"Results/of=whole/state=cold p99-sec":                   0.25,
		"Results/of=whole/state=cold failed":                    0,
		"Results/of=whole/state=stale p99-sec":                  0.5,
		"Results/of=whole/state=stale failed":                   0,
		"Answer/of=whole most-B":                                300e3,
		"Results/of=zoom/state=warm p99-sec":                    0.1,
		"Results/of=zoom/state=warm failed":                     0,
		"Results/of=zoom/state=cold p99-sec":                    0.25,
		"Results/of=zoom/state=cold failed":                     0,
		"Results/of=zoom/state=stale p99-sec":                   0.5,
		"Results/of=zoom/state=stale failed":                    0,
		"Answer/of=zoom most-B":                                 300e3,
		"ResultsMemory/process=api peak-B":                      150e6,
		"Paint/charts=24/from=navigation p50-sec":               0.3,
		"Idle/process=api/state=fresh rss-B":                    80e6,
		"Idle/process=api/state=used rss-B":                     80e6,
		"Idle/process=orchestrator/state=fresh rss-B":           80e6,
		"Idle/process=orchestrator/state=used rss-B":            80e6,
		"Idle/process=collector/state=fresh rss-B":              80e6,
		"Idle/process=collector/state=used rss-B":               80e6,
	}, got)
}
