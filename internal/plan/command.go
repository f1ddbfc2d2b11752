package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

// Line is one command: the only one of a request, or one of a batch.
type Line struct {
	// Number within its batch, from 1; 0: it is the request's only one. Two equal
	// lines are two jobs.
	Number int
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

// Commands plans the jobs of a request for a command or for a batch of them. It remembers
// where it has placed what, as many lines ask for the same.
type Commands struct {
	facts    Facts
	placed   map[string]placed
	warnings warnings
}

type placed struct {
	site
	err error
}

// NewCommands plans the commands of a request. Of the facts the suite, and what was
// learned and measured with it, play no part.
func NewCommands(f Facts) *Commands {
	return &Commands{facts: f, placed: make(map[string]placed)}
}

// Only is the line of a request for a single command. The target is the request's,
// else the project's first, else that of any collector.
func (c *Commands) Only() Line {
	f := c.facts
	line := Line{Command: *f.Request.Command}
	switch targets := f.Request.Selection.Targets; {
	case len(targets) > 0:
		line.Target = targets[0]
	case len(f.Config.Targets) > 0:
		line.Target = f.Config.Targets[0]
	case len(f.Fleet) > 0:
		line.Target = f.Fleet[0].Pool.Target
	}
	return line
}

// Job plans the job of a line. The error is a [placement.Unplaceable] when no
// registered collector can ever run it. The time of its request is left to the
// record.
func (c *Commands) Job(line Line) (bench.PlannedJob, error) {
	line.Class = cmp.Or(line.Class, c.facts.pin())
	if line.Constraints == nil {
		line.Constraints = c.facts.Request.Constraints
	}
	at := c.place(line)
	if at.err != nil {
		return bench.PlannedJob{}, at.err
	}
	command, shape := line.Command, bench.Shape("")
	if line.Class == 0 {
		parts := bench.CommandShape(line.Target, command.Argv, command.Env, command.Iterations)
		parts.Key = line.Shape
		shape = parts.Shape()
	}
	j, err := bench.NewCommandJob(c.facts.Request.Project, command, line.Target, line.Number, line.Name)
	if err != nil {
		return bench.PlannedJob{}, err
	}
	j.Shape, j.Queue = string(shape), line.Queue
	return c.facts.job(j, at.site), nil
}

// Warnings say of the jobs so far why some have to wait.
func (c *Commands) Warnings() []string { return c.warnings }

// place chooses once for all lines that ask for the same.
func (c *Commands) place(line Line) placed {
	own, err := json.Marshal(line.Constraints)
	if err != nil {
		return placed{err: fmt.Errorf("reading the constraints: %w", err)}
	}
	key := fmt.Sprintf("%s %d %s", line.Target, line.Class, own)
	at, known := c.placed[key]
	if known {
		return at
	}
	if at.constraints, at.err = c.facts.narrowed(line.Constraints); at.err == nil {
		needs := Needs{Target: line.Target, Command: true, Constraints: &at.constraints}.Requirements().On(line.Class)
		if at.Place, at.err = placement.Choose(c.facts.Fleet, needs); at.err == nil {
			c.warnings.add(placement.Warning(c.facts.Fleet, needs, at.Place))
		}
	}
	c.placed[key] = at
	return at
}

// ErrNoCollector: a command names no target, and no collector has one.
var ErrNoCollector = errors.New("no collector is registered, so nothing can run the command; start one with 'benchloom collector'")

// CommandTarget is where a command runs: the target that was asked for, else the
// project's first, else the only one that is registered. The error is [ErrNoCollector], or
// a [bench.ErrInvalid] that lists the targets to choose from.
func (f Facts) CommandTarget(asked bench.Target) (bench.Target, error) {
	switch {
	case asked != "":
		_, err := bench.ParseTarget(string(asked))
		return asked, err
	case len(f.Config.Targets) > 0:
		return f.Config.Targets[0], nil
	}
	var registered []string
	for _, c := range f.Fleet {
		registered = append(registered, string(c.Pool.Target))
	}
	slices.Sort(registered)
	switch registered = slices.Compact(registered); len(registered) {
	case 0:
		return "", ErrNoCollector
	case 1:
		return bench.Target(registered[0]), nil
	}
	return "", fmt.Errorf("%w: the command could run on %s; name one as target", bench.ErrInvalid, strings.Join(registered, " or "))
}

// Timeouts limits how long commands of a project may take.
type Timeouts struct{ policy sizeclass.Policy }

// NewTimeouts reads the limits of a project's configuration; see [SizePolicy].
func NewTimeouts(config bench.SizePolicy) (Timeouts, error) {
	policy, err := SizePolicy(config)
	return Timeouts{policy}, err
}

// Limit gives a command the project's timeout when it asks for none, and refuses one
// that asks for more than the project allows.
func (t Timeouts) Limit(c bench.Command) (bench.Command, error) {
	timeout, err := t.policy.OriginalTimeout(time.Duration(c.TimeoutSeconds) * time.Second)
	if err != nil {
		return c, fmt.Errorf("%w: %w, the longest that the project allows for an iteration; ask for less, or raise size.maximum_timeout in its configuration", bench.ErrInvalid, err)
	}
	c.TimeoutSeconds = int(math.Ceil(timeout.Seconds()))
	return c, nil
}
