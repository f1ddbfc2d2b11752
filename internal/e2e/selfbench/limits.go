package main

import (
	"fmt"
	"slices"
)

// limit bounds the median of a figure over the repetitions.
type limit struct {
	part      string // the part that measures it
	benchmark string
	unit      string
	most      float64 // maximum, in the unit
	// times raises the maximum to a multiple of the same unit's median of another benchmark, as measured in the same run;
	// 0 leaves it as it is.
	times float64
	of    string
	// each bounds every repetition instead of the median.
	each bool
}

// Factors of a bare workflow's times, for machines on which that alone is slow. On the days whose figures docs/benchmarks.md
// records, commands took 2.1 to 2.6 times as long as a bare workflow from the start of the workflow (p99), and 3.0 to
// 4.4 times as long from the client's call (p50).
const (
	timesBareStart = 3
	timesBareCall  = 6
)

// limits returns the limits of docs/benchmarks.md. A start is the start of the command,
// which is later than the start of the activity.
func limits() []limit {
	var all []limit
	for _, of := range kinds() {
		all = append(all,
			limit{part: partStack, benchmark: dispatchName(of, fromJob, toCommand), unit: unitP99, most: 0.100, times: timesBareStart, of: bareName(fromWorkflow, toCode)},
			limit{part: partStack, benchmark: dispatchName(of, fromPost, toCommand), unit: unitP50, most: 0.200, times: timesBareCall, of: bareName(fromCall, toCode)})
	}
	for _, collectors := range collectorCounts() {
		// At least half the rate of the engine.
		all = append(all, limit{part: partRate, benchmark: rateName(sideNow, collectors), unit: unitSlower, most: 2})
	}
	// At least 0.7 of the rate of the same commands without edges.
	all = append(all,
		limit{part: partGraphs, benchmark: graphRateName(ofGraph, checkNodes), unit: unitOfFlat, most: 1 / 0.7},
		limit{part: partGraphs, benchmark: graphHistoryName(checkNodes), unit: unitEvents, most: 10_000},
		limit{part: partGraphs, benchmark: retriggerName(checkPortion), unit: unitSeconds, most: 2})
	all = append(all,
		limit{part: partWrapper, benchmark: wrapperName(shortProgram), unit: unitAdded, most: 0.005},
		limit{part: partWrapper, benchmark: wrapperName(loopProgram), unit: unitPercent, most: 0.5},
		limit{part: partWrapper, benchmark: wrapperCPUName(loopProgram), unit: unitPercent, most: 0.5})
	for _, program := range []string{loopProgram, forksProgram} {
		all = append(all,
			limit{part: partIsolation, benchmark: isolationName(program), unit: unitBeyond, most: 0.5},
			limit{part: partIsolation, benchmark: isolationName(program), unit: unitSpread, most: 0.15})
	}
	all = append(all,
		limit{part: partProfile, benchmark: profileCostName, unit: unitCPU, most: 0.005},
		limit{part: partProfile, benchmark: profileCostName, unit: unitGrowth, most: 20e6},
		limit{part: partProfile, benchmark: profileName(loopProgram), unit: unitHigh, most: 0.5})
	for _, slots := range slotCounts() {
		all = append(all, limit{part: partMakespan, benchmark: makespanName(slots), unit: unitShare, most: 1})
	}
	all = append(all, limit{part: partMakespan, benchmark: gapName(), unit: unitP99, most: 1})
	all = append(all,
		limit{part: partQueues, benchmark: twoOfEachName(), unit: unitP99, most: 1},
		limit{part: partQueues, benchmark: overtakenName(muchWaiting), unit: unitP99Jobs, most: 1},
		limit{part: partQueues, benchmark: overtakenName(muchWaiting), unit: unitMostJobs, most: 2},
		limit{part: partQueues, benchmark: acceptName(muchWaiting), unit: unitSeconds, most: 10},
		limit{part: partQueues, benchmark: waitingGapName(muchWaiting), unit: unitOfFew, most: 1.5},
		limit{part: partQueues, benchmark: waitingGapName(mostWaiting), unit: unitOfFew, most: 1.5})
	for _, by := range []string{byCommand, byService} {
		all = append(all,
			limit{part: partAccuracy, benchmark: accuracyName(by, tagSame), unit: unitWrong, most: 0, each: true},
			limit{part: partAccuracy, benchmark: accuracyName(by, tagSlow), unit: unitWrong, most: 0, each: true},
			// The median of three is 1 if two of them are.
			limit{part: partAccuracy, benchmark: accuracyName(by, tagSlow), unit: unitUndecidedVerdicts, most: 0},
			limit{part: partAccuracy, benchmark: accuracyName(by, tagSlow), unit: unitOff, most: 5})
	}
	for _, of := range []string{ofRequest, ofQueue} {
		all = append(all, limit{part: partPages, benchmark: pagesName(of), unit: unitP99, most: 0.100})
	}
	for _, state := range statesOfRequest {
		all = append(all, limit{part: partPages, benchmark: shownName(state.name), unit: unitMost, most: 2})
	}
	// One a second at most, and one more at an end of the time.
	all = append(all,
		limit{part: partPages, benchmark: followersName(), unit: unitLooks, most: 1 + 1/watched.Seconds()},
		limit{part: partPages, benchmark: followersName(), unit: unitOfOne, most: 1.15})
	for _, of := range pagesOfResults {
		for i, most := range []float64{0.100, 0.250, 0.500} {
			name := resultsName(of, statesOfResults[i])
			all = append(all, limit{part: partResults, benchmark: name, unit: unitP99, most: most}, limit{part: partResults, benchmark: name, unit: unitFailed, most: 0, each: true})
		}
		all = append(all, limit{part: partResults, benchmark: answerName(of), unit: unitLargest, most: 300e3})
	}
	all = append(all,
		limit{part: partResults, benchmark: resultsMemoryName(), unit: unitPeak, most: 150e6},
		limit{part: partResults, benchmark: paintName(fromNavigation), unit: unitP50, most: 0.300})
	for _, process := range []string{"api", "orchestrator", "collector", "temporal", "up"} {
		all = append(all, limit{part: partQueues, benchmark: growthName(process, mostWaiting), unit: unitGrowth, most: 100e6})
	}
	for _, process := range []string{"api", "orchestrator", "collector"} {
		for _, state := range []string{"fresh", "used"} {
			all = append(all, limit{part: partStack, benchmark: idleName(process, state), unit: unitRSS, most: 80e6})
		}
	}
	return all
}

// finding is a limit with the measured figure.
type finding struct {
	limit
	found    int     // number of repetitions
	measured float64 // their median, or the largest
	bare     float64 // median of the benchmark that the limit is relative to
}

// bound returns the maximum that the figure may have.
func (f finding) bound() float64 { return max(f.most, f.times*f.bare) }

func (f finding) kept() bool { return f.found > 0 && f.measured <= f.bound() }

func (f finding) String() string {
	if f.found == 0 {
		return fmt.Sprintf("FAIL  %s was not measured (limit %.6g %s)", f.benchmark, f.most, f.unit)
	}
	word, statistic := "ok  ", "median"
	if !f.kept() {
		word = "FAIL"
	}
	if f.each {
		statistic = "maximum"
	}
	text := fmt.Sprintf("%s  %s: %s of %d is %.6g %s, the limit is %.6g", word, f.benchmark, statistic, f.found, f.measured, f.unit, f.bound())
	if f.times > 0 {
		text += fmt.Sprintf(" (the larger of %.6g and %.6g times the %.6g of %s)", f.most, f.times, f.bare, f.of)
	}
	return text
}

// judge compares the figures of all repetitions with the limits.
func judge(limits []limit, figures []figure) []finding {
	findings := make([]finding, 0, len(limits))
	for _, l := range limits {
		found := valuesOf(figures, l.benchmark, l.unit)
		f := finding{limit: l, found: len(found), measured: median(found)}
		if l.each && len(found) > 0 {
			f.measured = slices.Max(found)
		}
		if l.times > 0 {
			f.bare = median(valuesOf(figures, l.of, l.unit))
		}
		findings = append(findings, f)
	}
	return findings
}

// valuesOf returns the values of a benchmark in a unit, one per repetition.
func valuesOf(figures []figure, benchmark, unit string) (found []float64) {
	for _, f := range figures {
		if f.name != benchmark {
			continue
		}
		for _, v := range f.values {
			if v.Unit == unit {
				found = append(found, v.Value)
			}
		}
	}
	return found
}

// quietEnough is the number of cores that the rest of the machine may use before a check
// reports that the machine was not idle.
const quietEnough = 0.1

// disturbance returns the median of the cores used by the rest of the machine while the
// stack was idle.
func disturbance(figures []figure) float64 {
	var used []float64
	for _, state := range []string{"fresh", "used"} {
		used = append(used, valuesOf(figures, idleName(othersProcess, state), unitCPU)...)
	}
	return median(used)
}
