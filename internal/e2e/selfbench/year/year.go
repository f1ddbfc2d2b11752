// Package year makes the record of a large project: a year of merged commits with the
// history of thousands of series, in the order in which a service writes it. Pages are
// measured on it.
//
// It must not know what is measured.
package year

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/store"
)

// Project is the name of the project.
const Project = "year"

// generator is the version of what this package writes: raise it with every change of it.
const generator = 4

// Size says how much a year holds.
type Size struct {
	// Artifacts are the merged commits.
	Artifacts int
	// Benchmarks have [CasesPerBenchmark] test cases each, with [Metrics] series.
	Benchmarks int
	// Values of each series and artifact.
	Values int
	// Rows is the number of the newest artifacts that have the rows of their results, and
	// not only what is packed of them.
	Rows int
}

// Full is the size that docs/benchmarks.md has limits for: 28 million points of 5,600
// series, of five values each.
func Full() Size { return Size{Artifacts: 5000, Benchmarks: 140, Values: 5, Rows: 256} }

// What test cases and series there are of a benchmark.
const (
	CasesPerBenchmark = 5
	Metrics           = 8
)

func (s Size) cases() int { return s.Benchmarks * CasesPerBenchmark }

// Points counts the points of all histories if nothing fails.
func (s Size) Points() int { return s.Artifacts * s.cases() * Metrics }

// Check refuses a size of which nothing can be made.
func (s Size) Check() error {
	if s.Artifacts < 1 || s.Benchmarks < 1 || s.Values < 1 || s.Values > bench.MaxIterations || s.Rows < 0 || s.Rows > s.Artifacts {
		return fmt.Errorf("a year of %d artifacts, %d benchmarks and %d values, with the rows of %d artifacts: at least one of each, and the rows of none to all", s.Artifacts, s.Benchmarks, s.Values, s.Rows)
	}
	return nil
}

// key identifies what is generated for a schema.
func (s Size) key(schema string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d %d %d %+v", generator, schema, packed.Version, packed.StripVersion, packed.MaxPoints, s))
	return hex.EncodeToString(sum[:8])
}

// Upper bounds in bytes of what the tables hold of a point, of a value in rows and of a
// test case of an artifact besides, with indexes and the free space that updates leave. A
// full year takes 4.9 GB in the end.
const (
	bytesPerPoint    = 130
	bytesPerRowValue = 190
	bytesPerRowCase  = 4_500
	bytesPerArtifact = 40_000
	bytesAtLeast     = 1 << 30 // log and catalogue
)

// Bytes estimates the disk space that the year takes while it is made.
func (s Size) Bytes() int64 {
	return bytesAtLeast + int64(s.Points())*(bytesPerPoint+8*int64(s.Values)) +
		int64(s.Rows)*int64(s.cases())*(bytesPerRowCase+Metrics*int64(s.Values)*bytesPerRowValue) + int64(s.Artifacts)*bytesPerArtifact
}

const target bench.Target = "x86_64-unknown-linux-gnu"

// variants are the parameters of the test cases of each benchmark.
var variants = [CasesPerBenchmark]bench.TestCase{
	{Profile: "check", Scenario: "full"},
	{Profile: "debug", Scenario: "full"},
	{Profile: "debug", Scenario: "incr-unchanged"},
	{Profile: "opt", Scenario: "full"},
	{Profile: "opt", Scenario: "incr-full"},
}

// metrics of each test case: the typical value of a second's work, and the
// relative deviation of one value.
var metrics = [Metrics]struct {
	bench.Metric
	typical, noise float64
}{
	{bench.WallTime, 1, 0.01},
	{bench.CPUTime, 0.95, 0.008},
	{bench.MaxRSS, 2e8, 0.003},
	{bench.Instructions, 3e9, 0.0008},
	{bench.SizePrefix + "binary", 5e6, 0},
	{bench.Cycles, 4e9, 0.01},
	{bench.CacheMisses, 1e6, 0.05},
	{bench.BranchMisses, 2e6, 0.03},
}

const (
	// casesPerJob is the number of test cases of a job.
	casesPerJob = 100
	// One of againEvery artifacts has a job that is measured again, when againAfter others
	// have been measured.
	againEvery, againAfter = 40, 24
	// Shares of test cases of an artifact that fail, and that have a disturbed iteration.
	failing, disturbing = 0.0002, 0.01
	// Parts of the year after which the machine was replaced, and its kernel.
	replaced, upgraded = 0.3, 0.6
	// suites is the number of versions of the suite.
	suites = 6
	// releaseEvery is the number of commits from one release to the next.
	releaseEvery = 200
	// young is the share of test cases that were added during the year.
	young = 0.05
)

// Year is the history of a project. It is the same for the same size.
type Year struct {
	Size
	until time.Time
	tests []testCase
	tags  []string
}

type testCase struct {
	bench.TestCase
	begins int // number of the first artifact that has it
	series [Metrics]series
}

// series holds the true level of a series, of which values are measurements.
type series struct {
	level, noise float64
	changes      []change
}

// change multiplies the level of a series from an artifact on.
type change struct {
	at     int
	factor float64
}

// mostChanges bounds the changes of a series.
const mostChanges = 3

// New returns a year that ends at a time.
func New(size Size, until time.Time) *Year {
	y := &Year{Size: size, until: until}
	random := rand.New(rand.NewPCG(14, generator)) //nolint:gosec // not for secrets
	for n := range size.cases() {
		c := testCase{TestCase: variants[n%CasesPerBenchmark]}
		c.Benchmark, c.Backend, c.Target = Benchmark(n/CasesPerBenchmark), "llvm", target
		if random.Float64() < young {
			c.begins = random.IntN(size.Artifacts)
		}
		work := math.Exp(random.Float64()*math.Log(400)) / 20 // 0.05 to 20 s
		for m, metric := range metrics {
			s := series{level: metric.typical * work, noise: metric.noise * (0.5 + random.Float64())}
			for range random.IntN(mostChanges + 1) {
				s.changes = append(s.changes, change{random.IntN(size.Artifacts), math.Exp(0.03 * random.NormFloat64())})
			}
			if metric.Exact() {
				s.level = math.Round(s.level)
			}
			c.series[m] = s
		}
		y.tests = append(y.tests, c)
	}
	for n := range size.Artifacts {
		sum := sha256.Sum256(fmt.Appendf(nil, "commit %d of a year", n))
		y.tags = append(y.tags, hex.EncodeToString(sum[:20]))
	}
	return y
}

// Benchmark returns the name of a benchmark, from 0.
func Benchmark(n int) string { return fmt.Sprintf("crate-%03d", n) }

// Metric returns the name of a metric, from 0.
func Metric(n int) bench.Metric { return metrics[n].Metric }

// Tags lists the artifacts, the oldest first.
func (y *Year) Tags() []string { return y.tags }

func (s series) at(artifact int) float64 {
	level := s.level
	for _, c := range s.changes {
		if c.at <= artifact {
			level *= c.factor
		}
	}
	return level
}

// changed returns the relative change that an artifact made; 0: none.
func (s series) changed(artifact int) float64 {
	if artifact == 0 {
		return 0
	}
	return s.at(artifact)/s.at(artifact-1) - 1
}

// date returns the date of an artifact's commit.
func (y *Year) date(artifact int) time.Time {
	step := 365 * 24 * time.Hour / time.Duration(y.Artifacts)
	return y.until.Add(-step * time.Duration(y.Artifacts-1-artifact))
}

// jobs is the number of jobs of an artifact, without those that measure again.
func (s Size) jobs() int { return (s.cases() + casesPerJob - 1) / casesPerJob }

// casesOf returns the range of test cases of a job.
func (s Size) casesOf(job int) (from, to int) {
	return job * casesPerJob, min(s.cases(), (job+1)*casesPerJob)
}

// again returns the job of an artifact that is measured again; measured is false for most.
func (s Size) again(artifact int) (job int, measured bool) {
	return artifact / againEvery % s.jobs(), artifact%againEvery == againEvery/2
}

// surrounding returns the surroundings in which an artifact was measured.
func (y *Year) surrounding(artifact int) bench.Surrounding {
	hardware := "5d1c0e9a7b34"
	if float64(artifact) >= replaced*float64(y.Artifacts) {
		hardware = "c2f8e06b91d5"
	}
	return bench.Surrounding{SizeClass: 1, HardwareID: hardware}
}

// kernel returns the machine's kernel; a new one begins a segment.
func (y *Year) kernel(artifact int) string {
	if float64(artifact) >= upgraded*float64(y.Artifacts) {
		return "6.12.57"
	}
	return "6.12.9"
}

// suite is the content hash of the suite.
func (y *Year) suite(artifact int) string { return suiteHash(artifact * suites / y.Artifacts) }

func suiteHash(version int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "suite %d of a year", version))
	return hex.EncodeToString(sum[:])
}

func (y *Year) jobKey(artifact, job, generation int) bench.JobKey {
	sum := sha256.Sum256(fmt.Appendf(nil, "job %d %d %d of a year", artifact, job, generation))
	return bench.JobKey(strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])))
}

func (y *Year) run(artifact, job, generation int) bench.RunID {
	return bench.NewRunID(y.jobKey(artifact, job, generation), "year", "", 1)
}

// outcome of a test case of an artifact.
type outcome struct {
	// there is set once the suite has it.
	there, failed, disturbed bool
	// values are by metric, as many as each series has; nil: it failed, or was not there yet.
	values []float64
}

// of returns the values of a metric.
func (o outcome) of(metric int) []float64 {
	n := len(o.values) / Metrics
	return o.values[metric*n : (metric+1)*n : (metric+1)*n]
}

// fates draws what happens to each test case of an artifact, without its values.
func (y *Year) fates(artifact, generation int) []outcome {
	random := rand.New(rand.NewPCG(uint64(artifact), 2*uint64(generation))) //nolint:gosec // not for secrets
	fates := make([]outcome, len(y.tests))
	for n, c := range y.tests {
		chance := random.Float64()
		fates[n].there = c.begins <= artifact
		fates[n].failed = fates[n].there && chance < failing
		fates[n].disturbed = chance > 1-disturbing
	}
	return fates
}

// measure returns the outcomes of an artifact by test case. A later generation has other
// values.
func (y *Year) measure(artifact, generation int) []outcome {
	random := rand.New(rand.NewPCG(uint64(artifact), 2*uint64(generation)+1)) //nolint:gosec // not for secrets
	outcomes := y.fates(artifact, generation)
	values := make([]float64, 0, len(y.tests)*Metrics*y.Values)
	for n := range outcomes {
		o := &outcomes[n]
		if !o.there || o.failed {
			continue
		}
		from, session := len(values), random.NormFloat64()
		for m, s := range y.tests[n].series {
			level := s.at(artifact)
			if metrics[m].Exact() {
				level = math.Round(level)
			}
			for range y.Values {
				values = append(values, level*(1+s.noise*(0.7*session+random.NormFloat64())))
			}
		}
		o.values = values[from:len(values):len(values)]
	}
	return outcomes
}

// fails reports whether a test case of a job fails.
func (y *Year) fails(artifact, job, generation int) bool {
	first, last := y.casesOf(job)
	return slices.ContainsFunc(y.fates(artifact, generation)[first:last], func(o outcome) bool { return o.failed })
}

// latest returns the outcomes of an artifact after all that was measured of it.
func (y *Year) latest(artifact int, againDone bool) []outcome {
	outcomes := y.measure(artifact, 0)
	job, measured := y.again(artifact)
	if !measured || !againDone {
		return outcomes
	}
	second := y.measure(artifact, 1)
	for from, to := y.casesOf(job); from < to; from++ {
		if second[from].values != nil { // a failure leaves the former result
			outcomes[from] = second[from]
		}
	}
	return outcomes
}

// iterations number the values of a series.
func (s Size) iterations() []int {
	out := make([]int, s.Values)
	for i := range out {
		out[i] = i + 1
	}
	return out
}

// disturbedBy is the cause of disturbances, as reported: "cause: size".
const disturbedCause, disturbedText = "load", "load: 1.3"

// disturbedIteration is the number of the disturbed one of a test case.
const disturbedIteration = 1

// sheets packs the outcomes of an artifact as its rows would be.
func (y *Year) sheets(artifact int, segment bench.Segment, outcomes []outcome) store.ArtifactSheets {
	out := store.ArtifactSheets{Tag: y.tags[artifact]}
	iterations, quiet, disturbed := y.iterations(), make([]bool, y.Values), make([]bool, y.Values)
	disturbed[disturbedIteration-1] = true
	for m := range metrics {
		sheet := packed.Sheet{}
		for n, o := range outcomes {
			if o.values == nil {
				continue
			}
			s := packed.Series{
				ID: seriesID(n, m), Origin: packed.Origin{Kind: bench.KindCompileTime, Segment: segment, Suite: y.suite(artifact)},
				Values: o.of(m), Iterations: iterations, Disturbed: quiet,
			}
			if o.disturbed {
				s.Origin.DisturbedBy, s.Disturbed = disturbedCause, disturbed
			}
			sheet = append(sheet, s)
		}
		if len(sheet) > 0 {
			out.Sheets = append(out.Sheets, store.SurroundedSheet{Metric: metrics[m].Metric, Surrounding: y.surrounding(artifact), Sheet: sheet})
		}
	}
	return out
}

// IDs of rows. Those of jobs, results and collections follow from the order of writing.
func artifactID(artifact int) int64       { return int64(artifact) + 1 }
func caseID(testCase int) int64           { return int64(testCase) + 1 }
func seriesID(testCase, metric int) int64 { return int64(testCase*Metrics+metric) + 1 }
