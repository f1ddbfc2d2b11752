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

// Line is one command: a request's only one, or one of a batch.
type Line struct {
	// Number in its batch, from 1; 0: the request's only command. Two equal lines are
	// two jobs.
	Number int
	// Name given by the submitter; may be empty.
	Name    string
	Command bench.Command
	Target  bench.Target
	// Class pins it to a size class; 0: the request's, else the project's, else one
	// chosen by placement.
	Class bench.SizeClass
	// Shape groups similar commands; empty: those with the same command line.
	Shape string
	// Queue names a queue; empty: the request's, else the submitter's.
	Queue string
	// Constraints on the collectors; nil: the request's.
	Constraints *bench.Constraints
}

// Commands plans the jobs of a request for a command or a batch. It caches placements,
// because many lines need the same one.
type Commands struct {
	facts    Facts
	placed   map[string]placed
	warnings warnings
}

type placed struct {
	site
	err error
}

// NewCommands returns a planner for the commands of a request. It ignores the facts
// about suites, learned sizes and series.
func NewCommands(f Facts) *Commands {
	return &Commands{facts: f, placed: make(map[string]placed)}
}

// Only returns the line of a request for a single command. Its target is the request's
// first, else the project's first, else any collector's.
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
// registered collector can ever run it. The record fills in the request's time.
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

// Warnings explains why some of the jobs planned so far have to wait.
func (c *Commands) Warnings() []string { return c.warnings }

// place chooses once for all lines with the same requirements.
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

// ErrNoCollector reports that no target is named and no collector is registered.
var ErrNoCollector = errors.New("no collector is registered, so nothing can run the command; start one with 'benchloom collector'")

// CommandTarget returns the target of a command: the requested one, else the project's
// first, else the only one registered. The error is [ErrNoCollector], or a
// [bench.ErrInvalid] that lists the targets to choose from.
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

// NewTimeouts reads the limits from a project's configuration; see [SizePolicy].
func NewTimeouts(config bench.SizePolicy) (Timeouts, error) {
	policy, err := SizePolicy(config)
	return Timeouts{policy}, err
}

// Limit sets the project's timeout for a command without one, and refuses a timeout
// above the project's limit.
func (t Timeouts) Limit(c bench.Command) (bench.Command, error) {
	timeout, err := t.policy.OriginalTimeout(time.Duration(c.TimeoutSeconds) * time.Second)
	if err != nil {
		return c, fmt.Errorf("%w: %w, the longest that the project allows for an iteration; ask for less, or raise size.maximum_timeout in its configuration", bench.ErrInvalid, err)
	}
	c.TimeoutSeconds = int(math.Ceil(timeout.Seconds()))
	return c, nil
}
