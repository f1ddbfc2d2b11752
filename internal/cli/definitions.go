package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/definitions"
	"github.com/benchloom/benchloom/internal/graph"
)

// DefinitionsReport says whether a definitions folder is valid, and shows the graphs of its templates.
type DefinitionsReport struct {
	// Hash is the folder's content hash; empty if it has problems.
	Hash     string                `json:"hash,omitempty"`
	Problems []definitions.Problem `json:"problems,omitempty"`
	// Graphs lists the graphs of each template on each branch.
	Graphs   []definitions.Tried  `json:"graphs,omitempty"`
	Branches []definitions.Branch `json:"branches,omitempty"`
}

// Definitions writes a report on a definitions folder.
func Definitions(w io.Writer, r DefinitionsReport, v View) error {
	var b strings.Builder
	for _, p := range r.Problems {
		b.WriteString(Printable(p.String()) + "\n")
	}
	if len(r.Problems) == 0 {
		fmt.Fprintf(&b, "the definitions are valid; hash %s\n", r.Hash)
	}
	for _, one := range r.Branches {
		if one.Definitions != "" {
			fmt.Fprintf(&b, "branch %s uses the definitions of %s\n", Printable(one.Name), Printable(one.Definitions))
		}
	}
	if err := write(w, b.String()); err != nil || len(r.Graphs) == 0 {
		return err
	}
	t := NewTable(Column{Heading: "template"}, Column{Heading: "branch"}, Column{Heading: "nodes", Right: true}, Column{Heading: "edges", Right: true}, Column{Heading: "graph"})
	for _, g := range r.Graphs {
		t.Row(g.Template, g.Branch, strconv.Itoa(g.Nodes), strconv.Itoa(g.Edges), g.Hash[:12])
	}
	return t.Write(w, v.Width)
}

// Rendered writes the graph of a template as a table, layer by layer.
func Rendered(w io.Writer, e *definitions.Expansion, v View) error {
	t := NewTable(Column{Heading: "layer", Right: true}, Column{Heading: "node"}, Column{Heading: "kind"}, Column{Heading: "needs", Flex: true})
	for i, layer := range e.Graph.Layers() {
		for _, name := range layer {
			n, _ := e.Graph.Node(name)
			t.Row(strconv.Itoa(i+1), name, string(n.Job.Kind()), needsWords(e.Graph.Inputs(name)))
		}
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	rules := "may be customised"
	if !e.Rule.Customise {
		rules = "may not be customised"
	}
	if e.Rule.Protected {
		rules = "is protected"
	}
	return write(w, fmt.Sprintf("%s, %s; branch %s %s\ngraph %s of definitions %s\n",
		Plural(e.Graph.Len(), "node"), Plural(len(e.Graph.Edges()), "edge"), Printable(e.Branch), rules, e.Hash, e.Definitions))
}

// Templates writes the graph templates of a project.
func Templates(w io.Writer, list apiclient.GraphTemplates, v View) error {
	t := NewTable(Column{Heading: "template"}, Column{Heading: "parameters", Flex: true}, Column{Heading: "branches"}, Column{Heading: "description", Flex: true})
	for _, one := range list.Templates {
		parameters := make([]string, len(one.Parameters))
		for i, p := range one.Parameters {
			if parameters[i] = p.Name; p.Default != nil {
				parameters[i] += fmt.Sprintf("=%v", p.Default)
			}
		}
		branches := "all"
		if len(one.Branches) > 0 {
			branches = strings.Join(one.Branches, ", ")
		}
		t.Row(one.Name, strings.Join(parameters, ", "), branches, one.Description)
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	return write(w, Printable(fmt.Sprintf("definitions %s, pushed by %s %s%s", list.Definitions.Hash, list.Definitions.PushedBy, Ago(v.Now, list.Definitions.PushedAt), from(list.Definitions.Source)))+"\n")
}

func from(source string) string {
	if source == "" {
		return ""
	}
	return " from " + source
}

// DefinitionsList writes the definitions given to a project.
func DefinitionsList(w io.Writer, list apiclient.DefinitionsList, v View) error {
	if len(list.Definitions) == 0 {
		return write(w, "The project was given no definitions.\n")
	}
	t := NewTable(Column{Heading: "definitions"}, Column{Heading: "pushed"}, Column{Heading: "by"}, Column{Heading: "source", Flex: true}, Column{Heading: ""})
	for _, d := range list.Definitions {
		now := ""
		if d.Current {
			now = "current"
		}
		t.Row(d.Hash, d.PushedAt.In(v.Now.Location()).Format("2006-01-02 15:04:05"), d.PushedBy, d.Source, now)
	}
	return t.Write(w, v.Width)
}

// needsWords lists the inputs of a node; if there are many, the first few.
func needsWords(edges []graph.Edge) string {
	const shown = 4
	var words []string
	for _, e := range edges[:min(shown, len(edges))] {
		word := e.From
		if e.Condition != graph.OnSuccess {
			word += " (" + string(e.Condition) + ")"
		}
		words = append(words, word)
	}
	if more := len(edges) - shown; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}

// dotShapes draws each kind of node in a shape of its own.
var dotShapes = map[graph.Kind]string{
	graph.KindBenchmark: "box", graph.KindBuild: "component", graph.KindCommand: "box3d", graph.KindProfile: "tab",
	graph.KindCompare: "diamond", graph.KindNotify: "note", graph.KindSignOff: "octagon",
}

// RenderedDot writes the graph of a template in the language of Graphviz.
func RenderedDot(w io.Writer, e *definitions.Expansion) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=LR;\n", e.Template)
	for _, n := range e.Graph.Nodes() {
		fmt.Fprintf(&b, "  %q [shape=%s, tooltip=%q];\n", n.Name, dotShapes[n.Job.Kind()], n.Job.Kind())
	}
	for _, edge := range e.Graph.Edges() {
		style := ""
		if edge.Condition != graph.OnSuccess {
			style = fmt.Sprintf(" [style=dashed, label=%q]", edge.Condition)
		}
		fmt.Fprintf(&b, "  %q -> %q%s;\n", edge.From, edge.To, style)
	}
	b.WriteString("}\n")
	return write(w, b.String())
}

// DefinitionsDifference writes what changes between two definitions folders, in words.
func DefinitionsDifference(w io.Writer, d definitions.Difference, _ View) error {
	var b strings.Builder
	switch {
	case d.From == d.To:
		b.WriteString("no difference: both have the hash " + d.From + "\n")
	case d.Empty():
		b.WriteString("the files differ, and make the same graphs\n")
	}
	for _, words := range d.Branches {
		b.WriteString(Printable(words) + "\n")
	}
	for _, g := range d.Graphs {
		name := Printable(g.Template) + " on " + Printable(g.Branch)
		switch g.Only {
		case "from":
			b.WriteString(name + " is gone\n")
		case "to":
			b.WriteString(name + " is new\n")
		default:
			b.WriteString(name + ":\n")
		}
		for _, words := range g.Words {
			b.WriteString("  " + Printable(words) + "\n")
		}
	}
	return write(w, b.String())
}
