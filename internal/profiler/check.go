package profiler

import (
	"fmt"
	"math"
	"time"
)

// Fault is something wrong with an upload.
type Fault struct {
	// Where names the part as a path in the JSON, such as batches[2].times.
	Where string
	What  string
}

// maxFaults bounds the faults that are listed, and so the size of a refusal.
const maxFaults = 100

// The range of times: times outside are no measurements, and inside microseconds since 1970 are exact.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Check lists the faults of a received upload, at most a hundred; without any, it may be stored. Only somebody who has the earlier
// uploads of an attempt can tell whether it has too many series or values.
func (u Upload) Check() []Fault {
	f := faults{}
	f.require(u.Attempt != "" && fits(u.Attempt, MaxNameBytes), "attempt", "it has 1 to %d bytes of printable text", MaxNameBytes)
	f.require(fits(u.Host, MaxHostBytes), "host", "it has at most %d bytes of printable text", MaxHostBytes)
	f.require(u.DroppedTotal >= 0, "dropped_total", "it is a number of values, and not negative")
	seen := make(map[Series]bool, len(u.Batches))
	for i, b := range u.Batches {
		where := fmt.Sprintf("batches[%d]", i)
		f.require(b.Attempt == u.Attempt, where+".attempt", "it is not that of the upload")
		f.require(b.Host == u.Host, where+".host", "it is not that of the upload")
		f.require(!seen[b.Series], where, "the series is there twice: an upload has one batch of each")
		seen[b.Series] = true
		f.batch(where, b)
	}
	f.absent(u.Absent)
	if u.Summary != nil {
		f.summary(*u.Summary)
	}
	if f.more > 0 {
		f.list = append(f.list, Fault{What: fmt.Sprintf("and %d more", f.more)})
	}
	return f.list
}

// faults gathers faults.
type faults struct {
	list []Fault
	more int
}

func (f *faults) require(right bool, where, what string, args ...any) {
	switch {
	case right:
	case len(f.list) >= maxFaults:
		f.more++
	default:
		f.list = append(f.list, Fault{Where: where, What: fmt.Sprintf(what, args...)})
	}
}

// series checks the name of a series, and its unit.
func (f *faults) series(where string, s Series, unit Unit) {
	switch s.Scope {
	case ScopeMachine, ScopeJob:
		f.require(s.Unit() != "", where+".name", "there is no such metric")
	case ScopeTiming:
		f.require(s.Device == "", where+".device", "a phase has none")
	default:
		f.require(false, where+".scope", "use %s, %s or %s", ScopeMachine, ScopeJob, ScopeTiming)
	}
	f.require(s.Name != "" && fits(s.Name, MaxNameBytes), where+".name", "it has 1 to %d bytes of printable text", MaxNameBytes)
	f.require(fits(s.Device, MaxNameBytes), where+".device", "it has at most %d bytes of printable text", MaxNameBytes)
	f.require(unit == s.Unit(), where+".unit", "it is not the unit of the series, %q", s.Unit())
}

func (f *faults) batch(where string, b Batch) {
	f.series(where, b.Series, b.Unit)
	f.require(b.Sequence >= 0 && b.Sequence < MaxBatches, where+".sequence", "batches of a series count from 0 to %d", MaxBatches-1)
	n := len(b.Values)
	f.require(n > 0, where+".values", "there are none")
	f.require(n <= MaxValues, where+".values", "%d are more than the %d of a series", n, MaxValues)
	f.require(len(b.Batches) == n, where+".batches", "there are %d of them, and %d values", len(b.Batches), n)
	f.require(len(b.Times) == n, where+".times", "there are %d of them, and %d values", len(b.Times), n)
	f.finite(where+".values", b.Values)
	f.indexes(where+".batches", b.Batches)
	f.times(where+".times", b)
}

// finite refuses values that are not finite. One fault stands for all values.
func (f *faults) finite(where string, values []float64) {
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			f.require(false, fmt.Sprintf("%s[%d]", where, i), "it is not a finite number")
			return
		}
	}
}

// indexes refuses impossible batch indexes. Those of phases, which end side by side, are in no order.
func (f *faults) indexes(where string, indexes []int) {
	for i, n := range indexes {
		if n < 0 || n > math.MaxInt32 {
			f.require(false, fmt.Sprintf("%s[%d]", where, i), "batch indexes count from 0 to %d", math.MaxInt32)
			return
		}
	}
}

// times refuses times out of range, and times of system series that do not increase. Phases are recorded by the goroutine that ends
// them, so their times may come in any order.
func (f *faults) times(where string, b Batch) {
	for i, at := range b.Times {
		switch {
		case at.Before(earliest) || at.After(latest):
			f.require(false, fmt.Sprintf("%s[%d]", where, i), "it is before the year 2000 or after 2199")
			return
		case b.Scope != ScopeTiming && i > 0 && !at.After(b.Times[i-1]):
			f.require(false, fmt.Sprintf("%s[%d]", where, i), "it is not after the one before")
			return
		}
	}
}

func (f *faults) absent(list []Absence) {
	f.require(len(list) <= 2*len(units), "absent", "%d are more than there are metrics of machines and jobs", len(list))
	for i, a := range list {
		where := fmt.Sprintf("absent[%d]", i)
		f.require(a.Scope == ScopeMachine || a.Scope == ScopeJob, where+".scope", "use %s or %s", ScopeMachine, ScopeJob)
		f.require(units[a.Metric] != "", where+".metric", "there is no such metric")
		f.require(fits(a.Reason, MaxReasonBytes), where+".reason", "it has at most %d bytes of printable text", MaxReasonBytes)
	}
}

func (f *faults) summary(s Summary) {
	f.require(len(s.Commands) <= MaxCommands, "summary.commands", "%d are more than %d", len(s.Commands), MaxCommands)
	before := -1
	for i, c := range s.Commands {
		where := fmt.Sprintf("summary.commands[%d]", i)
		f.require(c.Batch > before && c.Batch <= math.MaxInt32, where+".batch", "batch indexes are ascending, from 0")
		f.require(c.Iteration >= 0, where+".iteration", "iterations count from 1")
		f.require(fits(c.Artifact, MaxLabelBytes), where+".artifact", "it has at most %d bytes of printable text", MaxLabelBytes)
		f.require(fits(c.Case, MaxLabelBytes), where+".case", "it has at most %d bytes of printable text", MaxLabelBytes)
		before = c.Batch
	}
	pairs := 0
	known := make(map[Series]bool, len(s.Series))
	for i, series := range s.Series {
		where := fmt.Sprintf("summary.series[%d]", i)
		pairs += len(series.Mean)
		f.require(series.Scope != ScopeTiming, where+".scope", "phases have a summary of their own")
		f.require(!known[series.Series], where, "the series is there twice")
		known[series.Series] = true
		f.series(where, series.Series, series.Unit)
		f.require(len(series.Batches) == len(series.Mean) && len(series.Max) == len(series.Mean), where, "it has %d batches, %d means and %d maxima", len(series.Batches), len(series.Mean), len(series.Max))
		f.finite(where+".mean", series.Mean)
		f.finite(where+".max", series.Max)
		f.indexes(where+".batches", series.Batches)
	}
	f.require(pairs <= MaxSummarized, "summary.series", "%d pairs of mean and maximum are more than %d", pairs, MaxSummarized)
	f.require(len(s.Series) <= MaxSystemSeries, "summary.series", "%d are more than %d", len(s.Series), MaxSystemSeries)
	f.require(len(s.Phases) <= MaxTimingSeries, "summary.phases", "%d are more than %d", len(s.Phases), MaxTimingSeries)
	named := make(map[string]bool, len(s.Phases))
	for i, p := range s.Phases {
		where := fmt.Sprintf("summary.phases[%d]", i)
		f.require(p.Name != "" && fits(p.Name, MaxNameBytes), where+".name", "it has 1 to %d bytes of printable text", MaxNameBytes)
		f.require(!named[p.Name], where+".name", "the phase is there twice")
		named[p.Name] = true
		f.require(p.Count > 0, where+".count", "there was at least one")
		f.finite(where+".total_seconds", []float64{p.TotalSeconds, p.LongestSeconds})
		f.require(p.LongestSeconds >= 0 && p.TotalSeconds >= p.LongestSeconds, where, "the longest is one of those that the total sums up")
	}
}
