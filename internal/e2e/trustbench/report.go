package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/verdict"
)

// summary tells what a trial found, in a few words.
func (o outcome) summary(t trial) string {
	marked := 0
	for _, s := range o.Sessions {
		if s.Marked {
			marked++
		}
	}
	sessions := fmt.Sprintf("%d of %d sessions disturbed", marked, len(o.Sessions))
	if t.Slower > 0 {
		r, _ := o.planted()
		return fmt.Sprintf("%s, %+.1f %% from %d pairs, %s", r.Verdict, 100*r.Change, r.Pairs, sessions)
	}
	var changed []string
	for _, r := range o.Rows {
		if r.Verdict == verdict.Changed {
			changed = append(changed, fmt.Sprintf("%s %s %+.1f %%", r.Benchmark, r.Metric, 100*r.Change))
		}
	}
	if len(changed) > 0 {
		return "FALSE: changed " + strings.Join(changed, ", ") + ", " + sessions
	}
	return "nothing told, " + sessions
}

// writeReport writes the figures as a Markdown table.
func writeReport(w io.Writer, p plan, outcomes []outcome) error {
	var text strings.Builder
	took, versions := time.Duration(0), make([]string, 0, 1)
	for _, o := range outcomes {
		took += time.Duration(o.Seconds * float64(time.Second))
		if !slices.Contains(versions, o.Version) {
			versions = append(versions, o.Version)
		}
	}
	machine := "an unknown machine"
	if facts, err := measure.ReadFacts("/"); err == nil {
		machine = fmt.Sprintf("%d cores (%s), Linux %s", facts.LogicalCPUs, facts.CPUModel, facts.Kernel)
	}
	fmt.Fprintf(&text, "%d of %d trials on %s, in %s; Benchloom %s.\n\n", len(outcomes), len(p.trials()), machine, took.Round(time.Minute), strings.Join(versions, ", "))
	fmt.Fprintln(&text, "| what | found | share | 95 % (Clopper–Pearson) | limit |")
	fmt.Fprintln(&text, "|---|---|---|---|---|")
	for _, f := range p.figures(outcomes) {
		share, bounds := "–", "–"
		if f.of > 0 {
			low, high := clopperPearson(f.found, f.of)
			share, bounds = percent(float64(f.found)/float64(f.of)), percent(low)+" to "+percent(high)
		}
		fmt.Fprintf(&text, "| %s | %d of %d | %s | %s | %s |\n", f.name, f.found, f.of, share, bounds, f.limit)
	}
	if causes := quietCauses(outcomes); len(causes) > 0 {
		fmt.Fprintf(&text, "\nMarks of quiet sessions, by cause: %s.\n", strings.Join(causes, ", "))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// quietCauses counts why quiet sessions of unchanged code are marked: foreign CPU time is that of programs that are not part
// of the trials.
func quietCauses(outcomes []outcome) []string {
	counts := make(map[string]int)
	for _, o := range outcomes {
		if strings.HasPrefix(o.Trial, unchanged) {
			for _, s := range o.Sessions {
				if s.Marked && s.quiet() {
					counts[s.Cause]++
				}
			}
		}
	}
	var texts []string
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%s (%d)", cause, counts[cause]))
	}
	return texts
}

// judge fails if a limit is broken: once all trials are there, or if none of the missing ones can change that.
func judge(p plan, outcomes []outcome) error {
	complete := len(p.missing(outcomes)) == 0
	var broken []string
	for _, f := range p.figures(outcomes) {
		if complete && f.broken() || f.lost() {
			broken = append(broken, fmt.Sprintf("%s: %d of %d, the limit is %s", f.name, f.found, f.of, f.limit))
		}
	}
	if len(broken) > 0 {
		return errors.New("broken limits:\n  " + strings.Join(broken, "\n  "))
	}
	return nil
}
