package cli

import (
	"io"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Operation writes an operator's action, which text describes, with its result.
func Operation(w io.Writer, o apiclient.Operation, text string) error {
	line := text
	switch {
	case o.Repeated:
		line = "no change: the key was already used at " + o.At.UTC().Format(time.RFC3339) + ", when: " + line
	case o.DryRun:
		line = "dry run, nothing was changed: " + line
	case !o.Changed:
		line += "; nothing to do"
	}
	if o.Message != "" {
		line += ": " + o.Message
	}
	if p := o.Preview; p != nil {
		line += ", about " + Duration(time.Duration(p.MachineSeconds*float64(time.Second))) + " of machine time as it took last"
		if p.Unknown > 0 {
			line += ", without " + Plural(p.Unknown, "job") + " that never succeeded"
		}
	}
	line = Printable(line) + "\n"
	if o.Action == "results invalidate" && len(o.Requests) > 0 {
		line += "To measure them again:\n"
		for _, id := range o.Requests {
			line += "  benchloom retrigger " + string(id) + " --lacking\n"
		}
	}
	return write(w, line)
}

// PreviewedJobs writes the jobs that would run again.
func PreviewedJobs(w io.Writer, p apiclient.Preview, v View) error {
	t := NewTable(Column{Heading: "in place of"}, Column{Heading: "kind"}, Column{Heading: "target"}, Column{Heading: "class", Right: true},
		Column{Heading: "test cases", Right: true}, Column{Heading: "took last", Right: true})
	for _, j := range p.Jobs {
		took := "–"
		if j.Seconds > 0 {
			took = Duration(time.Duration(j.Seconds * float64(time.Second)))
		}
		t.Row(string(j.Job), string(j.Kind), string(j.Target), strconv.Itoa(int(j.SizeClass)), strconv.Itoa(j.TestCases), took)
	}
	return t.Write(w, v.Width)
}

// Audit writes the actions of operators.
func Audit(w io.Writer, list apiclient.AuditList, v View) error {
	if len(list.Operations) == 0 {
		return write(w, "No actions are recorded.\n")
	}
	t := NewTable(Column{Heading: "entry", Right: true}, Column{Heading: "when"}, Column{Heading: "who"}, Column{Heading: "action"},
		Column{Heading: "project"}, Column{Heading: "subject"}, Column{Heading: "result", Flex: true}, Column{Heading: "reason", Flex: true})
	for _, o := range list.Operations {
		message := o.Message
		if !o.Changed {
			message = "no change: " + message
		}
		t.Row(strconv.FormatInt(o.ID, 10), o.At.In(v.Now.Location()).Format("2006-01-02 15:04:05"), o.Who, o.Action, o.Project, o.Subject, message, o.Reason)
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	if list.Next != "" {
		return write(w, "More entries: --cursor "+list.Next+"\n")
	}
	return nil
}
