package machine

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Cause is a kind of disturbance.
type Cause string

// The causes of a disturbance.
const (
	ForeignCPU       Cause = "foreign CPU time"
	StolenCPU        Cause = "steal"
	InterruptedCPU   Cause = "interrupts"
	CPUContention    Cause = "CPU pressure"
	MemoryContention Cause = "memory pressure"
	IOContention     Cause = "I/O pressure"
	FrequencyChange  Cause = "frequency"
	HeatThrottling   Cause = "throttling"
	SwapTraffic      Cause = "swapping"
	ClockChange      Cause = "clock"
)

// Limits above which a measurement is disturbed. Shares are of 1. The limits of
// steal and pressure come from published practice and a busy virtual machine;
// the others keep what a kernel and its services do on a quiet machine below
// them.
const (
	// MaxForeign is the largest share of the job's CPUs that others may use.
	MaxForeign = 0.05
	// MaxSteal is the largest share of the job's CPUs that the hypervisor may take.
	MaxSteal = 0.005
	// MaxAboveNorm is the largest excess of pressure and interrupts over the series'
	// median, as a difference of shares: 5 percentage points.
	MaxAboveNorm = 0.05
	// MaxFrequencyChange is the largest distance of the frequency from the series'
	// median, as a share of it.
	MaxFrequencyChange = 0.10
	// MaxSwappedPages is the number of pages that the machine may swap.
	MaxSwappedPages = 64
)

// leastExcess is the time below which pressure or interrupts disturb nothing: in
// a short measurement, 5 points are a few wake-ups.
const leastExcess = 50 * time.Millisecond

// Reason is a disturbance with its size.
type Reason struct {
	Cause Cause `json:"cause"`
	// Detail is the size in words: "43 % of the job's CPU time".
	Detail string `json:"detail"`
}

// String returns "cause: detail".
func (r Reason) String() string { return string(r.Cause) + ": " + r.Detail }

// Text returns reasons as one text, the first cause in front; "" for none.
func Text(reasons []Reason) string {
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = r.String()
	}
	return strings.Join(words, "; ")
}

// Judge returns why a measurement is disturbed; none if it is not. A value that is
// absent from the delta, or lacks the norm to compare with, disturbs nothing.
//
// CPU times count in ticks of 10 ms, at both ends of every CPU: below a tick for
// each CPU and one more, foreign time and steal disturb nothing.
func Judge(d Delta, norms Norms) []Reason {
	var found []Reason
	add := func(cause Cause, format string, args ...any) {
		found = append(found, Reason{Cause: cause, Detail: fmt.Sprintf(format, args...)})
	}
	unsure := time.Duration(d.CPUs+1) * tick
	if t := d.Foreign; t != nil && *t > unsure && d.share(*t) > MaxForeign {
		add(ForeignCPU, "%s of the job's CPUs", percent(d.share(*t)))
	}
	if t := d.Steal; t != nil && *t > tick && d.share(*t) > MaxSteal {
		add(StolenCPU, "%s of the job's CPUs", percent(d.share(*t)))
	}
	for _, p := range []struct {
		cause       Cause
		share, norm *float64
		time        time.Duration // that a share of 1 is
	}{
		{InterruptedCPU, d.interruptShare(), norms.Interrupts, d.Elapsed * time.Duration(d.CPUs)},
		{CPUContention, d.CPUPressure, norms.CPUPressure, d.Elapsed},
		{MemoryContention, d.MemoryPressure, norms.MemoryPressure, d.Elapsed},
		{IOContention, d.IOPressure, norms.IOPressure, d.Elapsed},
	} {
		if p.share == nil || p.norm == nil {
			continue
		}
		above := *p.share - *p.norm
		if above > MaxAboveNorm && time.Duration(above*float64(p.time)) > leastExcess {
			add(p.cause, "%s, usually %s", percent(*p.share), percent(*p.norm))
		}
	}
	if f, usual := d.MHz, norms.MHz; f != nil && usual != nil && math.Abs(*f-*usual) > MaxFrequencyChange**usual {
		add(FrequencyChange, "%.0f MHz, usually %.0f", *f, *usual)
	}
	if n := d.Throttled; n != nil && *n > 0 {
		add(HeatThrottling, "%d times because of heat", *n)
	}
	if n := d.SwappedPages; n != nil && *n > MaxSwappedPages {
		add(SwapTraffic, "%d pages", *n)
	}
	if d.ClockStep != 0 {
		add(ClockChange, "set by %s, or the machine slept", d.ClockStep.Round(time.Second))
	}
	return found
}

func percent(share float64) string {
	if share < 0.1 {
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}
