package main

import "fmt"

// limit bounds the median of a figure over the repetitions.
type limit struct {
	part      string // the part that measures it
	benchmark string
	unit      string
	most      float64 // maximum, in the unit
}

// limits returns the limits of docs/benchmarks.md. A start is the start of the command,
// which is later than the start of the activity.
func limits() []limit {
	var all []limit
	for _, of := range kinds() {
		all = append(all,
			limit{partStack, dispatchName(of, fromJob, toCommand), unitP99, 0.100},
			limit{partStack, dispatchName(of, fromPost, toCommand), unitP50, 0.200})
	}
	all = append(all,
		limit{partWrapper, wrapperName(shortProgram), unitAdded, 0.005},
		limit{partWrapper, wrapperName(loopProgram), unitPercent, 0.5},
		limit{partWrapper, wrapperCPUName(loopProgram), unitPercent, 0.5})
	for _, slots := range slotCounts() {
		all = append(all, limit{partMakespan, makespanName(slots), unitShare, 1})
	}
	all = append(all, limit{partMakespan, gapName(), unitP99, 1})
	all = append(all,
		limit{partQueues, twoOfEachName(), unitP99, 1},
		limit{partQueues, overtakenName(muchWaiting), unitMostJobs, 1},
		limit{partQueues, acceptName(muchWaiting), unitSeconds, 10},
		limit{partQueues, waitingGapName(muchWaiting), unitOfFew, 1.5},
		limit{partQueues, waitingGapName(mostWaiting), unitOfFew, 1.5})
	for _, by := range []string{byCommand, byService} {
		all = append(all,
			limit{partAccuracy, accuracyName(by, tagSame), unitWrong, 0},
			limit{partAccuracy, accuracyName(by, tagSlow), unitWrong, 0},
			limit{partAccuracy, accuracyName(by, tagSlow), unitOff, 5})
	}
	for _, process := range []string{"api", "orchestrator", "collector", "temporal", "up"} {
		all = append(all, limit{partQueues, growthName(process, mostWaiting), unitGrowth, 100e6})
	}
	for _, process := range []string{"api", "orchestrator", "collector"} {
		for _, state := range []string{"fresh", "used"} {
			all = append(all, limit{partStack, idleName(process, state), unitRSS, 80e6})
		}
	}
	return all
}

// verdict is a limit with the measured median.
type verdict struct {
	limit
	found  int // number of repetitions
	median float64
}

func (v verdict) kept() bool { return v.found > 0 && v.median <= v.most }

func (v verdict) String() string {
	switch {
	case v.found == 0:
		return fmt.Sprintf("FAIL  %s was not measured (limit %.6g %s)", v.benchmark, v.most, v.unit)
	case !v.kept():
		return fmt.Sprintf("FAIL  %s: median of %d is %.6g %s, the limit is %.6g", v.benchmark, v.found, v.median, v.unit, v.most)
	}
	return fmt.Sprintf("ok    %s: median of %d is %.6g %s, the limit is %.6g", v.benchmark, v.found, v.median, v.unit, v.most)
}

// judge compares the figures of all repetitions with the limits.
func judge(limits []limit, figures []figure) []verdict {
	verdicts := make([]verdict, 0, len(limits))
	for _, l := range limits {
		var found []float64
		for _, f := range figures {
			for _, v := range f.values {
				if f.name == l.benchmark && v.Unit == l.unit {
					found = append(found, v.Value)
				}
			}
		}
		verdicts = append(verdicts, verdict{l, len(found), median(found)})
	}
	return verdicts
}

// quietEnough is the number of cores that the rest of the machine may use before a check
// reports that the machine was not idle.
const quietEnough = 0.1

// disturbance returns the median of the cores used by the rest of the machine while the
// stack was idle.
func disturbance(figures []figure) float64 {
	var used []float64
	for _, f := range figures {
		for _, v := range f.values {
			if v.Unit == unitCPU && (f.name == idleName(othersProcess, "fresh") || f.name == idleName(othersProcess, "used")) {
				used = append(used, v.Value)
			}
		}
	}
	return median(used)
}
