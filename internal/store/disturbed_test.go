package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// disturbed marks iterations of a result.
func disturbed(r bench.TestCaseResult, by string, iterations ...int) bench.TestCaseResult {
	for i := range r.Collections {
		if slices.Contains(iterations, r.Collections[i].Iteration) {
			r.Collections[i].Disturbed = by
		}
	}
	return r
}

const byOthers = "foreign CPU time: 43 % of the job's CPUs"

// text reads one text from the database.
func (r record) text(sql string) (text string) {
	r.t.Helper()
	conn := r.connect()
	require.NoError(r.t, conn.QueryRow(r.t.Context(), sql).Scan(&text))
	require.NoError(r.t, conn.Close(r.t.Context()))
	return text
}

func (r record) wallTimes(tag string) bench.Samples {
	r.t.Helper()
	samples, err := r.SamplesOf(r.t.Context(), project, tag)
	require.NoError(r.t, err)
	i := slices.IndexFunc(samples, func(s bench.Samples) bool { return s.Metric == bench.WallTime })
	require.GreaterOrEqual(r.t, i, 0)
	return samples[i]
}

func TestDisturbedIterationsAreStoredAndRead(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin", "zip")
	run := r.start(job, 1, r.register("one")).Run.ID
	gin := disturbed(disturbed(measured("gin", 1, 2, 3, 4, 5), byOthers+"; steal: 1.0 %", 1, 3), "steal: 2.0 % of the job's CPUs\x00", 4)
	// The order of an upload does not matter.
	slices.Reverse(gin.Collections)
	zip := disturbed(measured("zip", 1, 2, 3, 4, 5), "swapping: 70 pages", 0)
	twice(t, func() error {
		_, err := r.StoreBlock(t.Context(), run, []bench.TestCaseResult{gin, zip}, nil)
		return err
	})

	samples := r.wallTimes("v1")
	require.Equal(t, []float64{1, 2, 3, 4, 5}, samples.Values)
	require.Equal(t, []int{0, 1, 2, 3, 4}, samples.Iterations)
	require.Equal(t, []bool{false, true, false, true, true}, samples.Disturbed)
	require.Equal(t, "foreign CPU time", samples.DisturbedBy)
	require.True(t, samples.SessionDisturbed())

	stored := func(benchmark string) string {
		return r.text(`select r.disturbed || ' by ' || r.disturbed_by || ', session: ' || r.disturbed_session
			from test_result r join test_case tc on tc.id = r.test_case_id where tc.benchmark = '` + benchmark + `'`)
	}
	require.Equal(t, "3 by foreign CPU time, session: true", stored("gin"))
	require.Equal(t, "1 by swapping, session: false", stored("zip"), "a fifth is not too many")

	var exported []string
	require.NoError(t, r.ExportCollections(t.Context(), project, nil, func(c bench.ExportedCollection) error {
		exported = append(exported, fmt.Sprintf("%s %d %s", c.TestCase.Benchmark, c.Iteration, c.Disturbed))
		return nil
	}))
	require.Contains(t, exported, "gin 3 "+byOthers+"; steal: 1.0 %")
	require.Contains(t, exported, "zip 0 swapping: 70 pages")
	require.Contains(t, exported, "zip 1 ")
}

// Whatever the collector's clock says and in whatever order the values arrive,
// iteration i of one side and iteration i of the other are a pair.
func TestPairsAreFormedByIterationAndKeepTheirMarks(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.inTurns("v2", "v1", "gin")
	run := r.start(job, 1, r.register("c1")).Run.ID
	a, b := measured("gin", 10, 11, 12), disturbed(measured("gin", 20, 21, 22), byOthers, 1)
	for i := range b.Collections {
		b.Collections[i].CollectedAt = b.Collections[i].CollectedAt.Add(-time.Hour) // the clock was set back
	}
	slices.Reverse(b.Collections)
	r.block(run, of("v1", a), of("v2", b))
	ofA, ofB, err := r.SamplesInTurns(t.Context(), project, "v1", "v2")
	require.NoError(t, err)
	require.Equal(t, []float64{10, 11, 12}, ofA[1].Values)
	require.Equal(t, []float64{20, 21, 22}, ofB[1].Values)
	require.Equal(t, ofA[1].Iterations, ofB[1].Iterations)
	require.Equal(t, []bool{false, false, false}, ofA[1].Disturbed)
	require.Equal(t, []bool{false, true, false}, ofB[1].Disturbed)
	require.Equal(t, bench.WallTime, ofB[1].Metric)
	sessions, err := r.SessionsInTurns(t.Context(), project, "v1", "v2")
	require.NoError(t, err)
	require.Len(t, sessions, 2)
	require.Equal(t, [][]float64{{10, 11, 12}, {20, 21, 22}}, [][]float64{sessions[1].A, sessions[1].B})
	require.Equal(t, []bool{false, true, false}, sessions[1].Disturbed, "either side disturbs the pair")
}

func TestAChangedSettingBeginsASegment(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	asked := collector("one")
	asked.Facts = json.RawMessage(`{"kernel": "6.1", "governor": "powersave", "boot_options": "none", "turbo": true}`)
	c, err := r.RegisterCollector(t.Context(), asked, offline)
	require.NoError(t, err)
	for i, facts := range []json.RawMessage{nil, json.RawMessage(`{"kernel": "6.8", "governor": "powersave", "boot_options": "none", "turbo": false, "smt": "off", "isolation": "account,network"}`)} {
		_, job := r.oneJob(fmt.Sprintf("v%d", i+1), "gin")
		start := r.runStart(runID(job, 1), c)
		start.Facts = facts
		_, err := r.StartRun(t.Context(), start)
		require.NoError(t, err)
		r.block(start.Run, measured("gin", 1))
	}
	first, second := r.wallTimes("v1"), r.wallTimes("v2")
	require.Equal(t, bench.Segment("6.1|powersave||none|true||none"), first.Segment)
	require.Equal(t, bench.Segment("6.8|powersave||none|false|off|account,network"), second.Segment)
	require.Equal(t, "another kernel: 6.1 and 6.8; another turbo: true and false; another isolation: none and account,network", first.Segment.Change(second.Segment))
	require.JSONEq(t, `"6.8"`, r.text(`select facts -> 'kernel' from collector_config`), "the collector shows its present facts")
}

func TestNormsAreTheMediansOfUndisturbedIterations(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	reading := func(result bench.TestCaseResult, pressure ...float64) bench.TestCaseResult {
		for i, p := range pressure {
			result.Collections[i].Facts = json.RawMessage(fmt.Sprintf(
				`{"machine": {"elapsed_ns": 1000000000, "cpus": 2, "interrupts_ns": 100000000, "cpu_pressure": %g}}`, p))
		}
		return result
	}
	_, job := r.oneJob("v1", "gin", "zip")
	first := r.start(job, 1, c)
	run := first.Run.ID
	require.Empty(t, first.Norms)
	r.block(run, reading(disturbed(measured("gin", 1, 2, 3, 4, 5), byOthers, 4), 0.1, 0.2, 0.2, 0.5, 0.9), measured("zip", 1))
	_, worse := r.oneJob("v2", "gin")
	r.block(r.start(worse, 1, c).Run.ID, reading(disturbed(measured("gin", 1, 2), byOthers, 0), 0.9, 0.9))

	_, next := r.oneJob("v3", "gin", "zip")
	fifth, twentieth := 0.2, 0.05
	require.Equal(t, []store.SeriesNorms{{TestCase: testCase("gin"), CPUPressure: &fifth, Interrupts: &twentieth}}, r.start(next, 1, c).Norms)

	// Another machine has other norms.
	other := collector("two")
	other.HardwareID = "zen5"
	two, err := r.RegisterCollector(t.Context(), other, offline)
	require.NoError(t, err)
	require.Empty(t, r.start(next, 2, two).Norms)
}

// All commands on a machine share a test case, whatever they do: what one of them does to the machine is not usual for another.
func TestCommandsHaveNoNorms(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	q := r.inProgress(bench.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Submission: bench.Submission{Submitter: "ada"}, Commands: bench.Commands{Command: &bench.Command{Argv: []string{"x"}}}})
	for line := range 2 {
		job := newCommand(q, line, "x", fmt.Sprint(line))
		r.expand(q, job)
		plan := r.start(job, 1, c)
		require.Empty(t, plan.Norms)
		result := bench.TestCaseResult{TestCase: job.TestCases[0], Collections: measured("", 1).Collections}
		result.Collections[0].Facts = json.RawMessage(`{"machine": {"elapsed_ns": 1000000000, "cpus": 2, "interrupts_ns": 900000000, "cpu_pressure": 0.9}}`)
		r.block(plan.Run.ID, result)
		require.Equal(t, bench.JobSuccess, r.finish(job, "").Status)
	}
}
