package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/measure"
)

// findings collects observations of the flood.
type findings struct {
	ready, page []time.Duration
	heartbeats  histogram
	refused     float64 // heartbeats without success
	silence     time.Duration
	jobs        int
	peak        int64   // bytes of the API's resident memory
	failed      []error // probes and pages
	errs        []error // whatever else
}

// most names a few of many errors.
func most(errs []error) error {
	const few = 5
	shown := slices.Clone(errs[:min(len(errs), few)])
	if more := len(errs) - len(shown); more > 0 {
		shown = append(shown, fmt.Errorf("and %d more", more))
	}
	return errors.Join(shown...)
}

// judge returns what must not happen, at limits of the API's memory in bytes and of the
// silence of a collector. One of a hundred probes may fail: /readyz also asks Temporal,
// which shares the machine with the flood.
func (f *findings) judge(memory int64, silence time.Duration) error {
	errs := []error{most(f.errs)}
	if asked := len(f.failed) + len(f.ready) + len(f.page); len(f.failed)*100 > asked {
		errs = append(errs, fmt.Errorf("%d of %d probes failed: %w", len(f.failed), asked, most(f.failed)))
	}
	if f.peak > memory {
		errs = append(errs, fmt.Errorf("the API needed %d MB of memory, of at most %d", f.peak/1_000_000, memory/1_000_000))
	}
	if f.heartbeats[math.Inf(1)] == 0 {
		errs = append(errs, errors.New("no heartbeat was counted"))
	}
	if f.refused > 0 {
		errs = append(errs, fmt.Errorf("the API refused %g heartbeats", f.refused))
	}
	if f.silence >= silence {
		errs = append(errs, fmt.Errorf("a collector was silent for %s: a heartbeat was lost", f.silence.Round(time.Millisecond)))
	}
	if f.jobs == 0 {
		errs = append(errs, errors.New("no job ended"))
	}
	return errors.Join(errs...)
}

// print writes the figures in Go's benchmark format.
func (f *findings) print(w io.Writer, calls map[string]int64) error {
	out := benchfmt.NewWriter(w)
	var config []benchfmt.Config
	for _, c := range machine() {
		config = append(config, benchfmt.Config{Key: c[0], Value: []byte(c[1]), File: true})
	}
	add := func(name string, iters int, values ...benchfmt.Value) error {
		return out.Write(&benchfmt.Result{Config: config, Name: benchfmt.Name(name), Iters: iters, Values: values})
	}
	beats := f.heartbeats[math.Inf(1)]
	errs := []error{
		add("Soak/of=readyz", len(f.ready), quantiles(percentile(f.ready, 50), percentile(f.ready, 99))...),
		add("Soak/of=requests", len(f.page), quantiles(percentile(f.page, 50), percentile(f.page, 99))...),
		// Upper bounds of the buckets of the API's own histogram.
		add("Soak/of=heartbeat", int(beats), append(quantiles(f.heartbeats.percentile(50), f.heartbeats.percentile(99)), benchfmt.Value{Value: round(f.silence.Seconds()), Unit: "silence-sec"})...),
		add("Soak/process=api", 1, benchfmt.Value{Value: float64(f.peak), Unit: "rss-B"}),
		add("Soak/of=failed-probes", 1, benchfmt.Value{Value: float64(len(f.failed)), Unit: "probes"}),
		add("Soak/of=jobs", f.jobs, benchfmt.Value{Value: float64(f.jobs), Unit: "jobs"}),
	}
	for _, kind := range slices.Sorted(maps.Keys(calls)) {
		errs = append(errs, add("Soak/flood="+kind, int(calls[kind]), benchfmt.Value{Value: float64(calls[kind]), Unit: "calls"}))
	}
	return errors.Join(errs...)
}

func quantiles(p50, p99 float64) []benchfmt.Value {
	return []benchfmt.Value{{Value: round(p50), Unit: "p50-sec"}, {Value: round(p99), Unit: "p99-sec"}}
}

// round rounds to tenths of a millisecond.
func round(seconds float64) float64 { return math.Round(seconds*1e4) / 1e4 }

// percentile returns the smallest duration, in seconds, that at least p per cent do not
// exceed; 0 without any.
func percentile(took []time.Duration, p float64) float64 {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)].Seconds()
}

// histogram maps upper bounds of latencies, in seconds, to the number of calls up to them.
type histogram map[float64]uint64

func (h histogram) since(before histogram) histogram {
	out := make(histogram, len(h))
	for bound, n := range h {
		out[bound] = n - before[bound]
	}
	return out
}

// percentile returns the smallest bound that at least p per cent of the calls do not
// exceed; 0 without calls.
func (h histogram) percentile(p float64) float64 {
	rank := p / 100 * float64(h[math.Inf(1)])
	for _, bound := range slices.Sorted(maps.Keys(h)) {
		if n := h[bound]; n > 0 && float64(n) >= rank {
			return bound
		}
	}
	return 0
}

// machine describes this machine as keys of the benchmark format.
func machine() [][2]string {
	config := [][2]string{
		{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"pkg", "github.com/benchloom/benchloom/internal/e2e/soak"}, {"cores", fmt.Sprint(runtime.NumCPU())},
	}
	if facts, err := measure.ReadFacts("/"); err == nil {
		config = append(config, [2]string{"cpu", facts.CPUModel}, [2]string{"kernel", facts.Kernel})
	}
	return config
}
