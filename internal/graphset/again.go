package graphset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// Downstream says what becomes of the jobs that need, directly or not, jobs that run again.
type Downstream string

const (
	// DownstreamNone leaves them as they are.
	DownstreamNone Downstream = "none"
	// DownstreamPortion repeats those that the selector matches.
	DownstreamPortion Downstream = "portion"
	// DownstreamAll repeats all of them.
	DownstreamAll Downstream = "all"
)

// Answer is a [Downstream] with what it means, for people who choose one.
type Answer struct {
	Value Downstream
	Name  string
}

// Answers lists all that can be said of jobs downstream.
func Answers() []Answer {
	return []Answer{{DownstreamNone, "keep their results"}, {DownstreamAll, "run again too"}, {DownstreamPortion, "run again if they are like this"}}
}

// ParseDownstream reads the name of a [Downstream]; empty: nothing was said.
func ParseDownstream(s string) (Downstream, error) {
	switch d := Downstream(s); d {
	case "", DownstreamNone, DownstreamPortion, DownstreamAll:
		return d, nil
	}
	return "", fmt.Errorf("%w: downstream is %q; use none, portion or all", bench.ErrInvalid, s)
}

// Selector matches jobs by what they are. An empty field matches every job; of a field with
// several values, one has to match.
type Selector struct {
	Kinds   []graph.Kind   `json:"kind,omitempty"`
	Stages  []bench.Stage  `json:"stage,omitempty"`
	States  []graph.Status `json:"state,omitempty"`
	Targets []bench.Target `json:"target,omitempty"`
	// Benchmarks matches jobs that measure one of them, and narrows those to their test
	// cases of these benchmarks.
	Benchmarks []string `json:"benchmark,omitempty"`
}

// ParseSelector reads a selector as people write it: "kind=benchmark,target=…,benchmark=…".
// A field that is given again adds a value.
func ParseSelector(s string) (Selector, error) {
	var out Selector
	if strings.TrimSpace(s) == "" {
		return out, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if value == "" {
			return Selector{}, fmt.Errorf("%w: selector %q: %q is no FIELD=VALUE; write for example kind=benchmark,state=failure", bench.ErrInvalid, s, part)
		}
		var err error
		switch name {
		case "kind":
			out.Kinds, err = parsed(out.Kinds, value, graph.ParseKind)
		case "stage":
			out.Stages, err = parsed(out.Stages, value, parseStage)
		case "state":
			out.States, err = parsed(out.States, value, parseStatus)
		case "target":
			out.Targets = append(out.Targets, bench.Target(value))
		case "benchmark":
			out.Benchmarks = append(out.Benchmarks, value)
		default:
			err = fmt.Errorf("%w: jobs have no field %q; use kind, stage, state, target or benchmark", bench.ErrInvalid, name)
		}
		if err != nil {
			return Selector{}, fmt.Errorf("selector %q: %w", s, err)
		}
	}
	return out, nil
}

func parsed[T any](list []T, value string, parse func(string) (T, error)) ([]T, error) {
	v, err := parse(value)
	return append(list, v), err
}

func parseStage(s string) (bench.Stage, error) {
	switch stage := bench.Stage(s); stage {
	case bench.StageBuild, bench.StageParent, bench.StageOwn:
		return stage, nil
	case bench.StageVerify:
	}
	return "", fmt.Errorf("%w: no stage %q can run again; use build, parent or own", bench.ErrInvalid, s)
}

func parseStatus(s string) (graph.Status, error) {
	ended := slices.DeleteFunc(graph.Statuses(), func(status graph.Status) bool { return !status.Ended() })
	if status := graph.Status(s); slices.Contains(ended, status) {
		return status, nil
	}
	return "", fmt.Errorf("%w: no job in state %q can run again; use %s", bench.ErrInvalid, s, strings.Join(words(ended), ", "))
}

// String returns the selector as [ParseSelector] reads it.
func (s Selector) String() string {
	var parts []string
	add := func(name string, values []string) {
		for _, v := range values {
			parts = append(parts, name+"="+v)
		}
	}
	add("kind", words(s.Kinds))
	add("stage", words(s.Stages))
	add("state", words(s.States))
	add("target", words(s.Targets))
	add("benchmark", s.Benchmarks)
	return strings.Join(parts, ",")
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// Empty reports whether the selector matches every job.
func (s Selector) Empty() bool { return s.String() == "" }

// matches reports whether a job with these benchmarks matches.
func (s Selector) matches(n Node, state graph.Status, benchmarks []string) bool {
	return among(s.Kinds, n.NodeKind()) && among(s.Stages, n.Stage) && among(s.States, state) && among(s.Targets, n.Target) &&
		(len(s.Benchmarks) == 0 || len(both(s.Benchmarks, benchmarks)) > 0)
}

func among[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// both returns what is in both lists, in the order of the first.
func both(a, b []string) []string {
	return keep(a, func(v string) bool { return slices.Contains(b, v) })
}

// Choice says which jobs of a set run again.
type Choice struct {
	// Number narrows the choice to the jobs of one graph of the set, or those now in their
	// places; 0: the whole set.
	Number int
	// Jobs names the chosen jobs. Without it, the jobs that Select matches are chosen; for a
	// whole set, Select must then not be empty.
	Jobs []bench.JobKey
	// Select chooses jobs or, beside named jobs, the portion of those that need them.
	Select Selector
	// Downstream must be given if any job that has ended needs a chosen one.
	Downstream Downstream
	// Rerun asks for the same jobs again, as a whole, instead of new ones in their places.
	Rerun bool
}

// Whole reports whether all own jobs of a request are chosen, or those of certain
// benchmarks.
func (c Choice) Whole() bool {
	s := c.Select
	return c.Number == 0 && len(c.Jobs) == 0 && !s.Empty() && len(s.Kinds)+len(s.States)+len(s.Targets) == 0 &&
		!slices.ContainsFunc(s.Stages, func(stage bench.Stage) bool { return stage != bench.StageOwn })
}

// Again is a job that runs again.
type Again struct {
	Job bench.JobKey
	// Benchmarks narrows its test cases; empty: all.
	Benchmarks []string
}

// Repetition lists what a [Choice] means.
type Repetition struct {
	// Chosen are the jobs that were named or selected, Dependents those that need them and
	// run again with them. Both are in the order of the set.
	Chosen, Dependents []Again
	// Left counts jobs that need those above and keep their results, Open those that have
	// not ended and therefore run with the new inputs anyway.
	Left, Open int
}

// Errors of choices that callers may word in another way.
type (
	// ChoiceError reports a job that was named but cannot run again.
	ChoiceError struct {
		Job bench.JobKey
		// Why completes "job … ".
		Why string
		// TooLate reports that it was skipped, so that only a new job can have its place.
		TooLate bool
	}
	// NothingChosenError reports a selector that matches no job that could run again.
	NothingChosenError struct{ Select Selector }
	// DownstreamError reports that jobs need the chosen ones, and that the choice does not
	// say what becomes of them.
	DownstreamError struct{ Dependents int }
)

func (e *ChoiceError) Error() string { return fmt.Sprintf("job %s %s", e.Job, e.Why) }

func (e *NothingChosenError) Error() string {
	if e.Select.Empty() {
		return "no job of it can run again: none has ended"
	}
	return fmt.Sprintf("no job of it that has ended matches %s", e.Select)
}

func (e *DownstreamError) Error() string {
	if e.Dependents == 1 {
		return "one job needs what runs again; say whether it runs again too: downstream none, portion or all"
	}
	return fmt.Sprintf("%d jobs need what runs again; say whether they run again too: downstream none, portion or all", e.Dependents)
}

// Repeat returns what a choice repeats: the jobs now in the places of the chosen ones, and
// the jobs downstream as the choice says. benchmarks lists the benchmarks of each job; it is
// needed if the choice selects benchmarks.
//
// Successful jobs of the build stage are stored and not repeated. Neither are looks:
// whatever runs again is compared anew. Jobs downstream of one that is narrowed to
// benchmarks are narrowed to the same. A rerun narrows no job, and cannot bring back
// skipped ones.
//
// The errors are [ChoiceError], [NothingChosenError], [DownstreamError], and one that wraps
// [bench.ErrInvalid] for a choice that means nothing.
func (s Set) Repeat(c Choice, benchmarks map[bench.JobKey][]string, now time.Time) (Repetition, error) {
	switch {
	case len(c.Jobs) == 0 && c.Select.Empty() && c.Number == 0:
		return Repetition{}, fmt.Errorf("%w: nothing says which jobs run again; name jobs, select them, or name one graph of the set", bench.ErrInvalid)
	case c.Downstream == DownstreamPortion && (len(c.Jobs) == 0 || c.Select.Empty()):
		return Repetition{}, fmt.Errorf("%w: a portion needs the jobs whose dependents it selects, and a selector", bench.ErrInvalid)
	case c.Downstream != DownstreamPortion && len(c.Jobs) > 0 && !c.Select.Empty():
		return Repetition{}, fmt.Errorf("%w: jobs are named and selected; beside named ones, a selector chooses the portion downstream: use downstream portion", bench.ErrInvalid)
	}
	p := s.places(now)
	p.rerun = c.Rerun
	chosen, err := p.choose(s, c, benchmarks)
	if err != nil {
		return Repetition{}, err
	}
	var out Repetition
	repeated := make(map[bench.JobKey]Again, len(chosen))
	for _, a := range chosen {
		repeated[a.Job] = a
	}
	var dependents []Again
	for _, a := range p.downstream(chosen, benchmarks) {
		n := p.nodes[a.Job]
		wanted := c.Downstream == DownstreamAll || c.Downstream == DownstreamPortion && c.Select.matches(n, p.states[a.Job].Status, benchmarks[a.Job])
		switch {
		case !p.states[a.Job].Status.Ended():
			out.Open++
		case wanted && p.tooLate(n):
			return Repetition{}, p.refusal(n)
		case wanted && c.Rerun && p.whyNot(n) != "":
			out.Left++ // a build, which is stored
		case wanted:
			if c.Downstream == DownstreamPortion && len(c.Select.Benchmarks) > 0 {
				a.Benchmarks = both(c.Select.Benchmarks, benchmarks[a.Job])
			}
			dependents = append(dependents, a)
		default:
			out.Left++
		}
	}
	if c.Downstream == "" && out.Left > 0 {
		return Repetition{}, &DownstreamError{Dependents: out.Left}
	}
	if out.Chosen, out.Dependents = p.sorted(chosen), p.sorted(dependents); c.Rerun {
		out.Chosen, out.Dependents = whole(out.Chosen), whole(out.Dependents)
	}
	return out, nil
}

// whole returns the jobs with all of their test cases.
func whole(list []Again) []Again {
	for i := range list {
		list[i].Benchmarks = nil
	}
	return list
}

// places are the jobs of a set that count by now.
type places struct {
	nodes  map[bench.JobKey]Node
	states map[bench.JobKey]graph.State
	order  map[bench.JobKey]int
	// next maps jobs that were replaced to those in their places.
	next map[bench.JobKey]bench.JobKey
	// needed maps jobs to those that need them.
	needed map[bench.JobKey][]bench.JobKey
	// rerun reports that the jobs themselves run again.
	rerun bool
}

func (s Set) places(now time.Time) places {
	p := places{
		nodes: make(map[bench.JobKey]Node, len(s.Nodes)), states: s.States(now), order: make(map[bench.JobKey]int, len(s.Nodes)),
		next: make(map[bench.JobKey]bench.JobKey), needed: make(map[bench.JobKey][]bench.JobKey, len(s.Nodes)),
	}
	for _, n := range s.Nodes {
		if n.Input {
			continue
		}
		p.nodes[n.Job], p.order[n.Job] = n, len(p.order)
		if n.Replaces != "" {
			p.next[n.Replaces] = n.Job
		}
	}
	for _, e := range s.Edges {
		from, to := p.latest(e.From), p.latest(e.To)
		if from != to && !slices.Contains(p.needed[from], to) {
			p.needed[from] = append(p.needed[from], to)
		}
	}
	return p
}

// latest returns the job that now has the place of a job.
func (p places) latest(job bench.JobKey) bench.JobKey {
	for range len(p.next) {
		next, replaced := p.next[job]
		if !replaced {
			break
		}
		job = next
	}
	return job
}

func (p places) sorted(list []Again) []Again {
	slices.SortFunc(list, func(a, b Again) int { return cmp.Compare(p.order[a.Job], p.order[b.Job]) })
	return list
}

// choose returns the jobs that a choice names or selects.
func (p places) choose(s Set, c Choice, benchmarks map[bench.JobKey][]string) ([]Again, error) {
	if len(c.Jobs) > 0 {
		return p.named(s, c)
	}
	var out []Again
	seen := make(map[bench.JobKey]bool)
	for _, n := range s.Nodes {
		if n.Input || c.Number > 0 && n.Number != c.Number {
			continue
		}
		job := p.latest(n.Job)
		n, state := p.nodes[job], p.states[job].Status
		if seen[job] || p.whyNot(n) != "" || !c.Select.matches(n, state, benchmarks[job]) {
			continue
		}
		seen[job] = true
		out = append(out, Again{Job: job, Benchmarks: both(c.Select.Benchmarks, benchmarks[job])})
	}
	if len(out) == 0 {
		return nil, &NothingChosenError{Select: c.Select}
	}
	return out, nil
}

func (p places) named(s Set, c Choice) ([]Again, error) {
	var out []Again
	for _, job := range c.Jobs {
		if slices.ContainsFunc(out, func(a Again) bool { return a.Job == job }) {
			continue
		}
		n, known := p.nodes[job]
		switch latest := p.latest(job); {
		case !known:
			return nil, &ChoiceError{Job: job, Why: "does not belong to it"}
		case latest != job:
			return nil, &ChoiceError{Job: job, Why: "was replaced by " + string(latest) + "; name that one"}
		case c.Number > 0 && !p.of(s, job, c.Number):
			return nil, &ChoiceError{Job: job, Why: fmt.Sprintf("belongs to graph %d of the set, not to graph %d", n.Number, c.Number)}
		}
		if p.whyNot(n) != "" {
			return nil, p.refusal(n)
		}
		out = append(out, Again{Job: job})
	}
	return out, nil
}

// of reports whether a job has the place of a job of that graph.
func (p places) of(s Set, job bench.JobKey, number int) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Number == number && !n.Input && p.latest(n.Job) == job })
}

// tooLate reports whether a node was skipped, so that it cannot run again as itself.
func (p places) tooLate(n Node) bool { return p.rerun && p.states[n.Job].Status == graph.Skipped }

func (p places) refusal(n Node) error {
	return &ChoiceError{Job: n.Job, Why: p.whyNot(n), TooLate: p.tooLate(n)}
}

// whyNot says why a job cannot run again; empty: it can.
func (p places) whyNot(n Node) string {
	state := p.states[n.Job].Status
	switch {
	case n.Stage == bench.StageVerify:
		return "has measured a suspicion in turns, which is not repeated: what runs again is compared anew; name the job of its test cases"
	case n.Replaced:
		return "was dropped from the request; 'benchloom retrigger REQUEST --lacking' plans what is lacking"
	case !state.Ended():
		return fmt.Sprintf("has not ended, it is %s; wait for its end, or cancel its request first", state)
	case p.tooLate(n):
		return "was skipped, because " + p.states[n.Job].Reason.String() + "; a rerun comes too late, only a new job can have its place"
	case n.NodeKind() == graph.KindBuild && state == graph.Success:
		return "has built what is stored, and is not built again; name the jobs that measure it"
	}
	return ""
}

// downstream returns the jobs that need the given ones, directly or not, without these. A
// job of which nothing depends on what is narrowed is left out.
func (p places) downstream(from []Again, benchmarks map[bench.JobKey][]string) []Again {
	given, found := make(map[bench.JobKey]bool), make(map[bench.JobKey]Again)
	for _, a := range from {
		given[a.Job] = true
	}
	for at := slices.Clone(from); len(at) > 0; at = at[1:] {
		for _, job := range p.needed[at[0].Job] {
			n, known := p.nodes[job]
			if given[job] || !known || n.Stage == bench.StageVerify || n.Replaced {
				continue
			}
			next := Again{Job: job}
			if len(at[0].Benchmarks) > 0 {
				if next.Benchmarks = both(at[0].Benchmarks, benchmarks[job]); len(next.Benchmarks) == 0 {
					continue
				}
			}
			before, is := found[job]
			if is {
				next = before.with(next)
			}
			if !is || len(next.Benchmarks) != len(before.Benchmarks) {
				found[job] = next
				at = append(at, next)
			}
		}
	}
	out := make([]Again, 0, len(found))
	for _, a := range found {
		out = append(out, a)
	}
	return p.sorted(out)
}

// with returns the job with the benchmarks of both.
func (a Again) with(b Again) Again {
	if len(a.Benchmarks) == 0 || len(b.Benchmarks) == 0 {
		return Again{Job: a.Job}
	}
	for _, name := range b.Benchmarks {
		if !slices.Contains(a.Benchmarks, name) {
			a.Benchmarks = append(slices.Clip(a.Benchmarks), name)
		}
	}
	return a
}
