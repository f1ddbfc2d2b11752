package profiler

import (
	"math"
	"slices"
)

// Of returns the part of a summary about the measured commands of an artifact and a test case, without warm-ups. It leaves out
// series without a value of any of them.
func (s *Summary) Of(artifact, testCase string) Summary {
	var out Summary
	wanted := make(map[int]bool)
	for _, c := range s.Commands {
		if c.Artifact == artifact && c.Case == testCase && !c.WarmUp {
			out.Commands = append(out.Commands, c)
			wanted[c.Batch] = true
		}
	}
	for _, one := range s.Series {
		narrowed := SeriesSummary{Series: one.Series, Unit: one.Unit}
		for i, batch := range one.Batches {
			if wanted[batch] {
				narrowed.Batches, narrowed.Mean, narrowed.Max = append(narrowed.Batches, batch), append(narrowed.Mean, one.Mean[i]), append(narrowed.Max, one.Max[i])
			}
		}
		if len(narrowed.Batches) > 0 {
			out.Series = append(out.Series, narrowed)
		}
	}
	return out
}

// SeriesTotal sums up a series over measured commands, each of which counts the same.
type SeriesTotal struct {
	Series
	Unit Unit `json:"unit"`
	// Commands is the number of those with a value.
	Commands int `json:"commands" doc:"Measured commands with a value."`
	// Mean of the means, and the largest maximum.
	Mean float64 `json:"mean" doc:"Mean of the means of the commands."`
	Max  float64 `json:"max" doc:"The largest maximum of a command."`
}

// SumUp sums up each series over all measured commands of several summaries, in the order of their names.
func SumUp(of []Summary) []SeriesTotal {
	bySeries := make(map[Series]*SeriesTotal)
	for _, s := range of {
		for _, one := range s.Series {
			total := bySeries[one.Series]
			if total == nil {
				total = &SeriesTotal{Series: one.Series, Unit: one.Unit, Max: math.Inf(-1)}
				bySeries[one.Series] = total
			}
			for i := range one.Batches {
				total.Commands++
				total.Mean += (one.Mean[i] - total.Mean) / float64(total.Commands)
				total.Max = max(total.Max, one.Max[i])
			}
		}
	}
	out := make([]SeriesTotal, 0, len(bySeries))
	for _, total := range bySeries {
		if total.Commands > 0 {
			out = append(out, *total)
		}
	}
	slices.SortFunc(out, func(a, b SeriesTotal) int { return a.compare(b.Series) })
	return out
}
