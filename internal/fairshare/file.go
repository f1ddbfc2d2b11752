package fairshare

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// File is a configuration as somebody writes it: queues and limits, in any number.
type File struct {
	Queues   []QueueSetting `json:"queues,omitempty" yaml:"queues" doc:"Queues and how they stand to each other."`
	Accounts []AccountLimit `json:"accounts,omitempty" yaml:"accounts" doc:"What accounts may have at once."`
}

// Config is a checked configuration.
type Config struct {
	Queues []Queue
	Limits Limits
}

// Check checks all of a file, and gives every error that it holds.
func (f File) Check() (Config, error) {
	var c Config
	var errs []error
	for _, s := range f.Queues {
		q, err := s.Queue()
		if err == nil && slices.ContainsFunc(c.Queues, func(have Queue) bool { return have.Name == q.Name }) {
			err = fmt.Errorf("%w: queue %q is there twice; leave one out", bench.ErrInvalid, q.Name)
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
			err = fmt.Errorf("%w: the limit of account %q on branch %q is there twice; leave one out", bench.ErrInvalid, l.Account, l.Branch)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.Limits = append(c.Limits, l)
	}
	return c, errors.Join(errs...)
}

// Empty tells that nothing is written.
func (f File) Empty() bool { return len(f.Queues)+len(f.Accounts) == 0 }

// Starves names the queues of a list that get nothing while this one has work
// waiting: those of a later level. Empty for a weighted queue, whose level comes in
// the middle by design.
func Starves(q Queue, all []Queue) []string {
	if q.Class != Strict {
		return nil
	}
	var names []string
	for _, other := range all {
		if other.Level > q.Level {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	return names
}

// shownNames bounds how many names a sentence lists.
const shownNames = 5

// Warning says what a queue can starve; empty: nothing.
func Warning(q Queue, all []Queue) string {
	names := Starves(q, all)
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names[:min(len(names), shownNames)], ", ")
	if more := len(names) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "while it has work, nothing of " + text + " starts"
}
