package bench

import (
	"fmt"
	"strings"
	"unicode"
)

const (
	maxUnit = 64  // bytes of a metric's name, or of its unit if it belongs to a line
	maxLine = 190 // bytes of a line's name
)

// LineMetric returns the metric of one of several result lines in an output: the line's
// name and the unit, such as "Parse/small ns/op". Each line has its own series. The error
// wraps [ErrInvalid] if the name is empty, longer than 190 bytes, or has white space or
// unprintable characters.
func LineMetric(line string, unit Metric) (Metric, error) {
	m := Metric(line + " " + string(unit))
	return m, CheckMetric(string(m))
}

// Split returns the line's name and the unit of a metric from [LineMetric]. The line is
// empty for every other metric, which is returned unchanged.
func (m Metric) Split() (line string, unit Metric) {
	line, rest, ok := strings.Cut(string(m), " ")
	if !ok {
		return "", m
	}
	return line, Metric(rest)
}

// Matches reports whether a name means the metric: its own name or that of its unit, so
// that "ns/op" means all lines. Case does not matter.
func (m Metric) Matches(name string) bool {
	_, unit := m.Split()
	return strings.EqualFold(name, string(m)) || strings.EqualFold(name, string(unit))
}

// CheckUnit refuses an invalid unit, or name of a metric that belongs to no line.
func CheckUnit(s string) error { return checkUnit(s, s) }

// CheckMetric refuses an invalid name of a metric, with or without a line.
func CheckMetric(s string) error {
	line, unit, ok := strings.Cut(s, " ")
	if !ok {
		return CheckUnit(s)
	}
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == ' ' }
	if line == "" || len(line) > maxLine || strings.ContainsFunc(line, odd) {
		return fmt.Errorf("%w: metric %q: the name of the line before the unit has 1 to %d printable characters without spaces", ErrInvalid, s, maxLine)
	}
	return checkUnit(s, unit)
}

// checkUnit refuses the invalid unit of a metric.
func checkUnit(metric, unit string) error {
	odd := func(r rune) bool {
		return !unicode.IsPrint(r) || r == unicode.ReplacementChar || strings.ContainsRune(" \"'\\", r)
	}
	if unit == "" || len(unit) > maxUnit || strings.ContainsFunc(unit, odd) {
		return fmt.Errorf("%w: metric %q: use 1 to %d printable characters without spaces and quotes", ErrInvalid, metric, maxUnit)
	}
	return nil
}
