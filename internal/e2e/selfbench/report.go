package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"golang.org/x/perf/benchfmt"
)

// figure is one line of the output: the result of one repetition.
type figure struct {
	name   string
	iters  int
	values []benchfmt.Value
}

// report writes figures as they arrive, and keeps them.
type report struct {
	out     *benchfmt.Writer
	config  []benchfmt.Config
	figures []figure
}

func newReport(w io.Writer, config [][2]string) *report {
	r := &report{out: benchfmt.NewWriter(w)}
	for _, c := range config {
		r.config = append(r.config, benchfmt.Config{Key: c[0], Value: []byte(c[1]), File: true})
	}
	return r
}

func (r *report) add(f figure) error {
	r.figures = append(r.figures, f)
	if err := r.out.Write(&benchfmt.Result{Config: r.config, Name: benchfmt.Name(f.name), Iters: f.iters, Values: f.values}); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

// Units. The benchmark format wants times in seconds.
const (
	unitP50     = "p50-sec"
	unitP90     = "p90-sec"
	unitP99     = "p99-sec"
	unitShare   = "p90-of-allowed" // 1 is the whole allowance
	unitRSS     = "rss-B"
	unitCPU     = "cpu-sec/sec" // CPU time per time: 0.01 is one per cent of a core
	unitAdded   = "added-sec"
	unitPercent = "added-%"
	unitSeconds = "sec"
	unitChange  = "change-%"       // of the second side relative to the first
	unitOff     = "off-%"          // percentage points between the change and the known one
	unitWrong   = "wrong-verdicts" // 1: a false difference, or a known one said not to be there

	unitUndecidedVerdicts = "undecided-verdicts" // 1: nothing was concluded
	unitOfFew             = "p50-of-few"         // 1 is the gap with few jobs waiting
	unitP50Jobs           = "p50-jobs"
	unitP99Jobs           = "p99-jobs"
	unitMostJobs          = "most-jobs"
	unitGrowth            = "growth-B" // peak resident memory minus that before
	unitPSS               = "growth-pss-B"
	unitMost              = "most-sec"
	unitOfOne             = "of-one" // 1 is what one who follows a page costs
	unitLooks             = "looks/sec"
	unitOne               = "one-statements/sec"
	unitMany              = "many-statements/sec"
)

// addDurations reports the median and the 99th percentile.
func (r *report) addDurations(name string, durations []time.Duration) error {
	return r.add(figure{name, len(durations), []benchfmt.Value{
		{Value: seconds(percentile(durations, 50)), Unit: unitP50}, {Value: seconds(percentile(durations, 99)), Unit: unitP99},
	}})
}

// seconds rounds to microseconds, the resolution of the record's times.
func seconds(d time.Duration) float64 { return float64(d.Round(time.Microsecond).Microseconds()) / 1e6 }

// rounded rounds a value to a number of decimal places.
func rounded(value float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(value*scale) / scale
}

// percentile returns the smallest value that at least p per cent of the values do not
// exceed (nearest rank), or 0 without values.
func percentile[T ~int64 | ~float64](values []T, p float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(0, rank-1)]
}

// median returns the middle value; of an even number of values, the mean of the middle
// two.
func median[T ~int64 | ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
