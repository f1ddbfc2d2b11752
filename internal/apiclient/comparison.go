package apiclient

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/report"
)

// Comparison compares two artifacts, with the verdict of every row.
type Comparison struct {
	Project string `json:"project"`
	A       string `json:"a" doc:"Tag of the baseline."`
	B       string `json:"b" doc:"Tag of the judged artifact."`
	// Result holds the rows that were asked for. Their verdicts are those of the whole comparison, whatever was asked for.
	Result  report.Report     `json:"result"`
	Summary report.Summary    `json:"summary"`
	Missing []MissingTestCase `json:"missing,omitempty"`
	// Sides tells how both sides were measured, A first; Differences says in what that differs.
	Sides       []ComparedSide `json:"sides,omitempty" doc:"How both sides were measured, A first."`
	Differences []string       `json:"differences,omitempty" doc:"In what the stored results of both sides differ, apart from their values."`
	Previous    string         `json:"previous,omitempty" doc:"Tag of what A was compared with by its own request."`
	Between     []Commit       `json:"between,omitempty" doc:"Commits of the branch between both, the newest first, at most fifty."`
	MoreBetween bool           `json:"more_between,omitempty" doc:"There are more commits between both."`
	Next        string         `json:"next,omitempty" doc:"Tag of the first release or merged commit that was compared with B by its own request."`
}

// ComparedSide tells how one side of a comparison was measured.
type ComparedSide struct {
	Tag    string         `json:"tag"`
	Commit *Commit        `json:"commit,omitempty" doc:"Absent: none of this name is recorded."`
	Parts  []MeasuredPart `json:"parts" doc:"By place: alone before in turns, the largest first."`
	Runs   []MeasuredIn   `json:"runs,omitempty" doc:"With runs=true."`
}

// MeasuredPart sums up the results of an artifact at one place.
type MeasuredPart struct {
	Target     bench.Target    `json:"target"`
	SizeClass  bench.SizeClass `json:"size_class"`
	Pool       string          `json:"pool"`
	HardwareID string          `json:"hardware_id"`
	CoLocated  bool            `json:"co_located,omitempty" doc:"Measured beside other jobs."`
	Segment    bench.Segment   `json:"segment,omitempty" doc:"Settings of the machine that keep results from being compared."`
	Suite      string          `json:"suite,omitempty" doc:"Content hash of the suite."`
	InTurns    bool            `json:"in_turns,omitempty" doc:"Measured in turns with the other side."`
	Collectors []string        `json:"collectors"`
	TestCases  int             `json:"test_cases"`
	// MinIterations and MaxIterations are the fewest and the most iterations of its test cases.
	MinIterations int       `json:"min_iterations"`
	MaxIterations int       `json:"max_iterations"`
	First         time.Time `json:"first" doc:"When the first value was taken, by the collector's clock."`
	Last          time.Time `json:"last"`
}

// MeasuredIn names the run in which a test case was measured.
type MeasuredIn struct {
	TestCase bench.TestCase `json:"test_case"`
	Run      bench.RunID    `json:"run"`
	InTurns  bool           `json:"in_turns,omitempty"`
}

// MissingTestCase is a test case without a result for one of the two artifacts.
type MissingTestCase struct {
	Tag      string         `json:"tag"`
	TestCase bench.TestCase `json:"test_case"`
	Reason   string         `json:"reason"`
	Failed   bool           `json:"failed,omitempty" doc:"It was measured and failed."`
}

// ComparedValues are the single values behind a row of a comparison.
type ComparedValues struct {
	Project string `json:"project"`
	A       string `json:"a" doc:"Tag of the baseline."`
	B       string `json:"b" doc:"Tag of the judged artifact."`
	Row     string `json:"row" doc:"ID of the row."`
	// Values of both sides, with those measured in turns.
	Values []ComparedValue `json:"values" doc:"In the order in which they were measured."`
	More   bool            `json:"more,omitempty" doc:"There are more values than are listed."`
	Turns  TurnsPreview    `json:"turns" doc:"What measuring both in turns would take."`
	// Profilers lists the suite's profilers for the row's benchmark.
	Profilers []string `json:"profilers" doc:"Profilers that the project's suite has for the benchmark; empty: it does not have the benchmark any more."`
}

// TurnsPreview tells what measuring a test case of two artifacts in turns would take.
type TurnsPreview struct {
	Looks []int `json:"looks" doc:"Pairs of iterations that were measured after each look; one that decides is the last."`
	// AtLeastSeconds and AtMostSeconds are the machine time of the iterations alone.
	AtLeastSeconds float64 `json:"at_least_seconds,omitempty" doc:"Machine time of the iterations of the first look, as long as those so far; absent: that is not known."`
	AtMostSeconds  float64 `json:"at_most_seconds,omitempty" doc:"Machine time of the iterations of all looks."`
}

// ComparedValue is one value of one side, and what is known of its iteration.
type ComparedValue struct {
	Side        string          `json:"side" enum:"a,b"`
	Value       float64         `json:"value" doc:"In the unit of the metric; 0 if it is no finite number."`
	NotFinite   string          `json:"not_finite,omitempty" enum:"NaN,+Inf,-Inf" doc:"What the value is instead of a finite number. Such values decide nothing."`
	Iteration   int             `json:"iteration"`
	CollectedAt time.Time       `json:"collected_at" doc:"Begin of the iteration, by the collector's clock."`
	Run         bench.RunID     `json:"run"`
	Collector   string          `json:"collector"`
	SizeClass   bench.SizeClass `json:"size_class"`
	HardwareID  string          `json:"hardware_id"`
	CoLocated   bool            `json:"co_located,omitempty" doc:"Measured beside other jobs."`
	InTurns     bool            `json:"in_turns,omitempty" doc:"Measured in turns with the other side."`
	Elsewhere   bool            `json:"elsewhere,omitempty" doc:"Measured in another surrounding than the values that are compared, and not compared."`
	Disturbed   string          `json:"disturbed,omitempty" doc:"Why the iteration is disturbed."`
	// Load and Steal are shares of 1 of the time of the job's CPUs; nil where the collector did not record them.
	Load            *float64 `json:"load,omitempty" doc:"Share of the time of the job's CPUs that other processes used."`
	Steal           *float64 `json:"steal,omitempty" doc:"Share of the time of the job's CPUs that the hypervisor gave to others."`
	DurationSeconds float64  `json:"duration_seconds,omitempty" doc:"Length of the iteration."`
}

// ComparedMachine tells what the machine did while the values of a row of a comparison were measured.
type ComparedMachine struct {
	Project string        `json:"project"`
	A       string        `json:"a" doc:"Tag of the baseline."`
	B       string        `json:"b" doc:"Tag of the judged artifact."`
	Row     string        `json:"row" doc:"ID of the row."`
	Sides   []MachineSide `json:"sides" doc:"A and B."`
}

// MachineSide tells what the machine did for one side.
type MachineSide struct {
	Side string `json:"side" enum:"a,b"`
	Tag  string `json:"tag"`
	// Runs measured the values that are compared.
	Runs []MachineRun `json:"runs" doc:"Those that measured the values that are compared, in order."`
	More int          `json:"more,omitempty" doc:"Runs that are left out: those after the first twelve."`
	// Series sums up the measured commands of all these runs.
	Series []profiler.SeriesTotal `json:"series" doc:"Each system series over the measured commands of all listed runs."`
}

// MachineState says how much of a run's measuring was recorded.
type MachineState string

// The states of what was recorded of a run for a row.
const (
	// MachineWhole: each measured command of the row.
	MachineWhole MachineState = "whole"
	// MachinePart: some of them.
	MachinePart MachineState = "part"
	// MachinePending: the run goes on, and sums its measured commands up at its end.
	MachinePending MachineState = "pending"
	// MachineNone: none of them.
	MachineNone MachineState = "none"
)

// MachineRun tells what the machine did during one run.
type MachineRun struct {
	Run       bench.RunID  `json:"run"`
	Collector string       `json:"collector"`
	InTurns   bool         `json:"in_turns,omitempty" doc:"It measured both sides in turns."`
	State     MachineState `json:"state" enum:"whole,part,pending,none"`
	Why       string       `json:"why,omitempty" doc:"Why not everything was recorded, as far as it is known."`
	// Commands are the measured commands of the row, and Series their summaries.
	Commands []profiler.Command       `json:"commands" doc:"Measured commands of the row, without warm-ups."`
	Series   []profiler.SeriesSummary `json:"series" doc:"Mean and maximum of each system series for each of these commands, by its batch index."`
}

// EarlierValues are the values of rows of a comparison on the artifacts before it.
type EarlierValues struct {
	Project string       `json:"project"`
	B       string       `json:"b" doc:"Tag of the judged artifact."`
	Tags    []string     `json:"tags" doc:"The artifacts, the oldest first and B last."`
	Rows    []EarlierRow `json:"rows" doc:"In the order in which they were asked for."`
}

// EarlierRow has the medians of one series.
type EarlierRow struct {
	Row    string     `json:"row" doc:"ID of the row."`
	Values []*float64 `json:"values" doc:"The median on each artifact, in the surrounding where B was measured; null: it has none."`
}
