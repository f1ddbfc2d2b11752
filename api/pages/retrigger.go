package pages

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graphset"
)

// retriggerAPI backs the retrigger page.
type retriggerAPI interface {
	Retrigger(ctx context.Context, ref string, r apiclient.Retrigger, preview bool) (apiclient.RequestOperation, error)
	Rerun(ctx context.Context, ref string, r apiclient.Retrigger, preview bool) (apiclient.RequestOperation, error)
}

// Parameters of the retrigger page and its form.
const (
	jobParameter        = "job"
	downstreamParameter = "downstream"
	asParameter         = "as"
	timesParameter      = "times"
)

// Ways to run jobs again: by new jobs, or as themselves.
const (
	asNew   = "retrigger"
	asRerun = "rerun"
)

// runAgain runs jobs again in one of these ways.
func (v *visit) runAgain(as, ref string, in apiclient.Retrigger, preview bool) (apiclient.RequestOperation, error) {
	if as == asRerun {
		return v.api.Rerun(v.Context(), ref, in, preview)
	}
	return v.api.Retrigger(v.Context(), ref, in, preview)
}

// selectorFields are the parameters that choose jobs by what they are.
var selectorFields = []string{"kind", "stage", "state", "target", "benchmark"}

// retriggerView is the content of the page that chooses jobs of a graph to run again.
type retriggerView struct {
	apiclient.GraphDetail
	// Named are the jobs that the address names.
	Named []apiclient.GraphNode
	// Choices are the properties by which jobs are chosen, besides the benchmark.
	Choices   []choice
	Benchmark string
	// Downstream are the answers to what becomes of dependent jobs; Chosen is the given answer, or
	// none.
	Downstream []graphset.Answer
	Chosen     string
	// As is the way in which the jobs run again, [asNew] or [asRerun], and Times how often.
	As    string
	Times int
	// Asked reports that something was chosen, Preview what that means: the first of so many
	// Jobs. Nil: nothing can run again, and Why says why.
	Asked   bool
	Preview *apiclient.Preview
	Jobs    int
	Message string
	Why     string
	Act     act
}

// choice is a property of jobs with the values that occur.
type choice struct {
	Name, Label string
	Values      []string
	Chosen      string
}

func (p *Pages) retrigger(v *visit) (*view, error) {
	in := apiclient.Retrigger{Downstream: v.get(downstreamParameter)}
	if _, err := graphset.ParseDownstream(in.Downstream); err != nil {
		return nil, badParameter(downstreamParameter, in.Downstream, "it may be none, portion, all")
	}
	as := cmp.Or(v.get(asParameter), asNew)
	if err := checkAs(as); err != nil {
		return nil, err
	}
	times, err := readTimes(v.get(timesParameter))
	if err != nil {
		return nil, err
	}
	in.Times = times
	detail, err := v.api.Graph(v.Context(), v.PathValue("graph"))
	if err != nil {
		return nil, err
	}
	query := v.URL.Query()
	for _, job := range query[jobParameter] {
		in.Jobs = append(in.Jobs, bench.JobKey(job))
	}
	var selected []string
	for _, name := range selectorFields {
		for _, value := range query[name] {
			if value != "" {
				selected = append(selected, name+"="+value)
			}
		}
	}
	in.Select = strings.Join(selected, ",")
	out := retriggerView{
		GraphDetail: detail, Choices: choicesOf(detail, v), Benchmark: v.get("benchmark"), Downstream: graphset.Answers(), Chosen: cmp.Or(in.Downstream, string(graphset.DownstreamNone)),
		Asked: len(query) > 0, As: as, Times: times,
	}
	for _, n := range detail.Nodes {
		if slices.Contains(in.Jobs, n.Job) && !n.Input {
			out.Named = append(out.Named, n)
		}
	}
	if len(in.Jobs) == 0 {
		out.Downstream = slices.DeleteFunc(out.Downstream, func(a graphset.Answer) bool { return a.Value == graphset.DownstreamPortion })
	}
	command, title := retriggerCommand(as, detail.ID, in), map[string]string{asNew: "Retrigger", asRerun: "Rerun"}[as]
	if out.Act, err = p.offer(v, rightToWrite, detail.Project, act{
		Name: as, Title: title, About: "Each starts after those of the request that it needs.", Address: "/graphs/" + segments(detail.ID) + "/retrigger",
		Fields: append(retriggerFields(in), field{asParameter, as}), Command: quoted(append(command, "--reason", "WHY")...),
	}); err != nil {
		return nil, err
	}
	if out.Asked && out.Act.Allowed { // the preview needs the same right
		if err := out.ask(v, in); err != nil {
			return nil, err
		}
	}
	return &view{
		template: "retrigger", Title: title + " jobs of " + detail.ID,
		Crumbs:  []link{projectLink(detail.Project), {"/requests/" + segments(string(detail.Request)), "Request " + string(detail.Request)}, {"/graphs/" + segments(detail.ID), "Graph"}},
		Command: quoted(append(command, "--preview")...), Content: out,
	}, nil
}

// checkAs refuses an unknown way to run jobs again.
func checkAs(as string) error {
	if as != asNew && as != asRerun {
		return badParameter(asParameter, as, "it may be "+joined([]string{asNew, asRerun}))
	}
	return nil
}

// readTimes reads how often jobs run; empty: once.
func readTimes(text string) (int, error) {
	if text == "" {
		return 1, nil
	}
	times, err := strconv.Atoi(text)
	if err != nil || times < 1 || times > maxTimes {
		return 0, badParameter(timesParameter, text, fmt.Sprintf("it may be 1 to %d", maxTimes))
	}
	return times, nil
}

// maxTimes is the API's bound.
const maxTimes = 100

// ask previews what was chosen.
func (r *retriggerView) ask(v *visit, in apiclient.Retrigger) error {
	would, err := v.runAgain(r.As, r.ID, in, true)
	problem := problemIf(err, http.StatusConflict, http.StatusUnprocessableEntity)
	switch {
	case problem != nil:
		r.Why, r.Act.Allowed, r.Act.WhyNot = problem.Detail, false, "Nothing runs until the choice means something."
	case err != nil:
		return err
	default:
		r.Preview, r.Message, r.Jobs = would.Operation.Preview, would.Operation.Message, would.Operation.Jobs
	}
	return nil
}

// choicesOf lists the properties by which jobs that can run again can be chosen.
func choicesOf(d apiclient.GraphDetail, v *visit) []choice {
	all := []choice{{Name: "kind", Label: "Kind"}, {Name: "stage", Label: "Stage"}, {Name: "state", Label: "State"}, {Name: "target", Label: "Target"}}
	for _, n := range d.Nodes {
		if !repeatable(n) {
			continue
		}
		for i, value := range []string{string(n.Kind), string(n.Stage), string(n.State), string(n.Target)} {
			if !slices.Contains(all[i].Values, value) {
				all[i].Values = append(all[i].Values, value)
			}
		}
	}
	for i := range all {
		all[i].Chosen = v.get(all[i].Name)
		if all[i].Chosen != "" && !slices.Contains(all[i].Values, all[i].Chosen) {
			all[i].Values = append(all[i].Values, all[i].Chosen)
		}
	}
	return all
}

// retriggerFields returns the hidden fields of the form that does what was previewed.
func retriggerFields(in apiclient.Retrigger) []field {
	var fields []field
	for _, job := range in.Jobs {
		fields = append(fields, field{jobParameter, string(job)})
	}
	return append(fields, field{"select", in.Select}, field{downstreamParameter, in.Downstream}, field{timesParameter, strconv.Itoa(in.Times)})
}

func retriggerCommand(as, ref string, in apiclient.Retrigger) []string {
	command := []string{"benchloom", as, ref}
	for _, job := range in.Jobs {
		command = append(command, string(job))
	}
	if in.Select != "" {
		command = append(command, "--select", in.Select)
	}
	if in.Downstream != "" {
		command = append(command, "--downstream", in.Downstream)
	}
	if in.Times > 1 {
		command = append(command, "--times", strconv.Itoa(in.Times))
	}
	return command
}

func (p *Pages) graphActions() []action {
	return []action{{"/graphs/{graph}/sign-off", func(v *visit) (string, error) {
		in := apiclient.SignOff{Act: v.sent(), Node: v.PostFormValue("node"), Agree: v.PostFormValue(answerParameter) == answerYes}
		if given := v.PostFormValue(answerParameter); given != answerYes && given != answerNo {
			return "", badParameter(answerParameter, given, "it may be "+joined([]string{answerYes, answerNo}))
		}
		_, err := v.api.SignOff(v.Context(), v.PathValue("graph"), in)
		return "/graphs/" + segments(v.PathValue("graph")), err
	}}, {"/graphs/{graph}/retrigger", func(v *visit) (string, error) {
		in := apiclient.Retrigger{Act: v.sent(), Select: v.PostFormValue("select"), Downstream: v.PostFormValue(downstreamParameter)}
		var err error
		if in.Times, err = readTimes(v.PostFormValue(timesParameter)); err != nil {
			return "", err
		}
		for _, job := range v.PostForm[jobParameter] {
			in.Jobs = append(in.Jobs, bench.JobKey(job))
		}
		as := cmp.Or(v.PostFormValue(asParameter), asNew)
		if err := checkAs(as); err != nil {
			return "", err
		}
		done, err := v.runAgain(as, v.PathValue("graph"), in, false)
		return "/graphs/" + cmp.Or(done.Operation.Graph, string(done.ID)), err
	}}}
}
