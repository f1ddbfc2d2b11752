package jobrun

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/bench"
)

// parseBenchfmt reads the one result line of an output in Go's benchmark format
// (https://go.dev/design/14313-benchmark-format). Values keep the units that
// were printed. Each wanted metric must be present; if wanted is empty, all
// units are returned.
func parseBenchfmt(output []byte, wanted []bench.Metric) (map[bench.Metric]float64, error) {
	reader := benchfmt.NewReader(bytes.NewReader(output), "standard output")
	var values map[bench.Metric]float64
	var syntax error
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			syntax = record
		case *benchfmt.Result:
			if values != nil {
				return nil, errors.New("the output has more than one result line; select exactly one benchmark")
			}
			var err error
			if values, err = resultValues(record); err != nil {
				return nil, err
			}
		}
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("reading the benchmark's output: %w", err)
	}
	if values == nil {
		return nil, errors.Join(errors.New("the output has no result line in Go's benchmark format; does the benchmark's name match?"), syntax)
	}
	if len(wanted) == 0 {
		return values, nil
	}
	picked := make(map[bench.Metric]float64, len(wanted))
	for _, metric := range wanted {
		value, ok := values[metric]
		if !ok {
			return nil, fmt.Errorf("the result line has no %s; it has %s", metric, unitList(values))
		}
		picked[metric] = value
	}
	return picked, nil
}

func resultValues(result *benchfmt.Result) (map[bench.Metric]float64, error) {
	values := make(map[bench.Metric]float64, len(result.Values))
	for _, v := range result.Values {
		// The reader turns ns/op into sec/op and keeps what was printed.
		value, unit := v.Value, v.Unit
		if v.OrigUnit != "" {
			value, unit = v.OrigValue, v.OrigUnit
		}
		if err := bench.CheckMetric(unit); err != nil {
			return nil, err
		}
		metric := bench.Metric(unit)
		if _, twice := values[metric]; twice {
			return nil, fmt.Errorf("the result line has the unit %s twice", unit)
		}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("the result line's %s is %v, which is not a measurement", unit, value)
		}
		values[metric] = value
	}
	return values, nil
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
