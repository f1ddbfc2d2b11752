package sizeclass

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Format is the version of the statistics' document. Readers refuse later
// versions.
const Format = 1

var (
	// ErrCorrupt reports unreadable statistics.
	ErrCorrupt = errors.New("size statistics cannot be read")
	// ErrFormat reports statistics of a later version.
	ErrFormat = errors.New("size statistics are of a later version")
)

// Outcome classifies the end of an attempt, as far as sizes are concerned.
type Outcome string

const (
	Succeeded Outcome = "succeeded"
	// TimedOut: ended at the timeout that was selected for it, or at the job's own.
	TimedOut Outcome = "timed_out"
	// OutOfMemory: killed for lack of memory.
	OutOfMemory Outcome = "out_of_memory"
	// Failed: it failed by itself. Whether the class was too small is known
	// once a larger class has succeeded.
	Failed Outcome = "failed"
	// Abandoned: ended by something that says nothing about the job, such as a
	// lost machine or a cancellation.
	Abandoned Outcome = "abandoned"
)

func (o Outcome) known() bool {
	return o == Succeeded || o == TimedOut || o == OutOfMemory || o == Failed
}

// Sample is a remembered attempt.
type Sample struct {
	Outcome Outcome `json:"outcome"`
	// Duration of the attempt, or its timeout if it timed out.
	Duration time.Duration `json:"duration_ns"`
	At       time.Time     `json:"at"`
	// Job is shared by the attempts at one job.
	Job string `json:"job,omitempty"`
	// Pending marks a failure for which it is not yet known whether a larger
	// class helps. It does not count.
	Pending bool `json:"pending,omitempty"`
	// OwnLimit is set if it timed out at the job's own limit, which is no
	// longer on a larger class.
	OwnLimit bool `json:"own_limit,omitempty"`
	// PeakMemory in bytes and CPUTime; 0 if not measured.
	PeakMemory int64         `json:"peak_memory,omitempty"`
	CPUTime    time.Duration `json:"cpu_time_ns,omitempty"`
}

// History holds what was learned about one class.
type History struct {
	Class bench.SizeClass `json:"class"`
	// Samples, the newest last.
	Samples []Sample `json:"samples"`
	// Tried is the number of the run (see [Statistics.Runs]) in which the class
	// was last tried.
	Tried int `json:"tried"`
	// Streak counts consecutive attempts for which the class was too small; the
	// first of them started at StreakSince.
	Streak      int       `json:"streak,omitempty"`
	StreakSince time.Time `json:"streak_since,omitzero"`
}

// Mark is an outstanding probe: selected, but not ended.
type Mark struct {
	ID      string          `json:"id"`
	Class   bench.SizeClass `json:"class"`
	Expires time.Time       `json:"expires"`
	// Instead is the cost the run would have had on the best class known, in
	// core-seconds.
	Instead float64 `json:"instead_core_seconds"`
}

// Spent is the cost of the runs since the job last changed, in core-seconds: time
// × class.
type Spent struct {
	Total float64 `json:"total_core_seconds"`
	// Probes is the cost of probes beyond that of the best class known.
	Probes float64 `json:"probe_core_seconds"`
}

// Counts counts the outcomes of probes since the statistics began.
type Counts struct {
	Probes int `json:"probes"`
	// TooSmall counts the probes that failed and had to be repeated.
	TooSmall int `json:"too_small"`
	// InFlight counts the runs that were not probes because another probe was
	// outstanding.
	InFlight int `json:"skipped_in_flight"`
	// Budget counts the runs that were not probes because the budget was spent.
	Budget int `json:"skipped_budget"`
	// Forgotten counts the changes of the job after which its history was dropped.
	Forgotten int `json:"forgotten"`
}

// Statistics holds what was learned about jobs of one shape. The zero value is
// empty. Values are immutable: learning returns a new one.
type Statistics struct {
	Classes []History `json:"classes,omitempty"` // ascending
	// Runs counts the runs that ended with a success, or on the largest class.
	Runs int `json:"runs"`
	// Since is the value of Runs when the history was last dropped.
	Since int `json:"since"`
	// FailedOnLargest is the time of a failure on the largest class; zero if there was
	// none since the last success there.
	FailedOnLargest time.Time `json:"failed_on_largest,omitzero"`
	// LastFailure is the time of the last failure on the largest class, regardless of
	// later successes.
	LastFailure time.Time `json:"last_failure,omitzero"`
	// Marks are the outstanding probes.
	Marks  []Mark `json:"marks,omitempty"`
	Spent  Spent  `json:"spent"`
	Counts Counts `json:"counts"`
	// Learned lists the latest attempts learned from, so that none counts
	// twice.
	Learned []string `json:"learned,omitempty"`
}

type document struct {
	Format int `json:"format"`
	Statistics
}

const (
	// keptIDs is the number of remembered attempts: more than one job makes,
	// with reserve for concurrent jobs.
	keptIDs = 64
	// mostMarks and mostClasses limit the size of read statistics.
	mostMarks   = 1000
	mostClasses = 1000
	mostSamples = 1000
	// mostCoreSeconds is an upper limit far above any real cost.
	mostCoreSeconds = 1e18
)

// Read reads stored statistics. Missing or corrupt statistics, or those of a
// later version, must not fail a job: it returns the zero value with the error,
// which the caller logs, and sizes are learned again.
func Read(text []byte) (Statistics, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return Statistics{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if d.Format > Format {
		return Statistics{}, fmt.Errorf("%w: %d, this version of Benchloom knows %d; upgrade it", ErrFormat, d.Format, Format)
	}
	if err := d.check(); err != nil {
		return Statistics{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return d.Statistics, nil
}

// Encode encodes the statistics for [Read].
func (s Statistics) Encode() ([]byte, error) {
	text, err := json.Marshal(document{Format: Format, Statistics: s})
	if err != nil {
		return nil, fmt.Errorf("writing size statistics: %w", err)
	}
	return text, nil
}

func (d document) check() error {
	s := d.Statistics
	switch {
	case d.Format < 1:
		return errors.New("their format is missing")
	case len(s.Classes) > mostClasses:
		return fmt.Errorf("%d classes", len(s.Classes))
	case len(s.Marks) > mostMarks:
		return fmt.Errorf("%d outstanding probes", len(s.Marks))
	case s.Runs < 0 || s.Since < 0 || s.Since > s.Runs:
		return fmt.Errorf("%d runs since run %d", s.Runs, s.Since)
	case !amount(s.Spent.Total) || !amount(s.Spent.Probes):
		return errors.New("core-seconds below 0")
	}
	for i, h := range s.Classes {
		if i > 0 && s.Classes[i-1].Class >= h.Class {
			return errors.New("classes are not in ascending order")
		}
		if err := h.check(s.Runs); err != nil {
			return fmt.Errorf("class %d: %w", h.Class, err)
		}
	}
	for _, m := range s.Marks {
		if _, err := bench.NewSizeClass(int(m.Class)); err != nil || !amount(m.Instead) {
			return fmt.Errorf("probe %q of class %d", m.ID, m.Class)
		}
	}
	return nil
}

func (h History) check(runs int) error {
	switch _, err := bench.NewSizeClass(int(h.Class)); {
	case err != nil:
		return err
	case len(h.Samples) > mostSamples:
		return fmt.Errorf("%d samples", len(h.Samples))
	case h.Tried < 0 || h.Tried > runs || h.Streak < 0:
		return fmt.Errorf("tried in run %d of %d, too small %d times in a row", h.Tried, runs, h.Streak)
	}
	for i, sample := range h.Samples {
		if !sample.Outcome.known() || sample.Duration < 0 || sample.PeakMemory < 0 || sample.CPUTime < 0 {
			return fmt.Errorf("sample %d: outcome %q after %s", i, sample.Outcome, sample.Duration)
		}
	}
	return nil
}

// amount reports whether f is a plausible number of core-seconds, so that sums
// stay finite.
func amount(f float64) bool { return f >= 0 && f <= mostCoreSeconds }

// Of returns the history of a class.
func (s Statistics) Of(class bench.SizeClass) History {
	if i, found := s.index(class); found {
		return s.Classes[i]
	}
	return History{Class: class}
}

func (s Statistics) index(class bench.SizeClass) (int, bool) {
	return slices.BinarySearchFunc(s.Classes, class, func(h History, c bench.SizeClass) int { return int(h.Class) - int(c) })
}

// clone returns a copy that shares nothing with s that is changed in place.
func (s Statistics) clone() Statistics {
	s.Classes, s.Marks, s.Learned = slices.Clone(s.Classes), slices.Clone(s.Marks), slices.Clone(s.Learned)
	return s
}

// edit returns the history of a class of a clone, to be changed. Its samples
// are shared with the original: they are replaced, never written to.
func (s *Statistics) edit(class bench.SizeClass) *History {
	i, found := s.index(class)
	if !found {
		s.Classes = slices.Insert(s.Classes, i, History{Class: class})
	}
	return &s.Classes[i]
}

// live returns the probes that may still end.
func (s Statistics) live(now time.Time) []Mark {
	return slices.DeleteFunc(slices.Clone(s.Marks), func(m Mark) bool { return !m.Expires.After(now) })
}
