package fairshare

import (
	"fmt"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// Class is how a queue stands to the others.
type Class string

const (
	// Weighted queues share what there is by their weights.
	Weighted Class = "weighted"
	// Strict queues go before or after all of another level.
	Strict Class = "strict"
)

// Levels: a job gets nothing while one of an earlier level waits.
const (
	FirstLevel  = 1
	SharedLevel = 3 // of the weighted queues
	LastLevel   = 5
)

// Bounds and default of weights.
const (
	MinWeight     = 0.1
	MaxWeight     = 1000.0
	DefaultWeight = 1.0
)

// Queues that are there without being configured.
const (
	VIP  = "vip"  // before all others
	Idle = "idle" // after all others
)

// OfUser is the queue of an account's own work.
func OfUser(account string) string { return bench.UserQueue + account }

// OfProject is the queue of a project's releases, commits and try builds.
func OfProject(project string) string { return bench.ProjectQueue + project }

// OfRequest is where the jobs of a request of a suite wait: in the queue that it
// names, else the submitter's own when it is ad hoc, else the project's.
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

// Queue is a queue with what is in force for it.
type Queue struct {
	Name   string
	Class  Class
	Weight float64 // relative to the other queues of its level
	Level  int     // 1 goes first
}

// Default is a queue that nobody has configured.
func Default(name string) Queue {
	switch name {
	case VIP:
		return Queue{Name: name, Class: Strict, Weight: DefaultWeight, Level: FirstLevel}
	case Idle:
		return Queue{Name: name, Class: Strict, Weight: DefaultWeight, Level: LastLevel}
	}
	return Queue{Name: name, Class: Weighted, Weight: DefaultWeight, Level: SharedLevel}
}

// QueueSetting is a queue as somebody writes it; what is left out has a default.
type QueueSetting struct {
	Name   string   `json:"name" yaml:"name" doc:"user:ACCOUNT, project:NAME, or a name of its own."`
	Class  Class    `json:"class,omitempty" yaml:"class" enum:"weighted,strict" doc:"weighted (default): it shares by weight; strict: it goes before or after the others."`
	Weight *float64 `json:"weight,omitempty" yaml:"weight" doc:"Share of a weighted queue relative to the others, 0.1 to 1000; left out: 1."`
	Level  *int     `json:"level,omitempty" yaml:"level" doc:"Of a strict queue: 1 or 2 go before the weighted queues, 4 or 5 after them."`
}

// Queue is what is written, with its defaults.
func (s QueueSetting) Queue() (Queue, error) {
	if err := bench.CheckQueue(s.Name); err != nil {
		return Queue{}, err
	}
	q := Default(s.Name)
	if builtin := q.Class == Strict; builtin {
		return q, s.likeBuiltin(q)
	}
	switch s.Class {
	case "", Weighted:
		if s.Level != nil && *s.Level != SharedLevel {
			return q, fmt.Errorf("%w: queue %q is weighted and has level %d; weighted queues share level %d: leave the level out, or make the class strict", bench.ErrInvalid, s.Name, *s.Level, SharedLevel)
		}
		if s.Weight != nil {
			q.Weight = *s.Weight
		}
		return q, CheckWeight(s.Name, q.Weight)
	case Strict:
		if s.Weight != nil {
			return q, fmt.Errorf("%w: queue %q is strict and has a weight; leave the weight out: its level decides", bench.ErrInvalid, s.Name)
		}
		q.Class = Strict
		if s.Level == nil {
			return q, fmt.Errorf("%w: queue %q is strict and has no level; use 1 or 2 to go before the weighted queues, 4 or 5 to go after them", bench.ErrInvalid, s.Name)
		}
		if q.Level = *s.Level; q.Level < FirstLevel || q.Level > LastLevel || q.Level == SharedLevel {
			return q, fmt.Errorf("%w: queue %q is strict and has level %d; use 1 or 2 to go before the weighted queues, 4 or 5 to go after them (%d is theirs)", bench.ErrInvalid, s.Name, q.Level, SharedLevel)
		}
		return q, nil
	}
	return q, fmt.Errorf("%w: queue %q has class %q; use weighted or strict", bench.ErrInvalid, s.Name, s.Class)
}

func (s QueueSetting) likeBuiltin(q Queue) error {
	if (s.Class != "" && s.Class != Strict) || s.Weight != nil || (s.Level != nil && *s.Level != q.Level) {
		return fmt.Errorf("%w: queue %q is always strict, of level %d; leave it out, or name a queue of your own", bench.ErrInvalid, s.Name, q.Level)
	}
	return nil
}

// CheckWeight refuses a weight that is out of range, or no number.
func CheckWeight(queue string, weight float64) error {
	if weight >= MinWeight && weight <= MaxWeight { // also false for what is no number
		return nil
	}
	advice := "weights are relative to each other"
	if weight <= 0 {
		advice += "; to hold its jobs back let it go last (class strict, level 5), or pause the project"
	}
	return fmt.Errorf("%w: weight %v of queue %q; use %g to %g: %s", bench.ErrInvalid, weight, queue, MinWeight, MaxWeight, advice)
}

// checkAccount refuses what no account is called.
func checkAccount(name string) error {
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%w: account %q holds white space or a control character", bench.ErrInvalid, name)
	}
	return nil
}
