package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// Run writes a run with the facts that decide whether its results compare.
func Run(w io.Writer, d apiclient.RunDetail, v View) error {
	if err := write(w, "run "+string(d.ID)+"\n"); err != nil {
		return err
	}
	outcome := string(d.Outcome)
	if d.Outcome == bench.RunRunning {
		outcome = "running"
	}
	return Fields(w,
		[2]string{"job", string(d.Job)}, [2]string{"project", d.Project}, [2]string{"tag", d.Tag}, [2]string{"kind", string(d.Kind)}, [2]string{"target", string(d.Target)},
		[2]string{"number", strconv.Itoa(d.Number)}, [2]string{"reason", string(d.Reason)}, [2]string{"outcome", outcome}, [2]string{"message", d.Message},
		[2]string{"collector", d.Collector}, [2]string{"pool", d.Pool}, [2]string{"size class", strconv.Itoa(int(d.SizeClass))}, [2]string{"hardware", d.HardwareID},
		[2]string{"started", moment(v.Now, &d.StartedAt)}, [2]string{"finished", moment(v.Now, d.FinishedAt)}, [2]string{"results", strconv.Itoa(d.Results)})
}

// RunMetrics holds all samples of a run.
type RunMetrics struct {
	apiclient.Profile
	Batches   []profiler.Batch           `json:"batches"`
	Summaries []apiclient.ProfileSummary `json:"summaries"`
}

// sampledSeries are the values of a series of an attempt.
type sampledSeries struct {
	name   string
	unit   profiler.Unit
	values []float64
	times  []time.Time
}

// of returns the series of an attempt, in the order of their arrival.
func (m RunMetrics) of(attempt string) []*sampledSeries {
	var list []*sampledSeries
	known := make(map[profiler.Series]*sampledSeries)
	for _, b := range m.Batches {
		if b.Attempt != attempt {
			continue
		}
		s, ok := known[b.Series]
		if !ok {
			s = &sampledSeries{name: b.String(), unit: b.Unit}
			known[b.Series] = s
			list = append(list, s)
		}
		s.values = append(s.values, b.Values...)
		s.times = append(s.times, b.Times...)
	}
	return list
}

// drawn is the width of a drawing in characters.
const drawn = 40

// Metrics draws each series sampled during a run, by attempt, and lists the durations of its phases.
func Metrics(w io.Writer, m RunMetrics, v View) error {
	if len(m.Attempts) == 0 {
		text := "Nothing has been sampled yet.\n"
		if m.Over {
			text = "Nothing was sampled during this run.\n"
		}
		return write(w, text)
	}
	for i, a := range m.Attempts {
		title := "attempt " + Printable(a.Attempt) + " on " + Printable(a.Host)
		switch {
		case a.Partial:
			title += ", partial: it was cut off"
		case !m.Over && i == len(m.Attempts)-1:
			title += ", recording"
		}
		if a.DroppedTotal > 0 {
			title += fmt.Sprintf("; %d values were lost", a.DroppedTotal)
		}
		if i > 0 {
			title = "\n" + title
		}
		if err := write(w, title+"\n"); err != nil {
			return err
		}
		t := NewTable(Column{Heading: "series"}, Column{Heading: "least", Right: true}, Column{Heading: "mean", Right: true}, Column{Heading: "most", Right: true}, Column{Heading: "over time"})
		for _, s := range m.of(a.Attempt) {
			least, mean, most := extremes(s.values)
			t.Row(s.name, InUnit(least, s.unit), InUnit(mean, s.unit), InUnit(most, s.unit), blocks(s.values, s.times, drawn))
		}
		if err := t.Write(w, v.Width); err != nil {
			return err
		}
		if err := m.phases(w, a.Attempt, v); err != nil {
			return err
		}
		for _, absent := range a.Absent {
			if err := write(w, fmt.Sprintf("  %s/%s is absent: %s\n", Printable(string(absent.Scope)), Printable(string(absent.Metric)), Printable(absent.Reason))); err != nil {
				return err
			}
		}
	}
	return nil
}

// phases lists the phases of an attempt that has ended.
func (m RunMetrics) phases(w io.Writer, attempt string, v View) error {
	for _, s := range m.Summaries {
		if s.Attempt != attempt || len(s.Phases) == 0 {
			continue
		}
		t := NewTable(Column{Heading: "phase"}, Column{Heading: "count", Right: true}, Column{Heading: "total", Right: true}, Column{Heading: "longest", Right: true})
		for _, p := range s.Phases {
			t.Row(p.Name, strconv.Itoa(p.Count), InUnit(p.TotalSeconds, profiler.Seconds), InUnit(p.LongestSeconds, profiler.Seconds))
		}
		return section(w, "phases", t, v)
	}
	return nil
}

func extremes(values []float64) (least, mean, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for i, v := range values {
		least, most = min(least, v), max(most, v)
		mean += (v - mean) / float64(i+1)
	}
	return least, mean, most
}

// InUnit writes a sampled value with its unit.
func InUnit(v float64, unit profiler.Unit) string {
	switch unit {
	case profiler.Bytes:
		return humanize.IBytes(uint64(max(0, v)))
	case profiler.BytesPerSecond:
		return humanize.IBytes(uint64(max(0, v))) + "/s"
	case profiler.Hertz:
		return humanize.SIWithDigits(v, 2, string(unit))
	case profiler.Ratio:
		return strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
	}
	if math.Abs(v) >= 1000 { // counts, which nobody reads with an exponent
		return humanize.Comma(int64(math.Round(max(-1e18, min(v, 1e18))))) + " " + string(unit)
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + string(unit)
}

// blocks draws values over time as characters of eight heights between their extremes: each the mean of its part of the time. A
// part without a value is blank.
func blocks(values []float64, times []time.Time, width int) string {
	if len(values) == 0 {
		return ""
	}
	first, last := times[0], times[0]
	for _, t := range times {
		if t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}
	width = min(width, len(values))
	sums, counts := make([]float64, width), make([]int, width)
	for i, v := range values {
		at := 0
		if whole := last.Sub(first); whole > 0 {
			at = min(width-1, int(float64(width)*float64(times[i].Sub(first))/float64(whole)))
		}
		counts[at]++
		sums[at] += (v - sums[at]) / float64(counts[at])
	}
	least, _, most := extremes(values)
	heights := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for i, v := range sums {
		height := 0
		if most > least {
			height = min(len(heights)-1, int(float64(len(heights))*(v-least)/(most-least)))
		}
		if counts[i] == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(heights[height])
	}
	return b.String()
}

// WriteMetricsCSV writes a heading and one line for each value.
func WriteMetricsCSV(w io.Writer, m RunMetrics) error {
	if err := write(w, "attempt,host,scope,name,device,unit,batch_index,time,value\n"); err != nil {
		return err
	}
	return AppendMetricsCSV(w, m.Batches)
}

// AppendMetricsCSV writes one line for each value, without a heading.
func AppendMetricsCSV(w io.Writer, batches []profiler.Batch) error {
	out := csv.NewWriter(w)
	for _, b := range batches {
		for i, v := range b.Values {
			_ = out.Write([]string{ // a failed write shows up in Error
				b.Attempt, b.Host, string(b.Scope), b.Name, b.Device, string(b.Unit), strconv.Itoa(b.Batches[i]),
				b.Times[i].UTC().Format(time.RFC3339Nano), strconv.FormatFloat(v, 'g', -1, 64),
			})
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
