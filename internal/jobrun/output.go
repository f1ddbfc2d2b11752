package jobrun

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
)

// The limits of an output in Go's benchmark format. It is stored and compared for each iteration,
// and a block has all iterations.
const (
	maxLines  = 1000
	maxValues = 2000
	// maxParsed is the limit of standard output, in bytes.
	maxParsed = measure.DefaultOutputLimit
)

// line is a result line of an output.
type line struct {
	name   string // without "Benchmark"
	values map[bench.Metric]float64
}

// parseBenchfmt reads an output in Go's benchmark format
// (https://go.dev/design/14313-benchmark-format). Values keep the units that were printed.
//
// The metrics of a single result line are its units; those of several lines are named by
// line and unit, see [bench.LineMetric]. Each line must have the wanted metrics; if wanted
// is empty, all units are returned.
func parseBenchfmt(output []byte, wanted []bench.Metric) (map[bench.Metric]float64, error) {
	if len(output) >= maxParsed {
		return nil, fmt.Errorf("the output is longer than %s, of which no more is read; print less, or select fewer benchmarks", humanize.IBytes(maxParsed))
	}
	lines, err := readLines(output)
	if err != nil {
		return nil, err
	}
	metrics := make(map[bench.Metric]float64)
	for _, l := range lines {
		values, err := l.pick(wanted)
		if err != nil {
			return nil, err
		}
		for unit, value := range values {
			metric := unit
			if len(lines) > 1 {
				if metric, err = bench.LineMetric(l.name, unit); err != nil {
					return nil, fmt.Errorf("the result line Benchmark%.80s: %w; give the benchmark a shorter or simpler name", l.name, err)
				}
			}
			metrics[metric] = value
		}
	}
	if len(metrics) > maxValues {
		return nil, fmt.Errorf("the output has %d values in %d result lines; at most %d are recorded: name the units to record in metrics, or spread the lines over several benchmarks of the suite",
			len(metrics), len(lines), maxValues)
	}
	return metrics, nil
}

// readLines reads the result lines of an output; there is at least one, and no two have
// the same name.
func readLines(output []byte) ([]line, error) {
	reader := benchfmt.NewReader(bytes.NewReader(output), "standard output")
	var lines []line
	var syntax error
	named := make(map[string]bool)
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			syntax = record
		case *benchfmt.Result:
			values, err := resultValues(record)
			if err != nil {
				return nil, err
			}
			l := line{name: string(record.Name), values: values}
			if named[l.name] {
				return nil, fmt.Errorf("the output has two result lines named Benchmark%s; print each once, without -test.count: the suite's iterations repeat the run", l.name)
			}
			named[l.name] = true
			if lines = append(lines, l); len(lines) > maxLines {
				return nil, fmt.Errorf("the output has more than %d result lines; select fewer, or spread them over several benchmarks of the suite", maxLines)
			}
		}
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("reading the benchmark's output: %w", err)
	}
	if len(lines) == 0 {
		return nil, errors.Join(errors.New("the output has no result line in Go's benchmark format; does the benchmark's name match?"), syntax)
	}
	return withoutCPUs(lines), nil
}

// withoutCPUs removes the number of CPUs from the names of lines if all end with the same
// number: it says nothing about the benchmark, and differs between machines.
func withoutCPUs(lines []line) []line {
	suffix := cpuSuffix.FindString(lines[0].name)
	for _, l := range lines {
		if suffix == "" || len(l.name) == len(suffix) || cpuSuffix.FindString(l.name) != suffix {
			return lines
		}
	}
	for i := range lines {
		lines[i].name = strings.TrimSuffix(lines[i].name, suffix)
	}
	return lines
}

// cpuSuffix matches the end that package testing adds to a line's name.
var cpuSuffix = regexp.MustCompile(`-[1-9][0-9]*$`)

// pick returns the wanted values of a line, or all.
func (l line) pick(wanted []bench.Metric) (map[bench.Metric]float64, error) {
	if len(wanted) == 0 {
		return l.values, nil
	}
	picked := make(map[bench.Metric]float64, len(wanted))
	for _, metric := range wanted {
		value, ok := l.values[metric]
		if !ok {
			return nil, fmt.Errorf("the result line Benchmark%s has no %s; it has %s", l.name, metric, unitList(l.values))
		}
		picked[metric] = value
	}
	return picked, nil
}

func resultValues(result *benchfmt.Result) (map[bench.Metric]float64, error) {
	values := make(map[bench.Metric]float64, len(result.Values))
	for _, v := range result.Values {
		// The reader turns ns/op into sec/op and keeps the printed value and unit.
		value, unit := v.Value, v.Unit
		if v.OrigUnit != "" {
			value, unit = v.OrigValue, v.OrigUnit
		}
		if err := bench.CheckUnit(unit); err != nil {
			return nil, fmt.Errorf("the result line Benchmark%s: %w", result.Name, err)
		}
		metric := bench.Metric(unit)
		if _, twice := values[metric]; twice {
			return nil, fmt.Errorf("the result line Benchmark%s has the unit %s twice", result.Name, unit)
		}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("%s of the result line Benchmark%s is %v, which is not a measurement", unit, result.Name, value)
		}
		values[metric] = value
	}
	return values, nil
}

// sameLines returns an error that names the difference if two iterations have not printed
// the same result lines. Changing names, such as those that contain a time or an address, would
// begin new series forever.
func sameLines(first, now map[bench.Metric]float64) error {
	lines := func(metrics map[bench.Metric]float64) map[string]bool {
		names := make(map[string]bool)
		for m := range metrics {
			if name, _ := m.Split(); name != "" {
				names[name] = true
			}
		}
		return names
	}
	before, after := lines(first), lines(now)
	for _, side := range []struct {
		has, lacks map[string]bool
		which      string
	}{{after, before, "a new"}, {before, after, "no longer the"}} {
		for _, name := range slices.Sorted(maps.Keys(side.has)) {
			if !side.lacks[name] {
				return fmt.Errorf("this iteration has printed %s result line Benchmark%s; each iteration must print the same lines", side.which, name)
			}
		}
	}
	for m := range now {
		if _, both := first[m]; both {
			return nil
		}
	}
	return errors.New("this iteration has printed none of the first one's units; each iteration must print the same ones")
}

func unitList(values map[bench.Metric]float64) string {
	units := make([]string, 0, len(values))
	for metric := range values {
		units = append(units, string(metric))
	}
	slices.Sort(units)
	return strings.Join(units, ", ")
}

// fileSize returns the total size of the regular files below ${work} that match
// a pattern.
func (p places) fileSize(pattern string) (float64, error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", pattern, err)
	}
	var total int64
	found := false
	for _, name := range names {
		// The target of a benchmark's own symbolic link is not its output.
		real, err := p.inside(name, "outputs lie below ${work}", p.paths.Work)
		if err != nil {
			return 0, err
		}
		info, err := os.Lstat(real)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if info.Mode().IsRegular() {
			total += info.Size()
			found = true
		}
	}
	if !found {
		return 0, fmt.Errorf("no file matches %s; the command did not write it", pattern)
	}
	return float64(total), nil
}

// tail is a writer that keeps the end of its input.
type tail struct {
	kept    []byte
	dropped bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - MaxOutputTail; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
		t.dropped = true
	}
	return len(p), nil
}

// String returns the kept output, starting at a line boundary if anything was
// dropped, as text that every database accepts: valid UTF-8 without NUL.
func (t *tail) String() string {
	text := string(t.kept)
	if t.dropped {
		if _, rest, ok := strings.Cut(text, "\n"); ok && rest != "" {
			text = rest
		}
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "")
}
