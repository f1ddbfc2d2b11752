package verdict

import "github.com/benchloom/benchloom/internal/bench"

// Delta returns the least relevant relative change of a metric unless configured otherwise: 0.2 % for instructions, 1 % for
// wall and CPU time, memory and what benchmarks print, and 0 for exact metrics.
//
// At a coefficient of variation of 1 %, 46 pairs give an interval of about ±0.6 %: with less than 1 % no time would ever be
// without difference.
func Delta(metric string, exact bool) float64 {
	switch {
	case exact || bench.Metric(metric).Exact():
		return 0
	case bench.Metric(metric) == bench.Instructions:
		return 0.002
	default:
		return 0.01
	}
}

// Deciding reports whether a metric gets verdicts: instructions, wall and CPU time, memory, sizes and what benchmarks
// print. The others explain a change; they are shown and never counted.
func Deciding(metric string) bool { return !bench.Metric(metric).Explains() }
