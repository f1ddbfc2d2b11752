package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// TestCase names a benchmark with its parameters. The package only compares and sorts it.
type TestCase struct {
	Benchmark string `json:"benchmark"`
	Profile   string `json:"profile,omitempty"`
	Scenario  string `json:"scenario,omitempty"`
	Backend   string `json:"backend,omitempty"`
	Target    string `json:"target,omitempty"`
}

// Key identifies a series: one metric of one test case, or of one of several parts that a test case reports.
type Key struct {
	TestCase
	// Line names the part, such as one line of a benchmark's output; empty: the test case as a whole.
	Line   string `json:"line,omitempty"`
	Metric string `json:"metric"`
}

// String writes the key for messages: the metric and the parameters that are not empty.
func (k Key) String() string {
	s := k.Metric + " of " + k.TestCase.String()
	if k.Line != "" {
		s += ", " + k.Line
	}
	return s
}

// Compare orders keys by metric, test case and line.
func (k Key) Compare(other Key) int { return k.compare(&other) }

func (k *Key) compare(other *Key) int {
	if c := strings.Compare(k.Metric, other.Metric); c != 0 {
		return c
	}
	if c := k.TestCase.compare(&other.TestCase); c != 0 {
		return c
	}
	return strings.Compare(k.Line, other.Line)
}

// Compare orders test cases by benchmark, profile, scenario, backend and target.
func (t TestCase) Compare(other TestCase) int { return t.compare(&other) }

// compare ends at the first difference: comparisons are most of the time that sorting takes.
func (t *TestCase) compare(other *TestCase) int {
	if c := strings.Compare(t.Benchmark, other.Benchmark); c != 0 {
		return c
	}
	if c := strings.Compare(t.Profile, other.Profile); c != 0 {
		return c
	}
	if c := strings.Compare(t.Scenario, other.Scenario); c != 0 {
		return c
	}
	if c := strings.Compare(t.Backend, other.Backend); c != 0 {
		return c
	}
	return strings.Compare(t.Target, other.Target)
}

// Name returns the benchmark with its line, for tables. A line that repeats the benchmark's own name, as those of
// sub-benchmarks do, only adds the rest: lexer.Parse and Parse/small give lexer.Parse/small.
func (k Key) Name() string {
	own := k.Benchmark[strings.LastIndexByte(k.Benchmark, '.')+1:]
	rest, repeats := strings.CutPrefix(k.Line, own)
	switch {
	case k.Line == "" || repeats && rest == "":
		return k.Benchmark
	case repeats && rest[0] == '/':
		return k.Benchmark + rest
	}
	return k.Benchmark + " " + k.Line
}

// String writes the parameters that are not empty, separated by slashes.
func (t TestCase) String() string {
	s := t.Benchmark
	for _, part := range []string{t.Profile, t.Scenario, t.Backend, t.Target} {
		if part != "" {
			s += "/" + part
		}
	}
	return s
}

// Better is the direction in which a metric improves.
type Better int

// The ways a metric improves. The zero value suits times, sizes and counts of work.
const (
	LowerIsBetter Better = iota
	HigherIsBetter
)

// String returns the phrase for a table's heading.
func (b Better) String() string {
	if b == HigherIsBetter {
		return "higher is better"
	}
	return "lower is better"
}

// MarshalText writes the direction as its phrase.
func (b Better) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads a direction's phrase.
func (b *Better) UnmarshalText(text []byte) (err error) {
	*b, err = named(text, LowerIsBetter, HigherIsBetter)
	return err
}

// Aggregation reduces the values of a side's collections to the one value that is shown and compared.
type Aggregation int

const (
	// Minimum takes the smallest value, the one least disturbed. It is the default.
	Minimum Aggregation = iota
	// Median takes the middle value, or the mean of the two middle ones.
	Median
	// Mean takes the arithmetic mean.
	Mean
	// Maximum takes the largest value: the one least disturbed of a metric that improves upwards.
	Maximum
)

// String returns the aggregation's name.
func (a Aggregation) String() string {
	switch a {
	case Median:
		return "median"
	case Mean:
		return "mean"
	case Maximum:
		return "maximum"
	default:
		return "minimum"
	}
}

func (a Aggregation) of(ascending []float64) float64 {
	switch a {
	case Median:
		return median(ascending)
	case Mean:
		sum := 0.0
		for _, v := range ascending {
			sum += v / float64(len(ascending))
		}
		return sum
	case Maximum:
		return ascending[len(ascending)-1]
	default:
		return ascending[0]
	}
}

// Category is the weight of a benchmark in a summary: primary benchmarks are summed up separately, all others together.
type Category string

// The categories of benchmarks.
const (
	Primary   Category = "primary"
	Secondary Category = "secondary"
	Stable    Category = "stable"
)

// Series holds both sides of one series in a comparison. A is the baseline; B is compared with it.
type Series struct {
	Key
	// Unit is the unit of the values, spelled as in golang.org/x/perf/benchunit ("sec", "ns", "B").
	// It must be the same for all series of a metric, as must Better, Exact, Precise and Aggregation.
	Unit string
	// Better says which way the metric improves.
	Better Better
	// Exact is set for a metric that has no noise, such as a file's size: any change counts, one value is enough.
	Exact bool
	// Precise is set for the low-noise metric that verdicts rely on (instructions). It raises the magnitude of a change in
	// percent and the bar for deserving attention.
	Precise bool
	// Aggregation gives the value of each side.
	Aggregation Aggregation
	// Category is the benchmark's category.
	Category Category
	// A and B are the values of the collections, in any order. An empty side is one that was not measured.
	A, B []float64
	// History holds the series' aggregated values before A, newest first; see [HistoryThreshold].
	History []float64
	// Threshold is the least relative change that counts for this series if history provides none; 0 means that of the
	// options. Raise it for a metric that is known to drift, as times do on a shared machine.
	Threshold float64
	// InTurns is set if the sides were measured in turns with each other, so that there is no variance of sessions.
	InTurns bool
	// EnvironmentsDiffer is set when the sides were not measured under the same conditions. It only warns.
	EnvironmentsDiffer bool
}

// Options holds the constants of a comparison. Start from [DefaultOptions].
type Options struct {
	// Alpha is the level of the tests and of the correction for many tests, between 0 and 1.
	Alpha float64
	// Threshold is the relative change below which nothing is significant if history provides no better one.
	Threshold float64
	// SessionVariance is the variance between sessions (another moment, another placement in memory), which values within
	// one session cannot show, in units of the variance within a session. 0 assumes none, as when A and B were measured
	// in turns.
	SessionVariance float64
}

// DefaultOptions returns the options for which the package's error rates are simulated: alpha 0.05, threshold 0.2 %, session
// variance 0.75 (each session off by 0.6 standard deviations).
func DefaultOptions() Options {
	return Options{Alpha: 0.05, Threshold: DefaultThreshold, SessionVariance: 0.75}
}

func (o Options) validate() error {
	switch {
	case !(o.Alpha > 0 && o.Alpha < 1):
		return fmt.Errorf("alpha %v is not between 0 and 1", o.Alpha)
	case !(o.Threshold >= 0) || math.IsInf(o.Threshold, 0):
		return fmt.Errorf("threshold %v is not a relative change of 0 or more", o.Threshold)
	case !(o.SessionVariance >= 0) || math.IsInf(o.SessionVariance, 0):
		return fmt.Errorf("session variance %v is not a number of 0 or more", o.SessionVariance)
	}
	return nil
}

// ErrInconsistent reports series that contradict each other.
var ErrInconsistent = errors.New("inconsistent series")

// validateSeries refuses duplicate series and metrics whose series differ in meaning.
func validateSeries(series []*Series) error {
	seen := repeats(series)
	type meaning struct {
		unit           string
		better         Better
		exact, precise bool
		aggregation    Aggregation
	}
	metrics := map[string]meaning{}
	for i, s := range series {
		if seen(i) {
			return fmt.Errorf("%w: %s is given twice", ErrInconsistent, s.Key)
		}
		if !(s.Threshold >= 0) || math.IsInf(s.Threshold, 0) {
			return fmt.Errorf("%w: %s has the threshold %v, which is not a relative change of 0 or more",
				ErrInconsistent, s.Key, s.Threshold)
		}
		m := meaning{s.Unit, s.Better, s.Exact, s.Precise, s.Aggregation}
		first, known := metrics[s.Metric]
		if known && first != m {
			return fmt.Errorf("%w: metric %s has not the same unit, direction and aggregation in all series, see %s",
				ErrInconsistent, s.Metric, s.TestCase)
		}
		if !known {
			metrics[s.Metric] = m
		}
	}
	return nil
}

// repeats returns a function that reports whether a series has the key of an earlier one. It must be called for each in turn.
func repeats(series []*Series) func(i int) bool {
	if slices.IsSortedFunc(series, func(x, y *Series) int { return x.Key.compare(&y.Key) }) {
		return func(i int) bool { return i > 0 && series[i].Key == series[i-1].Key }
	}
	seen := make(map[Key]bool, len(series))
	return func(i int) bool {
		before := seen[series[i].Key]
		seen[series[i].Key] = true
		return before
	}
}
