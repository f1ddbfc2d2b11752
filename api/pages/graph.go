package pages

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphdraw"
)

// graphAPI backs the graph pages.
type graphAPI interface {
	Graph(ctx context.Context, ref string) (apiclient.GraphDetail, error)
	SignOff(ctx context.Context, ref string, in apiclient.SignOff) (apiclient.Operation, error)
	retriggerAPI
}

func (p *Pages) graphPages() []page {
	return []page{
		{pattern: "/graphs/{graph}", parameters: []string{showParameter, groupParameter, pageParameter}, show: p.graph},
		{pattern: "/graphs/{graph}/retrigger", parameters: append([]string{jobParameter, downstreamParameter, asParameter, timesParameter}, selectorFields...), show: p.retrigger},
	}
}

// graphView is the content of the page of a graph, or of a set of graphs.
type graphView struct {
	apiclient.GraphDetail
	// Whole is set if the page shows the set.
	Whole   bool
	Drawing drawing
	// SignOffs wait for an answer, and so do SignOffsMore others.
	SignOffs     []waitingSignOff
	SignOffsMore int
	// Listed are the jobs on this page, out of Matching that Show and Group leave.
	Listed   []graphNode
	Matching int
	// Show and Group narrow the jobs; empty: they do not. Choices are the states that occur.
	Show, Group string
	Choices     []string
	// Next is the place at which the list continues; empty: this is its end.
	Next string
}

// waitingSignOff is a node that waits for a person, with the form for the answer.
type waitingSignOff struct {
	apiclient.GraphNode
	Act act
}

// Answers to a sign-off.
const (
	answerParameter = "answer"
	answerYes       = "agree"
	answerNo        = "refuse"
)

// graphNode is a job in the table.
type graphNode struct {
	apiclient.GraphNode
	// Needs are its inputs, of which NeedsMore are left out.
	Needs     []need
	NeedsMore int
	// Blame is the job that the reason names; nil: none.
	Blame *blame
}

// blame is a reason, with the job at fault.
type blame struct {
	need
	// Why is the text before the job's name, More counts others.
	Why  string
	More int
}

// Note returns the note on a job, without its reason.
func (n graphNode) Note() string {
	without := n.GraphNode
	without.Reason = nil
	return cli.NodeNote(without)
}

// Repeatable reports whether the job may run again.
func (n graphNode) Repeatable() bool { return repeatable(n.GraphNode) }

// Address leads to the job; empty: no collector runs it.
func (n graphNode) Address() string {
	if n.Service {
		return ""
	}
	return "/jobs/" + segments(n.Job)
}

func repeatable(n apiclient.GraphNode) bool {
	return n.State.Ended() && !n.Input && !n.Replaced && n.Stage != bench.StageVerify && (n.Kind != graph.KindBuild || n.State != graph.Success)
}

// reasonWords link a job to the job at fault.
var reasonWords = map[graph.ReasonCode]string{
	graph.Waits: "it waits for", graph.InputFailed: "a failure of", graph.InputCancelled: "somebody cancelled", graph.LimitPassed: "no success in time of",
	graph.NoSignOff: "nobody signed off",
}

// need is a job that another one needs.
type need struct {
	Job       bench.JobKey
	Title     string
	Condition graph.Condition
	// Service reports that no collector runs the job, so it has no page of its own.
	Service bool
}

// Address leads to the job, or to its place in the table.
func (n need) Address() string {
	if n.Service {
		return "#n-" + string(n.Job)
	}
	return "/jobs/" + segments(n.Job)
}

// drawing is a graph as it is drawn.
type drawing struct {
	graphdraw.Drawing
	Shown  []box
	Legend []graph.Status
}

// box is a box of a drawing.
type box struct {
	graphdraw.Box
	// Title and Line are in the box; Words says all, including what they leave out.
	Title, Line, Words string
	Status             graph.Status
	Href               string
	// Replaced reports that none of its jobs counts any longer, Input that all belong to an
	// earlier graph.
	Replaced, Input bool
}

const (
	// graphRows bounds the jobs on a page of the table, shownNeeds the listed needs of one job,
	// shownSignOffs the sign-offs.
	graphRows, shownNeeds, shownSignOffs = 200, 4, 10
	// boxText bounds the characters in a line of a box: wider letters are cut off there.
	boxText = 26
)

// graphShapes are the shapes of states, in a square of 16: many people cannot rely on colours
// alone.
var graphShapes = map[graph.Status]string{
	graph.Blocked:   "M2 2h12v12h-12z M5 5v6h6v-6z",
	graph.Ready:     "M8 1a7 7 0 1 0 .01 0z M8 4a4 4 0 1 1 -.01 0z",
	graph.Running:   "M3 1l11 7l-11 7z",
	graph.Success:   "M8 1a7 7 0 1 0 .01 0z",
	graph.Failure:   "M8 0l8 8l-8 8l-8 -8z",
	graph.Skipped:   "M1 2l6 6l-6 6z M8 2l6 6l-6 6z",
	graph.Cancelled: "M1 6h14v4h-14z",
}

// graphStyles are the colours and signs of states.
var graphStyles = map[graph.Status]style{
	graph.Blocked: {"warning", "▣"}, graph.Ready: {"waiting", "◌"}, graph.Running: styleActive, graph.Success: styleGood, graph.Failure: styleBad,
	graph.Skipped: {"quiet", "»"}, graph.Cancelled: styleQuiet,
}

func graphState(s graph.Status) template.HTML {
	return signed(graphStyles[s], string(cmp.Or(s, "none")))
}

// graph shows a graph, or all graphs of a request.
func (p *Pages) graph(v *visit) (*view, error) {
	if err := checkShown(v.get(showParameter)); err != nil {
		return nil, err
	}
	ref := v.PathValue("graph")
	id, notOne := bench.ParseGraphID(ref)
	request := ref
	if notOne == nil {
		request = string(id.Request)
	}
	if _, err := bench.ParseRequestID(request); err != nil { // project:tag
		r, err := v.api.Request(v.Context(), request)
		if err != nil {
			return nil, err
		}
		request, ref = string(r.ID), string(r.ID)
	}
	shown := &view{template: "graph", APIPath: "/api/v1/graphs/" + segments(ref), Command: "benchloom graph show " + ref}
	if err := v.live(shown, "request:"+request); err != nil {
		return nil, err
	}
	detail, err := v.api.Graph(v.Context(), ref)
	if err != nil {
		return nil, err
	}
	out := graphView{GraphDetail: detail, Whole: notOne != nil, Show: v.get(showParameter), Group: v.get(groupParameter)}
	shown.Title = "Graph " + detail.ID
	shown.Crumbs = []link{projectLink(detail.Project), {"/requests/" + segments(request), "Request " + request}}
	if out.Whole {
		shown.Title = "Graphs of request " + detail.ID
	} else {
		shown.Crumbs = append(shown.Crumbs, link{"/graphs/" + segments(request), "Graphs"})
	}
	if err := out.list(v); err != nil {
		return nil, err
	}
	out.Drawing = drawnGraph(detail, v.URL.EscapedPath())
	for _, n := range detail.Nodes {
		if n.Kind != graph.KindSignOff || n.State != graph.Ready || n.Input {
			continue
		}
		if len(out.SignOffs) == shownSignOffs {
			out.SignOffsMore++
			continue
		}
		asked, err := p.offer(v, rightToWrite, detail.Project, act{
			Name: "sign-off-" + string(n.Job), Title: "Answer", About: "What needs its success follows an answer of yes; else it stays blocked until its limit.", Address: "/graphs/" + segments(detail.ID) + "/sign-off", Fields: []field{{"node", string(n.Job)}},
			Pick: &pick{answerParameter, "Answer", []string{answerYes, answerNo}}, Command: quoted("benchloom", "graph", "sign-off", detail.ID, n.Name),
		})
		if err != nil {
			return nil, err
		}
		out.SignOffs = append(out.SignOffs, waitingSignOff{n, asked})
	}
	shown.Content = out
	return shown, nil
}

// checkShown refuses an unknown state.
func checkShown(show string) error {
	var names []string
	for _, s := range graph.Statuses() {
		names = append(names, string(s))
	}
	if show != "" && !slices.Contains(names, show) {
		return badParameter(showParameter, show, "it may be "+joined(names))
	}
	return nil
}

// list chooses the jobs in the table.
func (g *graphView) list(v *visit) error {
	for _, s := range graph.Statuses() {
		if g.States[s] > 0 || slices.ContainsFunc(g.Nodes, func(n apiclient.GraphNode) bool { return n.State == s }) {
			g.Choices = append(g.Choices, string(s))
		}
	}
	begin := 0
	if at := v.get(pageParameter); at != "" {
		var err error
		if begin, err = strconv.Atoi(at); err != nil || begin < 0 {
			return badParameter(pageParameter, at, "use the value of the link to the next page")
		}
	}
	var some []apiclient.GraphNode
	for _, n := range g.Nodes {
		if (g.Show == "" || string(n.State) == g.Show) && (g.Group == "" || boxGroup(n) == g.Group) {
			some = append(some, n)
		}
	}
	g.Matching = len(some)
	end := min(len(some), min(begin, len(some))+graphRows)
	if end < len(some) {
		g.Next = strconv.Itoa(end)
	}
	titles, services, needs := make(map[bench.JobKey]string), make(map[bench.JobKey]bool), make(map[bench.JobKey][]need)
	for _, n := range g.Nodes {
		titles[n.Job], services[n.Job] = n.Title, n.Service
	}
	for _, e := range g.Edges {
		needs[e.To] = append(needs[e.To], need{e.From, titles[e.From], e.Condition, services[e.From]})
	}
	for _, n := range some[min(begin, len(some)):end] {
		one := graphNode{GraphNode: n, Needs: needs[n.Job]}
		if len(one.Needs) > shownNeeds {
			one.Needs, one.NeedsMore = one.Needs[:shownNeeds], len(one.Needs)-shownNeeds
		}
		if n.Reason != nil {
			at := need{Job: n.Reason.Job, Title: cmp.Or(titles[n.Reason.Job], string(n.Reason.Job)), Service: services[n.Reason.Job]}
			one.Blame = &blame{at, cmp.Or(reasonWords[n.Reason.Code], string(n.Reason.Code)), n.Reason.More}
		}
		g.Listed = append(g.Listed, one)
	}
	return nil
}

// stageWords name the stages of jobs.
var stageWords = map[bench.Stage]string{
	bench.StageBuild: "Build", bench.StageParent: "Backfill", bench.StageOwn: "Own", bench.StageVerify: "Look",
}

// boxGroup names the jobs that may share a box.
func boxGroup(n apiclient.GraphNode) string {
	words := cmp.Or(stageWords[n.Stage], string(n.Stage))
	if n.Name != "" { // a template's nodes have no stages
		return strings.TrimSuffix(strings.ToUpper(string(n.Kind[:1]))+string(n.Kind[1:])+", "+string(n.Target), ", ")
	}
	if n.Kind != graph.KindBuild || n.Stage != bench.StageBuild {
		words += " " + string(n.Kind)
	}
	return words + ", " + string(n.Target)
}

// drawnGraph lays a graph out. Boxes of several jobs lead to the table below, which they narrow.
func drawnGraph(d apiclient.GraphDetail, here string) drawing {
	nodes, index := make([]graphdraw.Node, len(d.Nodes)), make(map[bench.JobKey]int, len(d.Nodes))
	states := make(map[graph.Status]bool)
	for i, n := range d.Nodes {
		nodes[i], index[n.Job] = graphdraw.Node{Group: boxGroup(n), State: string(n.State)}, i
		states[n.State] = true
	}
	edges := make([]graphdraw.Edge, 0, len(d.Edges))
	for _, e := range d.Edges {
		from, known := index[e.From]
		if to, both := index[e.To]; known && both {
			edges = append(edges, graphdraw.Edge{From: from, To: to, Kind: string(e.Condition)})
		}
	}
	out := drawing{Drawing: graphdraw.Draw(nodes, edges)}
	for _, s := range graph.Statuses() {
		if states[s] {
			out.Legend = append(out.Legend, s)
		}
	}
	for _, b := range out.Boxes {
		first := d.Nodes[b.Nodes[0]]
		one := box{Box: b, Status: graph.Status(b.State), Replaced: true, Input: true}
		for _, i := range b.Nodes {
			one.Replaced, one.Input = one.Replaced && d.Nodes[i].Replaced, one.Input && d.Nodes[i].Input
		}
		if len(b.Nodes) == 1 {
			one.Title, one.Line = first.Title, string(first.State)+", "+cmp.Or(string(first.Target), string(first.Kind))
			one.Words = fmt.Sprintf("%s on %s: %s", first.Title, first.Target, first.State)
			if first.Target == "" {
				one.Words = fmt.Sprintf("%s, %s: %s", first.Title, first.Kind, first.State)
			}
			if note := cli.NodeNote(first); note != "" {
				one.Words += "; " + note
			}
			if one.Href = "/jobs/" + segments(first.Job); first.Service {
				one.Href = "#n-" + string(first.Job)
			}
		} else {
			query := url.Values{showParameter: {b.State}}
			if one.Title = cmp.Or(b.Group, "Jobs of several kinds"); b.Group != "" {
				query.Set(groupParameter, b.Group)
			}
			one.Line = fmt.Sprintf("%s: %s", b.State, plural(len(b.Nodes), "job"))
			one.Words = one.Title + ", " + one.Line
			one.Href = here + "?" + query.Encode() + "#jobs"
		}
		one.Title, one.Line, one.Words = short(one.Title), short(one.Line), clip(one.Words)
		out.Shown = append(out.Shown, one)
	}
	return out
}

// short cuts a text to the width of a box.
func short(text string) string {
	if letters := []rune(text); len(letters) > boxText {
		return string(letters[:boxText-1]) + "…"
	}
	return text
}

// ShapeX and ShapeY are the place of the shape of a box, Right is where its text begins, and
// TextWidth the room for it, in units of the drawing.
func (b box) ShapeX() int    { return b.X + 7 }
func (b box) ShapeY() int    { return b.Y + (graphdraw.BoxHeight-16)/2 }
func (b box) Right() int     { return b.X + 30 }
func (b box) TextWidth() int { return graphdraw.BoxWidth - 36 }
