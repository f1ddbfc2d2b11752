package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/probe"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/tune"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Diagnosis describes what disturbs measurements on this machine.
type Diagnosis struct {
	tune.Report
	// Limits of benchmarks, whether they hold or not.
	Limits []tune.Enforcement `json:"limits,omitempty"`
	// Tuned is the tuning in force, nil if there is none.
	Tuned *tune.Tuned `json:"tuned,omitempty"`
	// Noise is nil if it was not measured; NotMeasured is the reason, unless the user asked for that.
	Noise       *probe.Noise `json:"noise,omitempty"`
	NotMeasured string       `json:"noise_not_measured,omitempty"`
}

// WriteDiagnosis writes a table of the settings, and below it reasons and remedies.
func WriteDiagnosis(w io.Writer, d Diagnosis, v View) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Benchmarks run on %s", cpusWords(d.MeasuringCPUs))
	if len(d.OtherCPUs) > 0 {
		fmt.Fprintf(&b, ", other work on %s", cpusWords(d.OtherCPUs))
	}
	b.WriteString(".\n")
	switch t := d.Tuned; {
	case t == nil:
	case t.Complete:
		fmt.Fprintf(&b, "Tuned %s: %s; 'benchloom doctor --restore' puts the originals back.\n", Ago(v.Now, t.At), Plural(t.Settings, "setting"))
	default:
		fmt.Fprintf(&b, "A tuning begun %s was cut short; 'benchloom doctor --restore' puts the originals back.\n", Ago(v.Now, t.At))
	}
	b.WriteString("\n")
	if err := write(w, b.String()); err != nil {
		return err
	}
	t := NewTable(Column{Heading: "setting"}, Column{Heading: "state"}, Column{Heading: "value", Flex: true})
	for _, f := range d.Findings {
		t.Row(f.Name, string(f.Grade), f.Value)
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	return write(w, explanations(d.Report))
}

func cpusWords(cpus measure.CPUList) string {
	if len(cpus) == 1 {
		return "CPU " + cpus.String()
	}
	return "CPUs " + cpus.String()
}

// explanations lists reasons and remedies of settings that are not good.
func explanations(r tune.Report) string {
	var b strings.Builder
	tunable := false
	for _, grade := range []tune.Grade{tune.Improvable, tune.Unavailable} {
		if r.Count(grade) > 0 {
			fmt.Fprintf(&b, "\n%s:\n", strings.ToUpper(string(grade)[:1])+string(grade)[1:])
		}
		for _, f := range r.Findings {
			if f.Grade != grade {
				continue
			}
			mark := " "
			if f.Tunable {
				mark, tunable = "*", true
			}
			text := f.Name + ": " + f.Reason
			if f.Remedy != "" {
				text += ". Remedy: " + f.Remedy
			}
			fmt.Fprintf(&b, "%s %s.\n", mark, Printable(text))
		}
	}
	if tunable {
		b.WriteString("\n* 'benchloom doctor --tune' changes it.\n")
	}
	return b.String()
}

// WriteTuning writes which settings were changed and which not. Settings of one name
// that changed alike share a line.
func WriteTuning(w io.Writer, o tune.Outcome, v View) error {
	var b strings.Builder
	switch {
	case o.Restarted:
		b.WriteString("The machine has restarted since it was tuned, which restored its settings.\n")
	case o.Interrupted:
		b.WriteString("An earlier tuning or restoring had been cut short.\n")
	}
	if err := write(w, b.String()); err != nil {
		return err
	}
	for _, part := range []struct {
		title   string
		changes []tune.Changed
	}{{"Restored", o.Restored}, {"Set", o.Set}} {
		if len(part.changes) == 0 {
			continue
		}
		if err := write(w, part.title+":\n"); err != nil {
			return err
		}
		t := NewTable(Column{Heading: "  setting"}, Column{Heading: "from"}, Column{Heading: "to"}, Column{Heading: "files", Flex: true})
		for _, g := range grouped(part.changes, func(c tune.Changed) string { return c.Name + "\x00" + c.From + "\x00" + c.To }) {
			t.Row("  "+g[0].Name, g[0].From, g[0].To, filesWords(len(g), g[0].Path))
		}
		if err := t.Write(w, v.Width); err != nil {
			return err
		}
	}
	return writeRefused(w, o)
}

func writeRefused(w io.Writer, o tune.Outcome) error {
	var b strings.Builder
	for _, part := range []struct {
		title   string
		refused []tune.Refused
	}{{"Could not be set", o.NotSet}, {"Could not be restored", o.NotRestored}} {
		if len(part.refused) == 0 {
			continue
		}
		b.WriteString(part.title + ":\n")
		for _, g := range grouped(part.refused, func(r tune.Refused) string { return r.Name + "\x00" + r.Wanted + "\x00" + r.Reason }) {
			b.WriteString(Printable(fmt.Sprintf("  %s to %s: %s (%s)", g[0].Name, g[0].Wanted, g[0].Reason, filesWords(len(g), g[0].Path))) + "\n")
		}
	}
	return write(w, b.String())
}

// grouped returns neighbours with the same key together.
func grouped[T any](all []T, key func(T) string) [][]T {
	var groups [][]T
	for n, item := range all {
		if n > 0 && key(all[n-1]) == key(item) {
			groups[len(groups)-1] = append(groups[len(groups)-1], item)
		} else {
			groups = append(groups, []T{item})
		}
	}
	return groups
}

// WriteNoise writes how noisy the machine is.
func WriteNoise(w io.Writer, d Diagnosis, v View) error {
	n := d.Noise
	if d.NotMeasured != "" || n == nil {
		return write(w, "\nNoise: not measured: "+Printable(d.NotMeasured)+"\n")
	}
	if err := write(w, fmt.Sprintf("\nNoise: a program was compared with itself %s, %d pairs in %s:\n\n",
		timesWords(n.Comparisons), n.Pairs, Duration(n.Elapsed))); err != nil {
		return err
	}
	t := NewTable(Column{Heading: "metric"}, Column{Heading: "spread", Right: true}, Column{Heading: "session offset", Right: true},
		Column{Heading: "side offset", Right: true}, Column{Heading: "would have seen", Right: true}, Column{Heading: "verdicts"}, Column{Heading: "noise"})
	wrong := 0
	for _, m := range n.Metrics {
		sees := "nothing"
		if m.Sees > 0 {
			sees = "≥ " + share(m.Sees)
		}
		wrong += m.Changed
		t.Row(string(m.Name), share(m.Spread), offset(m.SessionOffset), offset(m.SideOffset), sees, kindsWords(m), labelsWords(m.Labels))
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	return write(w, disturbances(*n, wrong))
}

func timesWords(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// share formats a share with two significant digits: "1.4 %", "0.013 %".
func share(x float64) string { return strconv.FormatFloat(100*x, 'g', 2, 64) + " %" }

func offset(x *float64) string {
	if x == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f", *x)
}

func labelsWords(labels []noise.Label) string {
	texts := make([]string, len(labels))
	for i, l := range labels {
		texts[i] = string(l)
	}
	return strings.Join(texts, ", ")
}

func kindsWords(m probe.Metric) string {
	var parts []string
	for _, k := range []struct {
		n    int
		kind verdict.Kind
	}{{m.Changed, verdict.Changed}, {m.NoDifference, verdict.NoDifference}, {m.Undecided, verdict.Undecided}} {
		if k.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k.n, k.kind))
		}
	}
	return strings.Join(parts, ", ")
}

// disturbances explains the offsets, and says what disturbed the program.
func disturbances(n probe.Noise, wrong int) string {
	var b strings.Builder
	b.WriteString("\nspread: within a session; session offset, side offset: between sessions, and between the two sides of one, in\nunits of the spread; would have seen: the smallest change, median of the comparisons\n\n")
	if wrong > 0 {
		fmt.Fprintf(&b, "%s called the same program changed: do not trust this machine before it is quiet.\n", Plural(wrong, "comparison"))
	}
	if n.Disturbed == 0 {
		fmt.Fprintf(&b, "Disturbed: none of %d iterations.\n", n.Iterations)
	} else {
		var causes []string
		for _, c := range n.Causes {
			causes = append(causes, fmt.Sprintf("%s (%d)", c.Cause, c.Iterations))
		}
		fmt.Fprintf(&b, "Disturbed: %d of %d iterations (%.0f %%), by %s.\n", n.Disturbed, n.Iterations, 100*float64(n.Disturbed)/float64(n.Iterations), strings.Join(causes, ", "))
	}
	if bench.SessionDisturbed(n.Disturbed, n.Iterations) {
		b.WriteString("With that much, values enter no model of noise and support no 'no difference'; a change can still be seen, in turns.\n")
	}
	for _, q := range slices.Sorted(maps.Keys(n.NotRead)) {
		b.WriteString(Printable(fmt.Sprintf("Not read: %s: %s.", q, n.NotRead[q])) + "\n")
	}
	return b.String()
}

func filesWords(n int, first string) string {
	if n == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, n-1)
}
