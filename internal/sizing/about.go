package sizing

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// About describes the jobs of a shape to people. It is stored with the shape's
// statistics.
type About struct {
	Target bench.Target `json:"target"`
	// Command is the beginning of the command line; empty: the jobs measure a suite.
	Command    []string `json:"command,omitempty"`
	Iterations int      `json:"iterations,omitempty"`
	// TestCases lists the first test cases, in words; Of is the number of all.
	TestCases []string `json:"test_cases,omitempty"`
	Of        int      `json:"of,omitempty"`
	// InTurns is set if the jobs measure two artifacts in turns.
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
	// shownTestCases bounds the number of test cases in a description.
	shownTestCases = 20
	// shownCommand bounds a command line, in characters.
	shownCommand = 80
)

// about returns the description of a shape, from one of its jobs.
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

// shortened returns the beginning of a command line, in at most shownCommand characters.
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

// String describes the shape in one line; empty if nothing is known.
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
	if a.Target != "" && words != "" && !strings.Contains(words, string(a.Target)) {
		words += " on " + string(a.Target)
	}
	return words
}
