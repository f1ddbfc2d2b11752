package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// View holds the present time, whose zone is used for all times, and the terminal's
// width in characters; 0 means unlimited.
type View struct {
	Now   time.Time
	Width int
}

// Standing describes a request's status and outcome.
func Standing(r apiclient.Request) string {
	if r.Outcome != "" {
		return words(r.Status) + ", " + words(r.Outcome)
	}
	return words(r.Status)
}

// Subject describes what a request benchmarks: project and tag, or the command line.
func Subject(r apiclient.Request) string {
	if r.Command != nil {
		return r.Project + ": " + strings.Join(r.Command.Argv, " ")
	}
	switch {
	case r.Template != nil:
		return r.Project + ": graph " + r.Template.Name
	case r.Batch > 0:
		return r.Project + ": " + Plural(r.Batch, "command")
	case r.PR != 0 && r.Tag == "":
		return fmt.Sprintf("%s #%d", r.Project, r.PR)
	case r.PR != 0:
		return fmt.Sprintf("%s %s (#%d)", r.Project, r.Tag, r.PR)
	case r.Tag == "":
		return r.Project + " " + string(r.Type) + " build"
	}
	return r.Project + " " + r.Tag
}

// Requests writes a list of requests.
func Requests(w io.Writer, list []apiclient.Request, v View) error {
	if len(list) == 0 {
		return write(w, "There are no requests; submit one with 'benchloom submit PROJECT TAG'.\n")
	}
	t := NewTable(Column{Heading: "request"}, Column{Heading: "project"}, Column{Heading: "tag"}, Column{Heading: "type"},
		Column{Heading: "status"}, Column{Heading: "created"}, Column{Heading: "submitter"}, Column{Heading: "message", Flex: true})
	for _, r := range list {
		message := r.Message
		switch {
		case message != "":
		case r.Command != nil:
			message = strings.Join(r.Command.Argv, " ")
		case r.Batch > 0:
			message = Plural(r.Batch, "command")
		case r.Template != nil:
			message = "graph of template " + r.Template.Name
		}
		t.Row(string(r.ID), r.Project, r.Tag, string(r.Type), Standing(r), Ago(v.Now, r.CreatedAt), r.Submitter, message)
	}
	return t.Write(w, v.Width)
}

// graphOf says what graph a request runs; empty if none.
func graphOf(t *apiclient.TemplateCall) string {
	if t == nil {
		return ""
	}
	text := "template " + t.Name
	if len(t.Customised) > 0 {
		text += ", customised"
	}
	return text
}

// Request writes a request with its jobs, runs and errors.
func Request(w io.Writer, d apiclient.RequestDetail, v View) error {
	command := ""
	switch {
	case d.Command != nil:
		command = strings.Join(d.Command.Argv, " ")
	case d.Batch > 0:
		command = Plural(d.Batch, "command")
	}
	took := ""
	if d.EndedAt != nil {
		took = Duration(d.EndedAt.Sub(d.CreatedAt)) + " since its creation"
	}
	if err := write(w, "request "+string(d.ID)+"\n"); err != nil {
		return err
	}
	date := ""
	if d.CommitDate != nil {
		date = d.CommitDate.UTC().Format(time.DateOnly)
	}
	err := Fields(w,
		[2]string{"project", d.Project}, [2]string{"tag", d.Tag}, [2]string{"graph", graphOf(d.Template)}, [2]string{"in turns with", d.Versus}, [2]string{"command", command}, [2]string{"type", string(d.Type)},
		[2]string{"parent", strings.TrimSpace(d.Parent + " " + parenthesised(d.ParentNote))}, [2]string{"waits for", d.WaitsFor},
		[2]string{"date", date}, [2]string{"selection", Selection(d.Selection)},
		[2]string{"status", Standing(d.Request)}, [2]string{"message", d.Message}, [2]string{"progress", Progress(d.Progress)},
		[2]string{"expected", foreseen(v.Now, d)}, [2]string{"estimate", d.EstimateBasis},
		[2]string{"baseline", cmp.Or(d.Baseline, baselineOf(d))}, [2]string{"verdicts", d.Verdicts}, [2]string{"looks", verification(d.Verification)}, [2]string{"submitter", d.Submitter}, [2]string{"created", moment(v.Now, &d.CreatedAt)},
		[2]string{"admitted", moment(v.Now, d.AdmittedAt)}, [2]string{"jobs done", moment(v.Now, d.JobsDoneAt)},
		[2]string{"completed", moment(v.Now, d.EndedAt)}, [2]string{"took", took}, [2]string{"workflow", d.WorkflowID})
	if err != nil {
		return err
	}
	if len(d.Jobs) > 0 {
		title := "jobs"
		if d.JobsTotal > len(d.Jobs) {
			title = fmt.Sprintf("%d of %d jobs: running, failed and latest ones; 'benchloom request jobs %s' lists all", len(d.Jobs), d.JobsTotal, d.ID)
		}
		if err := section(w, title, jobs(d.Jobs, v), v); err != nil {
			return err
		}
	}
	if len(d.Runs) > 0 {
		if err := section(w, "runs", runs(d.Runs, v), v); err != nil {
			return err
		}
	}
	return runErrors(w, d.Errors)
}

// baselineOf returns the artifact that an open request is being compared with.
func baselineOf(d apiclient.RequestDetail) string {
	if d.Verification == nil {
		return ""
	}
	return d.Verification.Baseline
}

// verification describes how a comparison is decided; empty if nothing is measured in turns.
func verification(v *apiclient.Verification) string {
	if v == nil || v.Looks == 0 && !v.Provisional {
		return ""
	}
	time := func(s float64) string { return Duration(seconds(s)) }
	text := fmt.Sprintf("%d in turns with %s, %s", v.Looks, v.Baseline, time(v.SpentSeconds))
	if v.BudgetSeconds > 0 {
		text += " of at most " + time(v.BudgetSeconds)
	}
	text += " of machine time"
	if v.OwnSeconds > 0 {
		text += ", beside " + time(v.OwnSeconds) + " for its own jobs"
	}
	if v.Provisional {
		text += "; the verdicts are provisional"
	}
	return text
}

func section(w io.Writer, title string, t *Table, v View) error {
	if err := write(w, "\n"+title+"\n"); err != nil {
		return err
	}
	return t.Write(w, v.Width)
}

// Selection describes the selected part of a suite; empty for everything.
func Selection(s bench.Selection) string {
	var parts []string
	add := func(name string, values []string) {
		if len(values) > 0 {
			parts = append(parts, name+" "+strings.Join(values, ", "))
		}
	}
	if s.Set != "" {
		add("set", []string{s.Set})
	}
	add("benchmarks", s.Benchmarks)
	add("profiles", s.Profiles)
	add("scenarios", s.Scenarios)
	add("backends", s.Backends)
	targets := make([]string, len(s.Targets))
	for i, t := range s.Targets {
		targets[i] = string(t)
	}
	add("targets", targets)
	if s.Iterations > 0 {
		parts = append(parts, Plural(s.Iterations, "iteration"))
	}
	return strings.Join(parts, "; ")
}

// Progress describes a request's progress; empty before it has jobs.
func Progress(p apiclient.Progress) string {
	if p.Jobs == 0 {
		return ""
	}
	text := fmt.Sprintf("%d/%d jobs, %d/%d test cases", p.JobsDone, p.Jobs, p.TestCasesDone, p.TestCases)
	if p.JobsFailed > 0 {
		text += fmt.Sprintf(", %d failed", p.JobsFailed)
	}
	if p.EstimateSeconds != nil {
		text += ", about " + Duration(time.Duration(*p.EstimateSeconds*float64(time.Second))) + " left"
	}
	return text
}

// Jobs writes a list of jobs.
func Jobs(w io.Writer, list []apiclient.Job, v View) error {
	if len(list) == 0 {
		return write(w, "There are no matching jobs.\n")
	}
	return jobs(list, v).Write(w, v.Width)
}

func jobs(list []apiclient.Job, v View) *Table {
	t := NewTable(Column{Heading: "job"}, Column{Heading: "name"}, Column{Heading: "status"}, Column{Heading: "kind"}, Column{Heading: "tag"}, Column{Heading: "target"},
		Column{Heading: "backend"}, Column{Heading: "profile"}, Column{Heading: "class", Right: true}, Column{Heading: "pool"},
		Column{Heading: "done", Right: true}, Column{Heading: "took", Right: true}, Column{Heading: "message", Flex: true})
	for _, j := range list {
		t.Row(string(j.Key), j.Name, words(j.Status), string(j.Kind), j.Tag, string(j.Target), j.Backend, j.Profile, strconv.Itoa(int(j.SizeClass)), j.Pool,
			fmt.Sprintf("%d/%d", j.Done, j.Results()), took(v.Now, j.StartedAt, j.EndedAt), cmp.Or(j.Message, waitsText(j)))
	}
	return t
}

func waitsText(j apiclient.Job) string {
	if j.Waits == "" {
		return ""
	}
	return "waits: " + j.Waits
}

// movedText describes where a job moved from, and when; empty if it has not moved.
func movedText(j apiclient.Job, v View) string {
	if j.MovedFrom == "" {
		return ""
	}
	return "from " + j.MovedFrom + ", " + moment(v.Now, j.MovedAt)
}

// took formats the time from start to end, or until now; empty before the start.
func took(now time.Time, start, end *time.Time) string {
	switch {
	case start == nil || start.IsZero():
		return ""
	case end == nil || end.IsZero():
		return Duration(now.Sub(*start))
	}
	return Duration(end.Sub(*start))
}

// runReason says why a run exists, and who asked for it if a person did.
func runReason(reason bench.RunReason, askedBy string) string {
	if askedBy == "" {
		return string(reason)
	}
	return string(reason) + " by " + askedBy
}

func runs(list []apiclient.Run, v View) *Table {
	t := NewTable(Column{Heading: "run"}, Column{Heading: "number", Right: true}, Column{Heading: "reason"}, Column{Heading: "outcome"},
		Column{Heading: "collector"}, Column{Heading: "class", Right: true}, Column{Heading: "started"}, Column{Heading: "took", Right: true},
		Column{Heading: "message", Flex: true})
	for _, r := range list {
		message := r.Message
		if r.Outcome == bench.RunRunning && message == "" {
			message = runProgress(r.Progress)
		}
		t.Row(string(r.ID), strconv.Itoa(r.Number), runReason(r.Reason, r.AskedBy), outcome(r.Outcome), r.Collector, strconv.Itoa(int(r.SizeClass)),
			Ago(v.Now, r.StartedAt), took(v.Now, &r.StartedAt, r.FinishedAt), message)
	}
	return t
}

func outcome(o bench.RunOutcome) string {
	if o == bench.RunRunning {
		return "running"
	}
	return words(o)
}

// runProgress describes a run's present step, such as "measuring gin build full gc, 3/5".
func runProgress(p apiclient.RunProgress) string {
	text := p.Phase
	if p.TestCase != "" {
		text += " " + p.TestCase
	}
	if p.Iteration > 0 {
		text += fmt.Sprintf(", %d/%d", p.Iteration, p.Iterations)
	}
	return text
}

func runErrors(w io.Writer, list []apiclient.RunError) error {
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nerrors\n")
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y apiclient.RunError) int { return cmp.Compare(x.Run, y.Run) })
	for _, e := range list {
		about := "whole job"
		if e.TestCase != nil {
			about = e.TestCase.String()
		}
		fmt.Fprintf(&b, "  %s: %s (%s): %s\n%s", e.Run, Printable(about), words(e.Kind), Printable(e.Message), printableLines(e.OutputTail, "    | "))
	}
	return write(w, b.String())
}

// Job writes a job with its test cases and runs.
func Job(w io.Writer, d apiclient.JobDetail, v View) error {
	if err := write(w, "job "+string(d.Key)+"\n"); err != nil {
		return err
	}
	err := Fields(w,
		[2]string{"project", d.Project}, [2]string{"name", d.Name}, [2]string{"command", strings.Join(d.Command, " ")}, [2]string{"tag", d.Tag}, [2]string{"in turns with", d.Versus}, [2]string{"kind", string(d.Kind)}, [2]string{"target", string(d.Target)},
		[2]string{"backend", d.Backend}, [2]string{"profile", d.Profile}, [2]string{"size class", strconv.Itoa(int(d.SizeClass))},
		[2]string{"pool", d.Pool}, [2]string{"task queue", d.TaskQueue}, [2]string{"queue", d.Queue}, [2]string{"needs", Constraints(d.Constraints)}, [2]string{"status", words(d.Status)}, [2]string{"message", d.Message},
		[2]string{"waits", d.Waits}, [2]string{"moved", movedText(d.Job, v)}, [2]string{"done", fmt.Sprintf("%d/%d test cases", d.Done, d.Results())}, [2]string{"created", moment(v.Now, &d.CreatedAt)},
		[2]string{"started", moment(v.Now, d.StartedAt)}, [2]string{"completed", moment(v.Now, d.EndedAt)}, [2]string{"workflow", d.WorkflowID})
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\ntest cases\n")
	for _, tc := range d.TestCases {
		b.WriteString("  " + Printable(tc.String()) + "\n")
	}
	if err := write(w, b.String()); err != nil {
		return err
	}
	if len(d.Runs) == 0 {
		return nil
	}
	if err := section(w, "runs", runs(d.Runs, v), v); err != nil {
		return err
	}
	for _, r := range d.Runs {
		if r.OutputTail != "" {
			if err := write(w, "\nend of the output of run "+string(r.ID)+"\n"+printableLines(r.OutputTail, "  | ")); err != nil {
				return err
			}
		}
	}
	return nil
}

func parenthesised(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}
