package cli_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/verdict"
)

// measured returns results of a local run: the second artifact takes twice the
// time and writes larger files.
func measured(t *testing.T, tags ...string) *jobrun.LocalResults {
	t.Helper()
	loaded, err := suite.Load(fstest.MapFS{suite.FileName: {Data: []byte(`name: small
artifact: {provider: goroot}
profiles: {build: {}}
procedures:
  compiletime: {scenarios: {full: {measure: {run: ["true"]}}, "incr-patched: println": {measure: {run: ["true"]}}}}
benchmarks:
  - {name: gin/core, kind: compiletime}
`)}})
	require.NoError(t, err)
	out := &jobrun.LocalResults{Suite: loaded}
	full := bench.TestCase{Benchmark: "gin/core", Profile: "build", Scenario: "full", Target: linux}
	patched := full
	patched.Scenario = "incr-patched: println"
	for i, tag := range tags {
		out.Subjects = append(out.Subjects, jobrun.LocalSubject{Name: tag, Identity: "h1:" + tag})
		r := jobrun.Result{TestCase: full, Subject: tag}
		for n := range 5 {
			seconds := float64(i+1) * (1 + float64(n)/1000)
			r.Collections = append(r.Collections, jobrun.Collection{
				Iteration: n + 1, StartedAt: now.Add(time.Duration(n) * time.Second), Duration: time.Second,
				Metrics: map[bench.Metric]float64{bench.WallTime: seconds, bench.MinorFaults: 100, "size:binary": float64(1000 + i), "ns/op": 1e9 * seconds},
			})
		}
		failed := jobrun.Result{TestCase: patched, Subject: tag, Failure: &jobrun.Failure{Kind: bench.FailJob, Message: "exit status 1", Output: "no such file\x07\n"}}
		out.Results = append(out.Results, jobrun.LocalResult{Result: r}, jobrun.LocalResult{Result: failed})
	}
	return out
}

func TestLocalReport(t *testing.T) {
	t.Parallel()
	one, err := cli.NewLocalReport(measured(t, "1.26.0"), nil, nil, false)
	require.NoError(t, err)
	require.Equal(t, 1, one.Failed())
	two, err := cli.NewLocalReport(measured(t, "1.25.0", "1.26.0"), nil, nil, false)
	require.NoError(t, err)
	require.Equal(t, 2, two.Failed())
	require.Equal(t, 1, cli.Regressions(cli.Verdicts(*two.Comparison)), "five pairs show a change of an exact metric only")
	all, err := cli.NewLocalReport(measured(t, "1.25.0", "1.26.0"), nil, nil, true)
	require.NoError(t, err)
	require.Equal(t, two.Comparison.Family, all.Comparison.Family, "what is shown does not change what is judged")

	for name, write := range map[string]func(*bytes.Buffer) error{
		"bench-one":      func(b *bytes.Buffer) error { return one.WriteText(b, report.TableOptions{}) },
		"bench-two":      func(b *bytes.Buffer) error { return two.WriteText(b, report.TableOptions{OnlyRemarkable: true}) },
		"bench-markdown": func(b *bytes.Buffer) error { return two.WriteMarkdown(b, report.TableOptions{}) },
		"bench-benchfmt": func(b *bytes.Buffer) error { return two.WriteBenchfmt(b) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			require.NoError(t, write(&b))
			golden(t, name, b.String())
		})
	}
}

// One pair shows a change of a metric that the suite declares exact.
func TestLocalReportOfADeclaredExactMetric(t *testing.T) {
	t.Parallel()
	for _, declared := range []string{"", "metrics: {exact: [allocs/op]}"} {
		loaded, err := suite.Parse([]byte(`name: small
artifact: {provider: goroot}
` + declared + `
benchmarks:
  - {name: parse, measure: {run: ["true"]}}
`))
		require.NoError(t, err)
		tc := bench.TestCase{Benchmark: "parse", Target: linux}
		run := &jobrun.LocalResults{Suite: loaded, TestCases: []bench.TestCase{tc}}
		for i, tag := range []string{"1.25.0", "1.26.0"} {
			run.Subjects = append(run.Subjects, jobrun.LocalSubject{Name: tag, Identity: "h1:" + tag})
			run.Results = append(run.Results, jobrun.LocalResult{Look: 1, Result: jobrun.Result{TestCase: tc, Subject: tag, Collections: []jobrun.Collection{
				{Iteration: 1, StartedAt: now, Duration: time.Second, Metrics: map[bench.Metric]float64{"allocs/op": float64(1000 + i)}},
			}}})
		}
		judged, err := cli.JudgeLocal(run, 0)
		require.NoError(t, err)
		local, err := cli.NewLocalReport(run, &judged, nil, false)
		require.NoError(t, err)
		require.Len(t, local.Comparison.Rows, 1)
		row := local.Comparison.Rows[0]
		require.Equal(t, []bool{declared != "", declared != ""}, []bool{row.Exact, row.Is(verdict.Changed)}, row.Reason)
		require.Equal(t, declared == "", len(judged.Open) > 0, "what is exact needs no further look")
	}
}

// The values of all looks belong to one series.
func TestLocalReportOfLooks(t *testing.T) {
	t.Parallel()
	run := measured(t, "1.25.0", "1.26.0")
	for i := range run.Results {
		run.Results[i].Look = 1
		again := run.Results[i]
		again.Look = 2
		run.Results = append(run.Results, again)
	}
	local, err := cli.NewLocalReport(run, nil, nil, false)
	require.NoError(t, err)
	for _, r := range local.Comparison.Rows {
		require.Equal(t, []int{10, 10, 10, 2}, []int{r.A.N, r.B.N, r.Turns.Pairs, r.Turns.Sessions}, r.Key)
	}
}

// What disturbed a run is told, the most frequent cause first.
func TestLocalReportOfADisturbedRun(t *testing.T) {
	t.Parallel()
	run := measured(t, "1.26.0")
	for i := range 3 {
		c := &run.Results[0].Collections[i]
		c.Disturbed = append(c.Disturbed, machine.Reason{Cause: machine.ForeignCPU, Detail: fmt.Sprintf("%d %% of the job's CPUs", 40+i)})
	}
	c := &run.Results[0].Collections[0]
	c.Disturbed = append(c.Disturbed, machine.Reason{Cause: machine.StolenCPU, Detail: "1.0 % of the job's CPUs"})
	local, err := cli.NewLocalReport(run, nil, nil, false)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, local.WriteText(&b, report.TableOptions{}))
	require.Contains(t, b.String(), `
Disturbed by something else (3 of 5 iterations)
  foreign CPU time in 3, such as 40 % of the job's CPUs
  steal in 1, such as 1.0 % of the job's CPUs
`)
}

// Benchstat can read the output, with all parts of the test case.
func TestBenchfmtRoundTrip(t *testing.T) {
	t.Parallel()
	report, err := cli.NewLocalReport(measured(t, "1.25.0", "1.26.0"), nil, nil, false)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, report.WriteBenchfmt(&b))
	reader := benchfmt.NewReader(strings.NewReader(b.String()), "bench")
	tags := map[string]int{}
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		require.True(t, ok, "%v", reader.Result())
		tags[result.GetConfig("tag")]++
		require.Equal(t, "Gin/core/profile=build/scenario=full", result.Name.String())
		size, ok := result.Value("size:binary-bytes")
		require.True(t, ok)
		require.InDelta(t, 1000, size, 1)
	}
	require.NoError(t, reader.Err())
	require.Equal(t, map[string]int{"1.25.0": 5, "1.26.0": 5}, tags)
}

func TestLinesOfABenchmarkInALocalReport(t *testing.T) {
	t.Parallel()
	run := measured(t, "1.25.0", "1.26.0")
	for i, r := range run.Results {
		for _, c := range r.Collections {
			c.Metrics["Parse/small-2 B/op"], c.Metrics["Parse/large MB/s"] = 48, float64(9+i)
		}
	}
	local, err := cli.NewLocalReport(run, nil, []string{"B/op", "Parse/large MB/s"}, false)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, local.WriteText(&b, report.TableOptions{}))
	require.Contains(t, b.String(), "gin/core Parse/small-2 ")
	require.Contains(t, b.String(), "gin/core Parse/large ")
	b.Reset()
	require.NoError(t, local.WriteBenchfmt(&b))
	require.Contains(t, b.String(), "\nBenchmarkGin/core/profile=build/scenario=full/Parse/small-2 1 48 B/op\n")
	require.Contains(t, b.String(), "\nBenchmarkGin/core/profile=build/scenario=full/Parse/large 1 9 MB/s\n")

	one, err := cli.NewLocalReport(measured(t, "1.26.0"), nil, nil, false)
	require.NoError(t, err)
	for i := range one.Comparison.Rows {
		one.Comparison.Rows[i].Line = "Parse"
	}
	b.Reset()
	require.NoError(t, one.WriteText(&b, report.TableOptions{}))
	require.Contains(t, b.String(), "gin/core Parse ")
	_, err = cli.NewLocalReport(run, nil, []string{"rain"}, false)
	require.ErrorContains(t, err, "the measured metrics are MB/s, B/op, minor-faults, ")
}

// A run stopped before it had any results can be reported, too.
func TestEmptyLocalReport(t *testing.T) {
	t.Parallel()
	nothing := measured(t)
	local, err := cli.NewLocalReport(nothing, nil, nil, false)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, local.WriteText(&b, report.TableOptions{}))
	require.Equal(t, "suite small\n\n", b.String())
	_, err = cli.NewLocalReport(measured(t, "1.26.0"), nil, []string{"rain"}, false)
	require.ErrorIs(t, err, bench.ErrInvalid)
}
