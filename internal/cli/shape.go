package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/diagnose"
)

// Shapes writes job shapes with learned sizes.
func Shapes(w io.Writer, l apiclient.ShapeList, v View) error {
	if len(l.Shapes) == 0 {
		return write(w, "No job sizes have been learned yet.\n")
	}
	t := NewTable(Column{Heading: "shape"}, Column{Heading: "project"}, Column{Heading: "runs", Right: true}, Column{Heading: "next"},
		Column{Heading: "learned"}, Column{Heading: "what", Flex: true})
	for _, s := range l.Shapes {
		t.Row(s.Shape, s.Project, strconv.Itoa(s.Runs), s.Next, Ago(v.Now, s.UpdatedAt), s.About)
	}
	return t.Write(w, v.Width)
}

// Shape writes what was learned about a job shape.
func Shape(w io.Writer, e diagnose.ShapeExplanation, v View) error {
	if err := write(w, "shape "+Printable(e.Shape)+" of "+e.Project+"\n"); err != nil {
		return err
	}
	next := e.Next.Why
	if e.Next.Class > 0 {
		next = fmt.Sprintf("class %d, for at most %s: %s", e.Next.Class, Duration(seconds(e.Next.TimeoutSeconds)), e.Next.Why)
		if e.Next.Probe {
			next = fmt.Sprintf("probe on class %d, for at most %s: %s", e.Next.Class, Duration(seconds(e.Next.TimeoutSeconds)), e.Next.Why)
		}
	}
	c := e.Counts
	err := Fields(w,
		[2]string{"what", e.About}, [2]string{"unread", e.Unread}, [2]string{"next", next},
		[2]string{"runs", strconv.Itoa(e.Runs)}, [2]string{"learned", moment(v.Now, &e.UpdatedAt)},
		[2]string{"failed", failedOnLargest(e.FailedOnLargest, v)},
		[2]string{"core-seconds", fmt.Sprintf("%s recently, %s of them for probes", coreSeconds(e.CoreSeconds), coreSeconds(e.ProbeCoreSeconds))},
		[2]string{"probes", fmt.Sprintf("%d made, %d too small; not made: %d while another was in progress, %d over budget", c.Probes, c.TooSmall, c.InFlight, c.Budget)},
		[2]string{"forgotten", forgotten(c.Forgotten)}, [2]string{"in progress", outstanding(e.Outstanding, v)})
	if err != nil {
		return err
	}
	if err := section(w, "classes", choices(classChoices(e.Classes)), v); err != nil {
		return err
	}
	t := NewTable(Column{Heading: "ended"}, Column{Heading: "class", Right: true}, Column{Heading: "outcome"}, Column{Heading: "took", Right: true},
		Column{Heading: "peak memory", Right: true}, Column{Heading: "CPU time", Right: true}, Column{Heading: "job"}, Column{Heading: "meaning", Flex: true})
	rows := 0
	for _, c := range e.Classes {
		for _, s := range c.Samples {
			t.Row(Ago(v.Now, s.At), strconv.Itoa(int(c.Class)), words(s.Outcome), Duration(seconds(s.Seconds)), memoryText(s.PeakMemory),
				known(s.CPUSeconds), string(s.Job), s.Meaning)
			rows++
		}
	}
	if rows == 0 {
		return write(w, "\nThere are no samples.\n")
	}
	return section(w, "samples", t, v)
}

func failedOnLargest(at *time.Time, v View) string {
	if at == nil {
		return ""
	}
	return "on the largest class, " + moment(v.Now, at)
}

func forgotten(n int) string {
	if n == 0 {
		return ""
	}
	return Plural(n, "time") + ", as the jobs had changed"
}

func outstanding(probes []diagnose.OutstandingProbe, v View) string {
	texts := make([]string, len(probes))
	for i, p := range probes {
		until := "expired"
		if p.ExpiresAt.After(v.Now) {
			until = "expires " + away(v.Now, &p.ExpiresAt)
		}
		texts[i] = fmt.Sprintf("probe %s on class %d, %s", p.Attempt, p.Class, until)
	}
	return strings.Join(texts, "; ")
}

func classChoices(classes []diagnose.ClassHistory) []diagnose.SizeChoice {
	out := make([]diagnose.SizeChoice, len(classes))
	for i, c := range classes {
		out[i] = c.SizeChoice
	}
	return out
}

// choices returns a table of the knowledge about each class.
func choices(list []diagnose.SizeChoice) *Table {
	t := NewTable(Column{Heading: "class", Right: true}, Column{Heading: "probability", Right: true}, Column{Heading: "acceptable", Right: true},
		Column{Heading: "timeout", Right: true}, Column{Heading: "median", Right: true}, Column{Heading: "succeeded", Right: true},
		Column{Heading: "too small", Right: true}, Column{Heading: "objective", Right: true}, Column{Heading: "verdict", Flex: true})
	for _, c := range list {
		objective := ""
		if c.Objective > 0 {
			objective = fmt.Sprintf("%.4g", c.Objective)
		}
		t.Row(strconv.Itoa(int(c.Class)), Percent(&c.Probability), known(c.AcceptableSeconds), known(c.TimeoutSeconds), known(c.MedianSeconds),
			strconv.Itoa(c.Succeeded), strconv.Itoa(c.TooSmall), objective, c.Verdict)
	}
	return t
}

// known formats a duration in seconds; empty for 0.
func known(s float64) string {
	if s == 0 {
		return ""
	}
	return Duration(seconds(s))
}

func memoryText(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%d MB", bytes>>20)
}
