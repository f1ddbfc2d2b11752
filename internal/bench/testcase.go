package bench

import (
	"cmp"
	"slices"
	"strings"
)

// JobKind is the kind of a job. It decides how the collector prepares and measures it.
type JobKind string

// Kinds of jobs. The first two measure benchmarks of a suite, a command job runs one
// command line, a build job builds an artifact from a revision, and a profile job runs
// one test case under a profiler, which measures nothing.
const (
	KindCompileTime JobKind = "compiletime"
	KindRuntime     JobKind = "runtime"
	KindCommand     JobKind = "command"
	KindBuild       JobKind = "build"
	KindProfile     JobKind = "profile"
)

// ChildOfRequest reports whether a job of this kind is a child workflow of the request
// that it is handed out to.
//
// The jobs of suites are: a request fans out into them, and the Temporal Web UI shows
// them below it. Commands are not: a client starts each of them when it is handed out.
// A request of 100,000 commands is a queue rather than a fan-out, and its workflow
// could not start each of them and wait for its end.
func (k JobKind) ChildOfRequest() bool { return k != KindCommand }

// OwnResults reports whether the results of a job of this kind belong to the job alone:
// they are no artifact's, so nothing compares or counts them. A profile explains a
// measurement and never is one.
func (k JobKind) OwnResults() bool { return k == KindCommand || k == KindProfile }

// ParseJobKind parses a kind; case does not matter.
func ParseJobKind(s string) (JobKind, error) {
	switch k := JobKind(strings.ToLower(s)); k {
	case KindCompileTime, KindRuntime, KindCommand, KindBuild, KindProfile:
		return k, nil
	}
	return "", invalid("job kind", s, "use compiletime, runtime, command, build or profile")
}

// Category says how much a change in a benchmark matters.
type Category string

const (
	Primary   Category = "primary"
	Secondary Category = "secondary"
)

// ParseCategory parses a category; the empty string means primary.
func ParseCategory(s string) (Category, error) {
	switch c := Category(strings.ToLower(s)); c {
	case "":
		return Primary, nil
	case Primary, Secondary:
		return c, nil
	}
	return "", invalid("category", s, "use primary or secondary")
}

// TestCase is a benchmark with its parameters. It has one time series per metric.
// Profile, scenario and backend are empty for runtime benchmarks without them.
type TestCase struct {
	Benchmark string `json:"benchmark"`
	Profile   string `json:"profile,omitempty"`
	Scenario  string `json:"scenario,omitempty"`
	Backend   string `json:"backend,omitempty"`
	Target    Target `json:"target"`
}

// NewTestCase returns the test case after checking each of its parts. Profile,
// scenario and backend may be empty.
func NewTestCase(tc TestCase) (TestCase, error) {
	if err := CheckParameter("benchmark", tc.Benchmark); err != nil {
		return TestCase{}, err
	}
	for kind, value := range map[string]string{"profile": tc.Profile, "scenario": tc.Scenario, "backend": tc.Backend} {
		if value == "" {
			continue
		}
		if err := CheckParameter(kind, value); err != nil {
			return TestCase{}, err
		}
	}
	if _, err := ParseTarget(string(tc.Target)); err != nil {
		return TestCase{}, err
	}
	return tc, nil
}

// String names the test case for people, for example
// "gin build full gc x86_64-unknown-linux-gnu".
func (tc TestCase) String() string {
	parts := []string{tc.Benchmark}
	for _, p := range []string{tc.Profile, tc.Scenario, tc.Backend, string(tc.Target)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, " ")
}

// CompareTestCases orders test cases by benchmark, profile, scenario, backend,
// target. Scenarios are in the order of [CompareScenarios].
func CompareTestCases(a, b TestCase) int {
	if c := cmp.Compare(a.Benchmark, b.Benchmark); c != 0 {
		return c // most comparisons end here
	}
	if c := cmp.Compare(a.Profile, b.Profile); c != 0 {
		return c
	}
	if a.Scenario != b.Scenario {
		return CompareScenarios(a.Scenario, b.Scenario)
	}
	return cmp.Or(cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Target, b.Target))
}

// CompareScenarios orders scenarios for display: full, incr-full, incr-unchanged,
// incr-patched (println first, other patches by name), then unknown ones by name.
func CompareScenarios(a, b string) int {
	rank := func(s string) (int, string) {
		name, patch, _ := strings.Cut(s, ":")
		patch = strings.TrimSpace(patch)
		at := slices.Index([]string{"", "full", "incr-full", "incr-unchanged", "incr-patched"}, name)
		switch {
		case at < 0:
			return 6, s
		case patch == "println":
			return at, ""
		}
		return at, patch
	}
	ra, pa := rank(a)
	rb, pb := rank(b)
	return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(pa, pb), cmp.Compare(a, b))
}

// Metric names a measured quantity, for example "wall-time" or "max-rss".
type Metric string

// Metrics of every measured command, then those that need hardware counters
// (instructions and below). Times are in seconds, sizes in bytes; the rest are counts.
// Runtime benchmarks add the units of their own output, such as "ns/op"; see [LineMetric]
// for outputs of several lines.
const (
	WallTime            Metric = "wall-time"
	CPUTime             Metric = "cpu-time"
	UserTime            Metric = "user-time"
	SystemTime          Metric = "system-time"
	MaxRSS              Metric = "max-rss"
	MinorFaults         Metric = "minor-faults"
	MajorFaults         Metric = "major-faults"
	VoluntarySwitches   Metric = "voluntary-switches"
	InvoluntarySwitches Metric = "involuntary-switches"
	Instructions        Metric = "instructions:u"
	Cycles              Metric = "cycles:u"
	BranchMisses        Metric = "branch-misses"
	CacheMisses         Metric = "cache-misses"
)

// SizePrefix begins the names of metrics that are sizes of files written by the
// measured command, such as "size:binary". Sizes are exact: any change counts.
const SizePrefix = "size:"

// Direction is the direction in which a metric improves.
type Direction string

const (
	LowerIsBetter  Direction = "lower"
	HigherIsBetter Direction = "higher"
)

// Exact reports whether repeated measurements of the metric give the same value, so
// that one is enough.
func (m Metric) Exact() bool {
	_, unit := m.Split()
	return strings.HasPrefix(string(unit), SizePrefix)
}

// Direction returns the metric's direction: higher is better for throughput ("MB/s",
// "…/s"), lower for everything else.
func (m Metric) Direction() Direction {
	if strings.HasSuffix(string(m), "/s") {
		return HigherIsBetter
	}
	return LowerIsBetter
}

// explaining lists the metrics that explain a change in another one.
var explaining = []Metric{
	UserTime, SystemTime, MinorFaults, MajorFaults, VoluntarySwitches, InvoluntarySwitches, Cycles, BranchMisses, CacheMisses,
}

// ExplainingMetrics lists the metrics that only explain changes in others.
func ExplainingMetrics() []Metric { return slices.Clone(explaining) }

// Explains reports whether a metric only explains changes in others. Such metrics are
// compared on request.
func (m Metric) Explains() bool { return slices.Contains(explaining, m) }
