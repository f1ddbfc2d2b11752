package fairshare

import (
	"cmp"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/waittime"
)

// Class decides how a queue competes with the others.
type Class string

const (
	// Weighted queues share the collectors by their weights.
	Weighted Class = "weighted"
	// Strict queues go before or after all queues of another level.
	Strict Class = "strict"
)

// Bounds and default of weights.
const (
	MinWeight     = 0.1
	MaxWeight     = 1000.0
	DefaultWeight = 1.0
)

// Built-in queues, which need no configuration.
const (
	VIP  = "vip"  // before all others
	Idle = "idle" // after all others
)

// OfUser returns the name of the queue for an account's own work.
func OfUser(account string) string { return bench.UserQueue + account }

// OfProject returns the name of the queue for a project's releases, commits and try
// builds.
func OfProject(project string) string { return bench.ProjectQueue + project }

// OfRequest returns the name of the queue for a suite request's jobs: the one that the
// request names, else the submitter's if it is ad hoc, else the project's.
func OfRequest(named, submitter, project string, kind bench.RequestType, config bench.ProjectConfig) string {
	switch {
	case named != "":
		return named
	case !kind.Tracked():
		return OfUser(submitter)
	case config.Queue.Queue != "":
		return config.Queue.Queue
	}
	return OfProject(project)
}

// Queue is the configuration in force for a queue.
type Queue struct {
	Name   string
	Class  Class
	Weight float64 // relative to the other queues of its level
	Level  int     // FirstLevel to LastLevel
	// WaitObjective is the time within which its jobs should start; 0:
	// [waittime.DefaultObjective].
	WaitObjective time.Duration
}

// Objective returns the time within which the queue's jobs should start.
func (q Queue) Objective() time.Duration { return cmp.Or(q.WaitObjective, waittime.DefaultObjective) }

// Default returns the configuration of a queue that is not configured.
func Default(name string) Queue {
	switch name {
	case VIP:
		return Queue{Name: name, Class: Strict, Weight: DefaultWeight, Level: FirstLevel}
	case Idle:
		return Queue{Name: name, Class: Strict, Weight: DefaultWeight, Level: LastLevel}
	}
	return Queue{Name: name, Class: Weighted, Weight: DefaultWeight, Level: SharedLevel}
}

// Queues are configured queues by name.
type Queues map[string]Queue

// Of returns the configuration in force for a queue: its own, else [Default].
func (qs Queues) Of(name string) Queue {
	if q, ok := qs[name]; ok {
		return q
	}
	return Default(name)
}
