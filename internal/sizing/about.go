package sizing

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// About describes the jobs of a shape to people; it is stored with the shape's
// statistics.
type About struct {
	Target bench.Target `json:"target"`
	// Command is the beginning of the command line; empty: the jobs measure a suite.
	Command    []string `json:"command,omitempty"`
	Iterations int      `json:"iterations,omitempty"`
	// TestCases are the first of so many, in words.
	TestCases []string `json:"test_cases,omitempty"`
	Of        int      `json:"of,omitempty"`
	// InTurns: they are measured for two artifacts in turns.
	InTurns bool `json:"in_turns,omitempty"`
}

// ReadAbout reads a description; an unreadable one is empty.
func ReadAbout(text json.RawMessage) About {
	var a About
	if err := json.Unmarshal(text, &a); err != nil {
		return About{}
	}
	return a
}

const (
	// shownTestCases bounds how many test cases a description names.
	shownTestCases = 20
	// shownCommand bounds a command line, in characters.
	shownCommand = 80
)

// about describes a shape by one of its jobs.
func about(j store.Sizing) About {
	if j.Command != nil {
		return About{Target: j.Target, Command: shortened(j.Command.Argv), Iterations: max(1, j.Command.Iterations)}
	}
	a := About{Target: j.Target, Of: len(j.TestCases), InTurns: j.Versus != ""}
	for _, tc := range j.TestCases[:min(shownTestCases, len(j.TestCases))] {
		a.TestCases = append(a.TestCases, tc.String())
	}
	return a
}

// shortened is as much of a command line as tells it from others.
func shortened(argv []string) []string {
	var words []string
	left := shownCommand
	for _, word := range argv {
		runes := []rune(word)
		if len(runes) > left {
			return append(words, string(runes[:left])+"…")
		}
		words = append(words, word)
		left -= len(runes)
	}
	return words
}

// String describes the shape in a line; empty when nothing is known.
func (a About) String() string {
	words := strings.Join(a.Command, " ")
	if runes := []rune(words); len(runes) > shownCommand {
		words = string(runes[:shownCommand]) + "…"
	}
	switch {
	case len(a.TestCases) > 1:
		words = fmt.Sprintf("%d test cases, the first of them %s", max(a.Of, len(a.TestCases)), a.TestCases[0])
	case len(a.TestCases) == 1:
		words = a.TestCases[0]
	}
	if a.InTurns {
		words += ", of two artifacts in turns"
	}
	if a.Target != "" && words != "" {
		words += " on " + string(a.Target)
	}
	return words
}
