package bench

import (
	"cmp"
	"slices"
	"time"
)

const (
	// CanaryPairs is the number of pairs of a canary: the fewest that can tell a difference
	// in a small family.
	CanaryPairs = 14
	// CanaryTime bounds the machine time of a canary's iterations, by the known durations
	// of its test cases.
	CanaryTime = 2 * time.Minute
	// CanarySubmitter is the submitter of canaries.
	CanarySubmitter = "canary"
	// canaryTestCases is the number of test cases that a canary measures at most.
	canaryTestCases = 3
)

// CanaryOutcome is the outcome of a canary; empty: it has not ended.
type CanaryOutcome string

const (
	// CanaryPassed: no difference was found between the artifact and itself.
	CanaryPassed CanaryOutcome = "passed"
	// CanaryChanged: a difference was found, so the collector reports changes where there
	// are none.
	CanaryChanged CanaryOutcome = "changed"
	// CanaryDisturbed: too many iterations were disturbed, see [SessionDisturbed].
	CanaryDisturbed CanaryOutcome = "disturbed"
	// CanaryUnmeasured: nothing was measured, which says nothing about the collector.
	CanaryUnmeasured CanaryOutcome = "unmeasured"
)

// Failed reports whether the collector must not be trusted until a canary passes.
func (o CanaryOutcome) Failed() bool { return o == CanaryChanged || o == CanaryDisturbed }

// Canary is the measurement of an artifact in turns with itself on one collector.
type Canary struct {
	Collector string
	// Request is the request that measures it; empty: it was removed.
	Request RequestID
	Outcome CanaryOutcome
	// Message says in words what was found, or why nothing was.
	Message   string
	CreatedAt time.Time
	EndedAt   *time.Time // nil until it has an outcome
}

// CanaryTag returns the tag for the results of a canary's second side. It names no
// artifact of its own: both sides measure that of the given tag.
func CanaryTag(tag string) string {
	const suffix = "+canary"
	return tag[:min(len(tag), 128-len(suffix))] + suffix
}

// NewCanary returns the request that measures an artifact in turns with itself, on one
// collector and after all other work.
func NewCanary(project, tag string, on Collector, selection Selection, queue string) (Request, error) {
	selection.Iterations, selection.Targets = CanaryPairs, []Target{on.Target}
	return NewMeasurement(project, tag, nil, Scope{
		Selection: selection, Versus: CanaryTag(tag), SizeClass: on.SizeClass,
		Constraints: &Constraints{Machines: []string{on.Name}, Canary: true},
	}, Submission{Submitter: CanarySubmitter, Queue: queue})
}

// IsCanary reports whether the job belongs to a canary.
func (j Job) IsCanary() bool { return j.Constraints != nil && j.Constraints.Canary }

// CanaryCases selects what a canary measures: the test case with the shortest iterations,
// and up to two more benchmarks with the same profile, scenario and backend, as long as
// all pairs stay within [CanaryTime]. The durations are in seconds. ok is false if even
// the shortest does not.
func CanaryCases(seconds map[TestCase]float64) (selection Selection, ok bool) {
	cases := make([]TestCase, 0, len(seconds))
	for tc := range seconds {
		cases = append(cases, tc)
	}
	slices.SortFunc(cases, func(a, b TestCase) int {
		return cmp.Or(cmp.Compare(seconds[a], seconds[b]), cmp.Compare(a.String(), b.String()))
	})
	left := CanaryTime.Seconds()
	for _, tc := range cases {
		first := cases[0]
		alike := tc.Profile == first.Profile && tc.Scenario == first.Scenario && tc.Backend == first.Backend && tc.Target == first.Target
		cost := 2 * CanaryPairs * seconds[tc]
		if !alike || cost > left || len(selection.Benchmarks) == canaryTestCases {
			continue
		}
		left -= cost
		selection.Benchmarks = append(selection.Benchmarks, tc.Benchmark)
	}
	if len(selection.Benchmarks) == 0 {
		return Selection{}, false
	}
	only := func(s string) []string {
		if s == "" {
			return nil
		}
		return []string{s}
	}
	first := cases[0]
	selection.Profiles, selection.Scenarios, selection.Backends = only(first.Profile), only(first.Scenario), only(first.Backend)
	return selection, true
}
