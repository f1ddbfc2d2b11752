package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/diagnose"
)

// RequestExplanation writes what a request waits for, and explains its next job.
func RequestExplanation(w io.Writer, e apiclient.RequestExplanation, v View) error {
	r := e.Request
	if err := write(w, "request "+string(r.ID)+": "+Printable(Subject(r))+"\n"); err != nil {
		return err
	}
	place := ""
	if p := e.Place; p != nil {
		place = fmt.Sprintf("%d of project %s: %s", p.Position, r.Project, p.Reason)
		if p.Blocked != "" {
			place += "; waits for " + p.Blocked
		}
	}
	if err := Fields(w, [2]string{"status", Standing(r)}, [2]string{"message", r.Message}, [2]string{"position", place}, [2]string{"progress", Progress(e.Progress)}); err != nil {
		return err
	}
	if err := requestFindings(w, e.Findings, v); err != nil {
		return err
	}
	if len(e.Open) > 0 {
		t := NewTable(Column{Heading: "open job"}, Column{Heading: "status"}, Column{Heading: "waits for", Flex: true})
		for _, j := range e.Open {
			t.Row(string(j.Key), words(j.Status), j.Waits)
		}
		if err := write(w, "\n"); err != nil {
			return err
		}
		if err := t.Write(w, v.Width); err != nil {
			return err
		}
	}
	if e.Next == nil {
		return nil
	}
	if err := write(w, "\n"); err != nil {
		return err
	}
	return JobExplanation(w, *e.Next, v)
}

func requestFindings(w io.Writer, findings []apiclient.Finding, v View) error {
	var b strings.Builder
	if len(findings) > 0 {
		b.WriteString("\nwaits for\n")
	}
	for _, f := range findings {
		b.WriteString("  " + Printable(f.What))
		if f.Since != nil {
			b.WriteString(", since " + Ago(v.Now, *f.Since))
		}
		if f.Remedy != "" {
			b.WriteString("\n    " + Printable(f.Remedy))
		}
		b.WriteString("\n")
	}
	return write(w, b.String())
}

// JobExplanation writes what a job waits for, its size class and its runs.
func JobExplanation(w io.Writer, e diagnose.JobExplanation, v View) error {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s of %s: %s\n  %s\n", e.Job, e.Project, words(e.Status), Printable(e.Summary))
	for _, also := range e.Waits[min(1, len(e.Waits)):] {
		b.WriteString("  also: " + Printable(also) + "\n")
	}
	if needs := Constraints(e.Needs); needs != "" {
		b.WriteString("  needs " + Printable(needs) + "\n")
	}
	for _, r := range e.Requests {
		b.WriteString("  request " + string(r) + " waits for it\n")
	}
	if err := write(w, b.String()); err != nil {
		return err
	}
	for _, part := range []func(io.Writer, diagnose.JobExplanation, View) error{queuePosition, sizeReasons, verdicts, runCosts} {
		if err := part(w, e, v); err != nil {
			return err
		}
	}
	return nil
}

func queuePosition(w io.Writer, e diagnose.JobExplanation, _ View) error {
	q := e.Queue
	if q == nil {
		return nil
	}
	class := fmt.Sprintf("%s, level %d", q.Class, q.Level)
	if q.Share != nil {
		class = fmt.Sprintf("%s, weight %s, %s of the share of weighted queues with work here", q.Class, strconv.FormatFloat(q.Weight, 'g', -1, 64), Percent(q.Share))
	}
	position := ""
	if q.Position > 0 {
		position = fmt.Sprintf("%d of %d waiting to be handed out", q.Position, q.Waiting)
	}
	if err := write(w, "\nqueue "+Printable(q.Name)+" at "+Printable(e.TaskQueue)+"\n"); err != nil {
		return err
	}
	return Fields(w, [2]string{"class", class}, [2]string{"position", position},
		[2]string{"handed out", fmt.Sprintf("%d waiting for an idle collector, %d running", q.HandedOut, q.Running)},
		[2]string{"go first", strings.Join(q.Earlier, ", ")}, [2]string{"shares with", strings.Join(q.Beside, ", ")})
}

func sizeReasons(w io.Writer, e diagnose.JobExplanation, v View) error {
	z := e.Size
	timeout, probe := "", ""
	if z.TimeoutSeconds > 0 {
		timeout = Duration(seconds(z.TimeoutSeconds)) + " for the whole job"
	}
	if z.Probe {
		probe = "its results are marked and not compared"
	}
	if err := write(w, fmt.Sprintf("\nsize class %d\n", z.Class)); err != nil {
		return err
	}
	if err := Fields(w, [2]string{"why", z.Why}, [2]string{"shape", z.Shape}, [2]string{"selected", moment(v.Now, z.SelectedAt)},
		[2]string{"timeout", timeout}, [2]string{"probe", probe}); err != nil || len(z.Choices) == 0 {
		return err
	}
	return section(w, "present knowledge of the classes", choices(z.Choices), v)
}

func verdicts(w io.Writer, e diagnose.JobExplanation, v View) error {
	if len(e.Collectors) == 0 {
		if e.Queue != nil {
			return write(w, "\nNo collector is registered.\n")
		}
		return nil
	}
	t := NewTable(Column{Heading: "collector"}, Column{Heading: "state"}, Column{Heading: "can run it"}, Column{Heading: "why it does not take the job now", Flex: true})
	for _, c := range e.Collectors {
		t.Row(c.Name, string(c.State), yes(c.Able), strings.Join(c.WhyNot, "; "))
	}
	return section(w, "collectors", t, v)
}

func runCosts(w io.Writer, e diagnose.JobExplanation, v View) error {
	if len(e.Runs) == 0 {
		return nil
	}
	t := NewTable(Column{Heading: "run"}, Column{Heading: "number", Right: true}, Column{Heading: "reason"}, Column{Heading: "class", Right: true},
		Column{Heading: "collector"}, Column{Heading: "outcome"}, Column{Heading: "took", Right: true}, Column{Heading: "core-seconds", Right: true},
		Column{Heading: "timeout", Right: true}, Column{Heading: "peak memory", Right: true}, Column{Heading: "probe"}, Column{Heading: "message", Flex: true})
	for _, r := range e.Runs {
		probe := ""
		if r.Probe {
			probe = "yes"
		}
		t.Row(string(r.ID), strconv.Itoa(r.Number), string(r.Reason), strconv.Itoa(int(r.SizeClass)), r.Collector, outcome(r.Outcome),
			Duration(seconds(r.Seconds)), coreSeconds(r.CoreSeconds), known(r.TimeoutSeconds), memoryText(r.PeakMemory), probe, r.Message)
	}
	if err := section(w, "runs", t, v); err != nil {
		return err
	}
	return write(w, fmt.Sprintf("\n%s core-seconds in all, %s of them wasted\n", coreSeconds(e.Cost.CoreSeconds), coreSeconds(e.Cost.Wasted)))
}

func coreSeconds(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) }
