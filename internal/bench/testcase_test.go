package bench_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestJobKindsAndCategories(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bench.JobKind{"compiletime": bench.KindCompileTime, "Runtime": bench.KindRuntime, "COMMAND": bench.KindCommand} {
		got, err := bench.ParseJobKind(s)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for s, want := range map[string]bench.Category{"": bench.Primary, "primary": bench.Primary, "Secondary": bench.Secondary} {
		got, err := bench.ParseCategory(s)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, wrong := range []string{"compile-time", "tertiary", " primary"} {
		_, err := bench.ParseJobKind(wrong)
		require.ErrorIs(t, err, bench.ErrInvalid)
		_, err = bench.ParseCategory(wrong)
		require.ErrorIs(t, err, bench.ErrInvalid)
	}
	_, err := bench.ParseJobKind("")
	require.ErrorIs(t, err, bench.ErrInvalid, "a job without a kind cannot be prepared")
}

func TestTestCasesAreCheckedAndNamed(t *testing.T) {
	t.Parallel()
	whole := bench.TestCase{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: linux}
	got, err := bench.NewTestCase(whole)
	require.NoError(t, err)
	require.Equal(t, whole, got)
	require.Equal(t, "gin build full gc x86_64-unknown-linux-gnu", got.String())

	least, err := bench.NewTestCase(bench.TestCase{Benchmark: "parse", Target: linux})
	require.NoError(t, err)
	require.Equal(t, "parse x86_64-unknown-linux-gnu", least.String())

	for part, spoil := range map[string]func(*bench.TestCase){
		"benchmark": func(tc *bench.TestCase) { tc.Benchmark = "" },
		"profile":   func(tc *bench.TestCase) { tc.Profile = "=" },
		"scenario":  func(tc *bench.TestCase) { tc.Scenario = " full" },
		"backend":   func(tc *bench.TestCase) { tc.Backend = "a\nb" },
		"target":    func(tc *bench.TestCase) { tc.Target = "" },
	} {
		tc := whole
		spoil(&tc)
		got, err := bench.NewTestCase(tc)
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, part+` "`)
		require.Zero(t, got)
	}
}

func TestScenariosAreInDisplayOrder(t *testing.T) {
	t.Parallel()
	want := []string{
		"", "full", "incr-full", "incr-unchanged",
		"incr-patched", "incr-patched: println", "incr-patched:println", "incr-patched: add-type", "incr-patched:rename",
		"baseline", "warm", "warm:up",
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		got := slices.Clone(want)
		random.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, bench.CompareScenarios)
		require.Equal(t, want, got)
	}
}

func TestTestCasesAreOrderedByBenchmarkProfileScenarioBackendTarget(t *testing.T) {
	t.Parallel()
	// From row to row one part grows and all parts after it shrink.
	want := []bench.TestCase{
		{Benchmark: "a", Profile: "z", Scenario: "warm", Backend: "z", Target: "z-z"},
		{Benchmark: "b", Profile: "a", Scenario: "warm", Backend: "z", Target: "z-z"},
		{Benchmark: "b", Profile: "b", Scenario: "full", Backend: "z", Target: "z-z"},
		{Benchmark: "b", Profile: "b", Scenario: "incr-full", Backend: "a", Target: "z-z"},
		{Benchmark: "b", Profile: "b", Scenario: "incr-full", Backend: "b", Target: "a-a"},
		{Benchmark: "b", Profile: "b", Scenario: "incr-full", Backend: "b", Target: "b-b"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, bench.CompareTestCases)
	require.Equal(t, want, got)
}

// A total order: every two are ordered, one way only, equal only to themselves,
// and without circles. Job keys rest on it.
func TestComparingTestCasesIsATotalOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	scenarios := []string{"", "full", "full:", "full:println", "full: println", "full:a", "incr-full", "incr-unchanged", "incr-patched",
		"incr-patched:", "incr-patched:println", "incr-patched: println", "incr-patched:printlm", "incr-patched: a", "incr-patched:a",
		"println", ":", ":println", "x", "x:a", "x: a", "\xff"}
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	cases := []bench.TestCase{{}}
	for _, s := range scenarios {
		cases = append(cases, bench.TestCase{Scenario: s})
	}
	for range 50 {
		cases = append(cases, bench.TestCase{
			Benchmark: pick("", "a", "b"), Profile: pick("", "a"), Scenario: pick(scenarios...),
			Backend: pick("", "a"), Target: bench.Target(pick("", "a-b")),
		})
	}
	for _, a := range cases {
		for _, b := range cases {
			ab := bench.CompareTestCases(a, b)
			require.Equal(t, a == b, ab == 0, "%q %q", a, b)
			require.Equal(t, cmp.Compare(0, ab), cmp.Compare(bench.CompareTestCases(b, a), 0), "%q %q", a, b)
			for _, c := range cases {
				if ab <= 0 && bench.CompareTestCases(b, c) <= 0 && bench.CompareTestCases(a, c) > 0 {
					require.Fail(t, "a circle", "%q %q %q", a, b, c)
				}
			}
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	for metric, want := range map[bench.Metric]struct {
		exact     bool
		direction bench.Direction
	}{
		bench.WallTime:     {false, bench.LowerIsBetter},
		bench.MaxRSS:       {false, bench.LowerIsBetter},
		bench.Instructions: {false, bench.LowerIsBetter},
		"ns/op":            {false, bench.LowerIsBetter},
		"allocs/op":        {false, bench.LowerIsBetter},
		"MB/s":             {false, bench.HigherIsBetter},
		"requests/s":       {false, bench.HigherIsBetter},
		"s":                {false, bench.LowerIsBetter},
		"/s/op":            {false, bench.LowerIsBetter},
		"size:binary":      {true, bench.LowerIsBetter},
		"size:object":      {true, bench.LowerIsBetter},
		"sizes":            {false, bench.LowerIsBetter},
		"binary-size:":     {false, bench.LowerIsBetter},
	} {
		require.Equal(t, want.exact, metric.Exact(), "%s", metric)
		require.Equal(t, want.direction, metric.Direction(), "%s", metric)
	}
}

func TestOtherLoadChangesTimesAndNotAllocations(t *testing.T) {
	t.Parallel()
	for metric, disturbable := range map[bench.Metric]bool{
		bench.WallTime: true, bench.CPUTime: true, bench.MaxRSS: true, bench.Instructions: true, bench.CacheMisses: true,
		"ns/op": true, "MB/s": true, "requests/s": true, "p99-ns": true, "unheard-of": true, "Parse/large ns/op": true,
		"size:binary": false, "B/op": false, "allocs/op": false, "Parse/large allocs/op": false, "Parse/large B/op": false,
	} {
		require.Equal(t, disturbable, metric.Disturbable(), metric)
	}
}

func TestCheckMetric(t *testing.T) {
	t.Parallel()
	accepts(t, bench.CheckMetric,
		[]string{
			string(bench.WallTime), string(bench.CPUTime), string(bench.UserTime), string(bench.SystemTime), string(bench.MaxRSS),
			string(bench.MinorFaults), string(bench.MajorFaults), string(bench.VoluntarySwitches), string(bench.InvoluntarySwitches),
			string(bench.Instructions), string(bench.Cycles), string(bench.BranchMisses), string(bench.CacheMisses),
			bench.SizePrefix + "binary", "ns/op", "MB/s", "p99-ns", "µs", strings.Repeat("m", 64),
			"Parse/small ns/op", `Parse/"a"\b MB/s`, strings.Repeat("p", 190) + " ns/op",
		},
		[]string{"", " ", " ns/op", "Parse ", "wall clock time", strings.Repeat("p", 191) + " ns/op", "Par\x00se ns/op", "a\tb", "a\nb", `a"b`, "a'b", `a\b`, strings.Repeat("m", 65)})
}
