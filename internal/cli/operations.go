package cli

import (
	"io"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Operation writes what an operator did: text says it, the operation what came of
// it.
func Operation(w io.Writer, o apiclient.Operation, text string) error {
	line := text
	switch {
	case o.Repeated:
		line = "nothing was done: the key was used at " + o.At.UTC().Format(time.RFC3339) + " already; then: " + line
	case o.DryRun:
		line = "nothing was done: this is what would be: " + line
	case !o.Changed:
		line += "; nothing was to be done"
	}
	if o.Message != "" {
		line += ": " + o.Message
	}
	line = Printable(line) + "\n"
	if o.Action == "results invalidate" && len(o.Requests) > 0 {
		line += "To measure them again:\n"
		for _, id := range o.Requests {
			line += "  benchloom request retry " + string(id) + "\n"
		}
	}
	return write(w, line)
}

// Audit writes what operators did.
func Audit(w io.Writer, list apiclient.AuditList, v View) error {
	if len(list.Operations) == 0 {
		return write(w, "No operator did anything.\n")
	}
	t := NewTable(Column{Heading: "entry", Right: true}, Column{Heading: "when"}, Column{Heading: "who"}, Column{Heading: "did"},
		Column{Heading: "project"}, Column{Heading: "to"}, Column{Heading: "what came of it", Flex: true}, Column{Heading: "why", Flex: true})
	for _, o := range list.Operations {
		message := o.Message
		if !o.Changed {
			message = "nothing: " + message
		}
		t.Row(strconv.FormatInt(o.ID, 10), o.At.In(v.Now.Location()).Format("2006-01-02 15:04:05"), o.Who, o.Action, o.Project, o.Subject, message, o.Reason)
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	if list.Next != "" {
		return write(w, "There is more: --cursor "+list.Next+"\n")
	}
	return nil
}
