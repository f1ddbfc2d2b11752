package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// graphReasons say why a graph was written.
var graphReasons = map[bench.GraphReason]string{
	bench.GraphBuild: "build", bench.GraphParent: "backfill", bench.GraphOwn: "own jobs", bench.GraphVerify: "look", bench.GraphTemplate: "template", bench.GraphRetry: "retry", bench.GraphRemeasure: "measured again", bench.GraphRetrigger: "retriggered",
}

// GraphReason says in words why a graph was written.
func GraphReason(r bench.GraphReason) string {
	if text, known := graphReasons[r]; known {
		return text
	}
	return string(r)
}

// GraphStates counts jobs by state, such as "2 running, 1 success".
func GraphStates(states map[graph.Status]int) string {
	var parts []string
	for _, s := range graph.Statuses() {
		if n := states[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// Graphs writes a list of graphs.
func Graphs(w io.Writer, list []apiclient.Graph, v View) error {
	if len(list) == 0 {
		return write(w, "There are no graphs: no request of the project has jobs that measure a suite.\n")
	}
	t := NewTable(Column{Heading: "graph"}, Column{Heading: "tag"}, Column{Heading: "reason"}, Column{Heading: "state"}, Column{Heading: "jobs", Right: true},
		Column{Heading: "of them", Flex: true}, Column{Heading: "follows"}, Column{Heading: "written"})
	for _, g := range list {
		states := GraphStates(g.States)
		if g.Replaced > 0 {
			states += fmt.Sprintf("; %d replaced", g.Replaced)
		}
		t.Row(g.ID, g.Tag, graphMaker(g), string(g.State), strconv.Itoa(g.Jobs), states, g.Follows, Ago(v.Now, g.CreatedAt))
	}
	return t.Write(w, v.Width)
}

// graphMaker says why a graph was written, or names the template that made it.
func graphMaker(g apiclient.Graph) string {
	text := GraphReason(g.Reason)
	if g.Template != "" && g.Reason == bench.GraphTemplate {
		text += " " + g.Template
	}
	if g.Customised {
		text += ", customised"
	}
	return text
}

// StartedGraph writes which graph runs, or would.
func StartedGraph(w io.Writer, s apiclient.StartedGraph) error {
	text := fmt.Sprintf("a graph of %s (%.12s) would run; nothing was started\n", Plural(s.Nodes, "node"), s.GraphHash)
	if s.Request != nil {
		text = fmt.Sprintf("graph %s of %s runs; 'benchloom graph show %s' shows it\n", s.Graph, Plural(s.Nodes, "node"), s.Graph)
		if !s.Request.Created {
			text = fmt.Sprintf("graph %s was started before with this key; 'benchloom graph show %s' shows it\n", s.Graph, s.Graph)
		}
	}
	for _, words := range s.Customised {
		text += "differs from the template: " + Printable(words) + "\n"
	}
	for _, warning := range s.Warnings {
		text += "note: " + Printable(warning) + "\n"
	}
	return write(w, text)
}

// Graph writes a graph, or a set of graphs, with its nodes.
func Graph(w io.Writer, d apiclient.GraphDetail, v View) error {
	what := "graph"
	if d.ID == string(d.Request) {
		what = "graphs of request"
	}
	if err := write(w, fmt.Sprintf("%s %s (%s): %s; %s\n\n", what, d.ID, Printable(strings.TrimSpace(d.Project+" "+d.Tag)), d.State, GraphStates(d.States))); err != nil {
		return err
	}
	if err := writeTemplate(w, d.Template); err != nil {
		return err
	}
	if d.ID == string(d.Request) {
		if err := Graphs(w, d.Graphs, v); err != nil {
			return err
		}
		if err := write(w, "\n"); err != nil {
			return err
		}
	}
	needs := make(map[bench.JobKey][]string)
	for _, e := range d.Edges {
		needs[e.To] = append(needs[e.To], string(e.From)+onlyIf(e.Condition))
	}
	t := NewTable(Column{Heading: "job"}, Column{Heading: "graph"}, Column{Heading: "stage"}, Column{Heading: "state"}, Column{Heading: "does", Flex: true},
		Column{Heading: "target", Flex: true}, Column{Heading: "needs", Flex: true}, Column{Heading: "note", Flex: true})
	for _, n := range d.Nodes {
		t.Row(string(n.Job), n.Graph, string(n.Stage), string(n.State), n.Title, string(n.Target), strings.Join(needs[n.Job], ", "), NodeNote(n))
	}
	return t.Write(w, v.Width)
}

// writeTemplate writes the template call that made a graph.
func writeTemplate(w io.Writer, t *apiclient.TemplateCall) error {
	if t == nil {
		return nil
	}
	text := fmt.Sprintf("template %s of definitions %.12s", Printable(t.Name), t.Definitions)
	for _, given := range t.Given {
		text += " " + Printable(given)
	}
	if t.ClonedFrom != "" {
		text += ", a clone of " + t.ClonedFrom
	}
	for _, words := range t.Customised {
		text += "\n  differs: " + Printable(words)
	}
	return write(w, text+"\n\n")
}

// onlyIf says how an input must end, unless any end will do.
func onlyIf(c graph.Condition) string {
	if c == graph.OnAny {
		return ""
	}
	return " (" + string(c) + ")"
}

// heldWords say why a ready job is put aside.
var heldWords = map[string]string{
	"turn": "no request that waits for it has its turn", "input": "a job that it needs has not ended", "pause": "its project is paused", "cap": "its account has as much under way as its limit allows",
}

// Passed says how often a node that was asked for again has succeeded.
func Passed(n apiclient.GraphNode) string {
	return fmt.Sprintf("passed %d of %s", n.Passed, Plural(n.Times(), "time"))
}

// NodeNote explains the state of a node; empty if there is nothing to say.
func NodeNote(n apiclient.GraphNode) string {
	var notes []string
	if n.Input {
		notes = append(notes, "of an earlier graph")
	}
	if n.Reason != nil {
		notes = append(notes, n.Reason.Words)
	}
	if n.Held != "" {
		notes = append(notes, heldWords[n.Held])
	}
	if n.Replaces != "" {
		notes = append(notes, "in place of "+string(n.Replaces))
	}
	if n.Replaced {
		notes = append(notes, "counts no longer")
	}
	if n.Reruns > 0 {
		notes = append(notes, Passed(n))
	}
	if n.Outdated {
		notes = append(notes, "what it needs has succeeded again since")
	}
	if n.Question != "" && n.State == graph.Ready {
		notes = append(notes, "asks: "+n.Question)
	}
	if n.Message != "" {
		notes = append(notes, n.Message)
	}
	return strings.Join(notes, "; ")
}
