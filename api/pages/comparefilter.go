package pages

import (
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/report"
)

// filter narrows a table by words. A word is part of a name or of the verdict, key:value
// names a parameter, and a minus before either leaves out what it matches.
type filter []condition

type condition struct {
	not        bool
	key, value string
}

// filterKeys are the keys of key:value.
var filterKeys = []string{"benchmark", "profile", "scenario", "backend", "target", "metric", "category", "verdict", "noise"}

func readFilter(text string) filter {
	var f filter
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		var c condition
		if rest, not := strings.CutPrefix(word, "-"); not && rest != "" {
			c.not, word = true, rest
		}
		c.value = word
		if key, value, ok := strings.Cut(word, ":"); ok && slices.Contains(filterKeys, key) {
			c.key, c.value = key, value
		}
		f = append(f, c)
	}
	return f
}

// shows reports whether all conditions hold for a row.
func (f filter) shows(r report.Row) bool {
	return !slices.ContainsFunc(f, func(c condition) bool { return c.holds(r) == c.not })
}

func (c condition) holds(r report.Row) bool {
	verdicts := []string{string(r.Direction)}
	if r.Verdict != nil {
		verdicts = append(verdicts, r.Verdict.String(), asWord(r.Verdict.String()))
	}
	if c.key != "" {
		values := properties(r, c.key)
		if c.key == "verdict" {
			values = verdicts
		}
		return slices.ContainsFunc(values, func(v string) bool { return strings.ToLower(v) == c.value || asWord(v) == c.value })
	}
	texts := append(verdicts, r.Name(), r.Benchmark, r.Line, r.Profile, r.Scenario, r.Backend, r.Target, r.Metric, r.Noise)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), c.value) })
}
