package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/benchloom/benchloom/internal/verdict"
)

// outcome is the result of a trial.
type outcome struct {
	Trial   string    `json:"trial"`
	Request string    `json:"request"`
	Version string    `json:"version"` // of Benchloom
	Begun   time.Time `json:"begun"`
	Seconds float64   `json:"seconds"`
	Rows    []row     `json:"rows"`
	// Sessions of the request's own jobs and of its looks.
	Sessions []session `json:"sessions"`
}

// row is the verdict on one series.
type row struct {
	Benchmark string       `json:"benchmark"`
	Metric    string       `json:"metric"`
	Verdict   verdict.Kind `json:"verdict"`
	Change    float64      `json:"change"` // relative
	Worse     bool         `json:"worse,omitempty"`
	Pairs     int          `json:"pairs,omitempty"`
	Disturbed int          `json:"disturbed,omitempty"` // pairs
	Reason    string       `json:"reason,omitempty"`
}

// session sums up one run's measurements of one benchmark.
type session struct {
	Run        string  `json:"run"`
	Benchmark  string  `json:"benchmark"`
	Iterations int     `json:"iterations"`
	Disturbed  int     `json:"disturbed"`       // iterations
	Cause      string  `json:"cause,omitempty"` // the most frequent one
	Marked     bool    `json:"marked"`          // the session as a whole is disturbed
	Seconds    float64 `json:"seconds"`
	Load       float64 `json:"load"`  // share of the time in which the load of this program ran
	Steal      float64 `json:"steal"` // share of the time of the job's CPUs
}

// state is a file of JSON lines: the plan, then an outcome per line. A line is on disk before the next trial begins.
type state struct {
	file     *os.File
	outcomes []outcome
}

// readState reads a state file. Without one there are no outcomes. An incomplete last line, of a program that was killed, is
// left out; whole is the size of what is complete.
func readState(path string, p plan) (outcomes []outcome, whole int64, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	known := make(map[string]bool)
	for _, t := range p.trials() {
		known[t.ID] = true
	}
	for n := 1; ; n++ {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return outcomes, whole, nil
		}
		line := text[:end]
		text, whole = text[end+1:], whole+int64(end)+1
		if n == 1 {
			var of plan
			if err := json.Unmarshal(line, &of); err != nil {
				return nil, 0, fmt.Errorf("reading line 1 of %s: %w", path, err)
			}
			if of != p {
				return nil, 0, fmt.Errorf("%s is of %d requests and %d slowdowns with seed %d: use the same numbers, or another directory with -state",
					path, of.Requests, of.Slowdowns, of.Seed)
			}
			continue
		}
		var o outcome
		if err := json.Unmarshal(line, &o); err != nil {
			return nil, 0, fmt.Errorf("reading line %d of %s: %w", n, path, err)
		}
		if !known[o.Trial] {
			return nil, 0, fmt.Errorf("line %d of %s: there is no trial %q, or it is there twice: remove the line", n, path, o.Trial)
		}
		known[o.Trial] = false
		outcomes = append(outcomes, o)
	}
}

// openState opens a state file, or begins one.
func openState(path string, p plan) (*state, error) {
	outcomes, whole, err := readState(path, p)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	s := &state{file: file, outcomes: outcomes}
	if err := file.Truncate(whole); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := file.Seek(whole, 0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if whole == 0 {
		if err := s.write(p); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return s, nil
}

func (s *state) add(o outcome) error {
	s.outcomes = append(s.outcomes, o)
	return s.write(o)
}

func (s *state) write(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	if _, err := s.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	return s.file.Sync()
}

// missing returns the plan's trials without an outcome, in their order.
func (p plan) missing(outcomes []outcome) []trial {
	done := make(map[string]bool)
	for _, o := range outcomes {
		done[o.Trial] = true
	}
	var left []trial
	for _, t := range p.trials() {
		if !done[t.ID] {
			left = append(left, t)
		}
	}
	return left
}
