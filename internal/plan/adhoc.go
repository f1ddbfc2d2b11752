// Package plan turns commands that somebody wants run into jobs: where each runs,
// in whose queue it waits, and by which key it is known.
//
// It is pure: the request, the project's configuration and what is registered come
// in as data. It must not know how requests arrive, how rows are written, or
// Temporal.
package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/placement"
)

// Benchmark names the one test case of a command.
const Benchmark = bench.CommandBenchmark

// DefaultPriority is Temporal's middle level.
const DefaultPriority = 3

// Line is one command: the only one of a request, or one of a batch.
type Line struct {
	// Place within its batch, from 1; 0: it is the request's only one. Two equal
	// lines are two jobs.
	Place int
	// Name as its submitter calls it; may be empty.
	Name    string
	Command bench.Command
	Target  bench.Target
	// Class pins it to a size class; 0: the request's, else the project's, else the
	// one that placement chooses.
	Class bench.SizeClass
	// Shape is shared by commands that are alike; empty: by those with the same command
	// line.
	Shape string
	// Queue is the one that is named; empty: the request's, else the submitter's.
	Queue string
	// Constraints narrow where it may run; nil: the request's.
	Constraints *bench.Constraints
}

// Planner plans the jobs of one request. It remembers where it has placed what, as
// many lines ask for the same.
type Planner struct {
	request bench.Request
	config  bench.ProjectConfig
	fleet   Fleet
	placed  map[string]place
	// warnings say of what was placed that it has to wait.
	warnings []string
}

type place struct {
	placement.Place
	constraints bench.Constraints
	err         error
}

// NewPlanner makes a planner for a request that has its ID.
func NewPlanner(r bench.Request, config bench.ProjectConfig, fleet Fleet) *Planner {
	return &Planner{request: r, config: config, fleet: fleet, placed: make(map[string]place)}
}

// Only is the line of a request for a single command. The target is the request's,
// else the project's first, else that of any collector.
func (p *Planner) Only() Line {
	line := Line{Command: *p.request.Command}
	switch targets := p.request.Selection.Targets; {
	case len(targets) > 0:
		line.Target = targets[0]
	case len(p.config.Targets) > 0:
		line.Target = p.config.Targets[0]
	case len(p.fleet) > 0:
		line.Target = p.fleet[0].Pool.Target
	}
	return line
}

// Job is the job of a line. The error is a [placement.Unplaceable] when no
// registered collector can ever run it. The time of its request is left to the
// record.
func (p *Planner) Job(line Line) (bench.PlannedJob, error) {
	if line.Class == 0 {
		line.Class = p.request.SizeClass
	}
	if line.Class == 0 {
		line.Class = p.config.Size.Pin()
	}
	if line.Constraints == nil {
		line.Constraints = p.request.Constraints
	}
	at := p.place(line)
	if at.err != nil {
		return bench.PlannedJob{}, at.err
	}
	command, shape := line.Command, bench.Shape("")
	if line.Class == 0 {
		parts := bench.CommandShape(line.Target, command.Argv, command.Env, command.Iterations)
		parts.Key = line.Shape
		shape = parts.Shape()
	}
	job, err := bench.NewCommandJob(p.request.Project, command, line.Target, line.Place, line.Name)
	if err != nil {
		return bench.PlannedJob{}, err
	}
	job.Turn = bench.Turn{
		Queue: p.queue(line), Weight: 1, Priority: DefaultPriority,
		Submitter: p.request.Submitter, Branch: p.request.Branch, RequestCreated: p.request.CreatedAt,
	}
	job.Shape = string(shape)
	j := bench.PlannedJob{Job: job}
	j.PutAt(at.Place.Place)
	if at.Affine {
		j.AffinityFor = p.config.Affinity()
	}
	if !at.constraints.IsZero() {
		j.Constraints = &at.constraints
	}
	j.Key = bench.JobIdentity{
		Request: p.request.ID, Project: j.Project, Target: j.Target, Kind: j.Kind, TestCases: j.TestCases, SizeClass: j.SizeClass, Line: line.Place,
	}.Key()
	return j, nil
}

// place chooses once for all lines that ask for the same.
func (p *Planner) place(line Line) place {
	own, err := json.Marshal(line.Constraints)
	if err != nil {
		return place{err: fmt.Errorf("reading the constraints: %w", err)}
	}
	key := fmt.Sprintf("%s %d %s", line.Target, line.Class, own)
	at, known := p.placed[key]
	if known {
		return at
	}
	if at.constraints, at.err = p.config.Narrowed(line.Constraints); at.err == nil {
		needs := Needs{Target: line.Target, Command: true, Constraints: &at.constraints}.Requirements().On(line.Class)
		if at.Place, at.err = placement.Choose(p.fleet, needs); at.err == nil {
			p.warn(placement.Warning(p.fleet, needs, at.Place))
		}
	}
	p.placed[key] = at
	return at
}

// maxWarnings bounds how many warnings a request has.
const maxWarnings = 10

func (p *Planner) warn(text string) {
	if text != "" && len(p.warnings) < maxWarnings && !slices.Contains(p.warnings, text) {
		p.warnings = append(p.warnings, text)
	}
}

// Warnings say of the jobs so far why some have to wait.
func (p *Planner) Warnings() []string { return p.warnings }

// queue is in whose turn the job runs: the queue that was named, else the
// submitter's.
func (p *Planner) queue(line Line) string {
	for _, named := range []string{line.Queue, p.request.Queue} {
		if named != "" {
			return named
		}
	}
	return fairshare.OfUser(p.request.Submitter)
}
