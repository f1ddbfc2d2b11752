package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/tune"
)

// Diagnosis describes what disturbs measurements on this machine.
type Diagnosis struct {
	tune.Report
	// Tuned is the tuning in force, nil if there is none.
	Tuned *tune.Tuned `json:"tuned,omitempty"`
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

// explanations lists reasons and remedies of what is not good.
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

// WriteTuning writes what was changed and what was not. Settings of one name that
// changed alike share a line.
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

func filesWords(n int, first string) string {
	if n == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, n-1)
}
