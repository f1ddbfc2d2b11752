package fairshare

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/waittime"
)

// File is a configuration as people write it, with any number of queues and limits.
type File struct {
	Queues   []QueueSetting `json:"queues,omitempty" yaml:"queues" doc:"Queues: their classes, weights and levels."`
	Accounts []AccountLimit `json:"accounts,omitempty" yaml:"accounts" doc:"Limits of accounts."`
}

// Config is a checked configuration.
type Config struct {
	Queues []Queue
	Limits Limits
}

// Check checks the whole file. The error joins all faults, each wrapping
// [bench.ErrInvalid].
func (f File) Check() (Config, error) {
	var c Config
	var errs []error
	for _, s := range f.Queues {
		q, err := s.Queue()
		if err == nil && slices.ContainsFunc(c.Queues, func(have Queue) bool { return have.Name == q.Name }) {
			err = fmt.Errorf("%w: queue %q is configured twice; leave one out", bench.ErrInvalid, q.Name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.Queues = append(c.Queues, q)
	}
	for _, l := range f.Accounts {
		l, err := l.Checked()
		if err == nil && slices.ContainsFunc(c.Limits, func(have AccountLimit) bool { return have.Account == l.Account && have.Branch == l.Branch }) {
			err = fmt.Errorf("%w: the limit of account %q on branch %q is configured twice; leave one out", bench.ErrInvalid, l.Account, l.Branch)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.Limits = append(c.Limits, l)
	}
	return c, errors.Join(errs...)
}

// Empty reports whether the file configures nothing.
func (f File) Empty() bool { return len(f.Queues)+len(f.Accounts) == 0 }

// QueueSetting is the configuration of a queue as people write it; fields left out get
// defaults.
type QueueSetting struct {
	Name   string   `json:"name" yaml:"name" doc:"user:ACCOUNT, project:NAME, or a name of its own."`
	Class  Class    `json:"class,omitempty" yaml:"class" enum:"weighted,strict" doc:"weighted (default): shares by weight; strict: goes before or after the weighted queues."`
	Weight *float64 `json:"weight,omitempty" yaml:"weight" doc:"Share of a weighted queue relative to the others, 0.1 to 1000; left out: 1."`
	Level  *int     `json:"level,omitempty" yaml:"level" doc:"Level of a strict queue: 1 and 2 go before the weighted queues, 4 and 5 after them."`
	// WaitObjective is the time within which its jobs should start, such as 15m.
	WaitObjective string `json:"wait_objective,omitempty" yaml:"wait_objective" doc:"Time within which its jobs should start once they can run, such as 15m or 2h, from 1s to 168h; left out: 15m. It changes no order: see /stats/wait."`
}

// Queue returns the queue, with defaults filled in. The error wraps [bench.ErrInvalid].
func (s QueueSetting) Queue() (Queue, error) {
	if err := bench.CheckQueue(s.Name); err != nil {
		return Queue{}, err
	}
	q := Default(s.Name)
	if s.WaitObjective != "" {
		objective, err := time.ParseDuration(s.WaitObjective)
		if err != nil || objective < waittime.MinObjective || objective > waittime.MaxObjective || objective%time.Second != 0 {
			return q, fmt.Errorf("%w: queue %q has wait_objective %q; use whole seconds from 1s to 168h, such as 15m", bench.ErrInvalid, s.Name, s.WaitObjective)
		}
		q.WaitObjective = objective
	}
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

// likeBuiltin refuses to change a built-in queue.
func (s QueueSetting) likeBuiltin(q Queue) error {
	if (s.Class != "" && s.Class != Strict) || s.Weight != nil || (s.Level != nil && *s.Level != q.Level) {
		return fmt.Errorf("%w: queue %q is always strict, of level %d; leave it out, or name a queue of your own", bench.ErrInvalid, s.Name, q.Level)
	}
	return nil
}

// CheckWeight refuses a weight that is out of range or not a number. The error wraps
// [bench.ErrInvalid].
func CheckWeight(queue string, weight float64) error {
	if weight >= MinWeight && weight <= MaxWeight { // false for NaN
		return nil
	}
	advice := "weights are relative to each other"
	if weight <= 0 {
		advice += "; to hold its jobs back let it go last (class strict, level 5), or pause the project"
	}
	return fmt.Errorf("%w: weight %v of queue %q; use %g to %g: %s", bench.ErrInvalid, weight, queue, MinWeight, MaxWeight, advice)
}
