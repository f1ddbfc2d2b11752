package inturns_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/inturns"
	"github.com/benchloom/benchloom/internal/jobrun"
	machinery "github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/verdict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	quiet = "quiet" // both sides take the same time, to the digit
	noisy = "noisy" // no difference, and noise that hides it
	slow  = "slow"  // the new side takes twice as long
)

func testCase(benchmark string) bench.TestCase { return bench.TestCase{Benchmark: benchmark} }

func comparison() inturns.Comparison {
	return inturns.Comparison{A: "old", B: "new", TestCases: []bench.TestCase{testCase(quiet), testCase(noisy), testCase(slow)}}
}

// machine is a simulated machine that measures what each look asks for.
type machine struct {
	random  *rand.Rand
	results []jobrun.LocalResult
	// broken fails in the second look.
	broken bench.TestCase
}

func (m *machine) measure(number int, look jobrun.Look) {
	for _, tc := range look.TestCases {
		for _, side := range []string{"old", "new"} {
			r := jobrun.LocalResult{Look: number, Result: jobrun.Result{TestCase: tc, Subject: side}}
			if tc == m.broken && number == 2 {
				r.Failure = &jobrun.Failure{Message: "exit status 1"}
			}
			for i := 0; i < look.Iterations && r.Failure == nil; i++ {
				r.Collections = append(r.Collections, m.collection(tc, side, i+1))
			}
			m.results = append(m.results, r)
		}
	}
}

func (m *machine) collection(tc bench.TestCase, side string, iteration int) jobrun.Collection {
	noise := 0.0
	switch tc.Benchmark {
	case noisy:
		noise = 0.2
	case slow:
		noise = 0.01
	}
	seconds := 1 + noise*m.random.NormFloat64()
	if tc.Benchmark == slow && side == "new" {
		seconds *= 2
	}
	return jobrun.Collection{Iteration: iteration, Duration: 3 * time.Second, Metrics: map[bench.Metric]float64{
		bench.WallTime: seconds, bench.MinorFaults: 1000 * seconds, "size:binary": 100,
	}}
}

// compare measures until there is no further look, and returns what each look measured and the last judgement.
func (m *machine) compare(t *testing.T, c inturns.Comparison) (looks []jobrun.Look, last inturns.Judgement) {
	t.Helper()
	for {
		judged, err := c.Judge(m.results)
		require.NoError(t, err)
		require.Equal(t, len(looks), judged.Looks)
		look := judged.Next()
		if len(look.TestCases) == 0 {
			return looks, judged
		}
		looks = append(looks, look)
		m.measure(len(looks), look)
	}
}

func newMachine() *machine { return &machine{random: rand.New(rand.NewPCG(1, 2))} }

func kinds(rows []inturns.Row) map[string]verdict.Kind {
	out := make(map[string]verdict.Kind)
	for _, r := range rows {
		out[r.TestCase.Benchmark+" "+string(r.Metric)] = r.Verdict.Kind
	}
	return out
}

// Each test case is measured until it is decided, and no longer; noise is measured to the end.
func TestLooksGoOnUntilAllIsDecided(t *testing.T) {
	t.Parallel()
	looks, last := newMachine().compare(t, comparison())
	var pairs []int
	var measured []int
	for _, look := range looks {
		pairs, measured = append(pairs, look.Iterations), append(measured, len(look.TestCases))
	}
	require.Equal(t, []int{6, 8, 8, 12, 12}, pairs)
	require.Equal(t, []int{3, 2, 1, 1, 1}, measured, "the quiet one is settled by 6 pairs, the slow one by 14")
	require.Equal(t, testCase(noisy), looks[4].TestCases[0])
	require.Equal(t, map[string]verdict.Kind{
		"quiet wall-time": verdict.NoDifference, "noisy wall-time": verdict.Undecided, "slow wall-time": verdict.Changed,
		"quiet size:binary": verdict.NoDifference, "noisy size:binary": verdict.NoDifference, "slow size:binary": verdict.NoDifference,
	}, kinds(last.Rows), "minor faults explain and decide nothing")
	require.Equal(t, 6, last.Family.Size)
	require.Equal(t, 5, last.Decided())
	require.Equal(t, 46, last.Pairs)
	for _, r := range last.Rows {
		if r.TestCase.Benchmark == slow && r.Metric == bench.WallTime {
			require.Equal(t, 14, r.Verdict.Pairs)
			require.InDelta(t, 1, r.Verdict.Change, 0.05)
		}
	}
}

// A row that is decided while others of its test case are open keeps its verdict, whatever is measured after it.
func TestAVerdictStays(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := comparison()
	for number, pairs := range []int{6, 8, 8} {
		m.measure(number+1, jobrun.Look{TestCases: c.TestCases[2:], Iterations: pairs})
	}
	for i := range m.results {
		if r := m.results[i]; r.Look == 3 && r.Subject == "new" {
			for _, collection := range r.Collections {
				collection.Metrics[bench.WallTime] /= 4
			}
		}
	}
	judged, err := c.Judge(m.results)
	require.NoError(t, err)
	require.Equal(t, verdict.Changed, kinds(judged.Rows)["slow wall-time"])
}

// The first look fixes the family: a metric that only a later look has stays undecided.
func TestTheFirstLookFixesTheFamily(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := comparison()
	m.measure(1, jobrun.Look{TestCases: c.TestCases, Iterations: 6})
	m.measure(2, jobrun.Look{TestCases: c.TestCases, Iterations: 8})
	for _, r := range m.results {
		if r.Look == 2 {
			for _, collection := range r.Collections {
				collection.Metrics[bench.MaxRSS] = 1
			}
		}
	}
	judged, err := c.Judge(m.results)
	require.NoError(t, err)
	require.Equal(t, 6, judged.Family.Size)
	require.Equal(t, verdict.Undecided, kinds(judged.Rows)["quiet max-rss"])
}

// Other load changes times and no allocations, so only of the latter can disturbed pairs show that there is no difference.
func TestADisturbanceConcernsTimesOnly(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := comparison()
	for n, pairs := range []int{6, 8} {
		m.measure(n+1, jobrun.Look{TestCases: c.TestCases[:1], Iterations: pairs})
	}
	for _, r := range m.results {
		for i := range r.Collections {
			r.Collections[i].Metrics["allocs/op"] = 1000 + float64(i%3)/10
			r.Collections[i].Disturbed = []machinery.Reason{{Cause: machinery.ForeignCPU}}
		}
	}
	judged, err := c.Judge(m.results)
	require.NoError(t, err)
	require.Equal(t, verdict.NoDifference, kinds(judged.Rows)["quiet allocs/op"])
	require.Equal(t, verdict.Undecided, kinds(judged.Rows)["quiet wall-time"])
	for _, row := range judged.Rows {
		require.Equal(t, row.Metric == bench.WallTime, row.Verdict.Disturbed > 0, row.Metric)
	}
}

// A test case that fails is not measured again; the pairs before it are judged.
func TestAFailedTestCaseIsNotMeasuredAgain(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.broken = testCase(noisy)
	looks, last := m.compare(t, comparison())
	require.Len(t, looks, 2)
	require.Equal(t, verdict.Undecided, kinds(last.Rows)["noisy wall-time"])
}

// A fixed number of pairs is one look, and is judged as one.
func TestAFixedNumberOfPairs(t *testing.T) {
	t.Parallel()
	c := comparison()
	c.Pairs = 12
	looks, last := newMachine().compare(t, c)
	require.Len(t, looks, 1)
	require.Equal(t, 12, looks[0].Iterations)
	require.Len(t, looks[0].TestCases, 3)
	require.Equal(t, verdict.Changed, kinds(last.Rows)["slow wall-time"], "as the only look, 12 pairs can confirm")
	require.Equal(t, verdict.Undecided, kinds(last.Rows)["noisy wall-time"])
}

// A family that cannot be decided is refused before anything is measured, as far as that is known.
func TestTooManyTestCasesAreRefused(t *testing.T) {
	t.Parallel()
	c := inturns.Comparison{A: "old", B: "new", TestCases: make([]bench.TestCase, 4195)}
	_, err := c.Judge(nil)
	var tooLarge *verdict.TooLargeError
	require.ErrorAs(t, err, &tooLarge)
	c.TestCases = c.TestCases[:4194]
	_, err = c.Judge(nil)
	require.NoError(t, err)
}

// The time that is left at most is that of the open test cases for all looks to come.
func TestAtMost(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := comparison()
	m.measure(1, jobrun.Look{TestCases: c.TestCases, Iterations: 6})
	judged, err := c.Judge(m.results)
	require.NoError(t, err)
	require.Equal(t, []bench.TestCase{testCase(noisy), testCase(slow)}, judged.Open)
	require.Equal(t, 2*40*2*3*time.Second, judged.AtMost(m.results), "two test cases, 40 pairs of two iterations of 3 s")
}

// A comparison that ends early says so in the rows that are not decided, and leaves the others as they are.
func TestOverBudget(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := comparison()
	m.measure(1, jobrun.Look{TestCases: c.TestCases, Iterations: 6})
	judged, err := c.Judge(m.results)
	require.NoError(t, err)
	require.Equal(t, 2*8*2*3*time.Second, judged.NextTakes(m.results), "two test cases, 8 pairs of two iterations of 3 s")
	judged.OverBudget("enough", "more")
	for _, r := range judged.Rows {
		if r.Verdict.Kind == verdict.Undecided {
			require.Regexp(t, "^budget: enough; so far (noise|too few values)", r.Verdict.Reason)
			require.Equal(t, "more", r.Verdict.Needs)
		} else {
			require.NotContains(t, r.Verdict.Reason, "budget")
		}
	}
	require.Equal(t, verdict.Undecided, kinds(judged.Rows)["slow wall-time"])
}
