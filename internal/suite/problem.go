package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// Problem is a mistake in a suite.
type Problem struct {
	// File is relative to the suite's folder.
	File string `json:"file"`
	// Line and Column count from 1; 0 if the problem has no position.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	// Warning marks a problem that does not prevent the suite from being
	// loaded.
	Warning bool `json:"warning,omitempty"`
}

// String formats the problem as compilers do: file:line:column: message.
func (p Problem) String() string {
	place := p.File
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
	if p.Warning {
		return place + ": warning: " + p.Message
	}
	return place + ": " + p.Message
}

// Error lists the problems of a suite. It wraps [bench.ErrInvalid].
type Error struct{ Problems []Problem }

// Error returns one line per problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is(err, bench.ErrInvalid) true.
func (e *Error) Unwrap() error { return bench.ErrInvalid }

// maxProblems limits the number of reported problems; more only hide the first.
const maxProblems = 50

// position is a line and column in suite.yaml.
type position struct{ line, column int }

// problems collects problems without duplicates.
type problems struct {
	list []Problem
	seen map[Problem]bool
}

func (ps *problems) add(at position, format string, args ...any) {
	ps.put(Problem{File: FileName, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...)})
}

func (ps *problems) warn(at position, format string, args ...any) {
	ps.put(Problem{File: FileName, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...), Warning: true})
}

func (ps *problems) put(p Problem) {
	if ps.seen == nil {
		ps.seen = map[Problem]bool{}
	}
	if ps.seen[p] || len(ps.list) >= maxProblems {
		return
	}
	ps.seen[p] = true
	ps.list = append(ps.list, p)
}

// full reports whether the limit of problems is reached.
func (ps *problems) full() bool { return len(ps.list) >= maxProblems }

func (ps *problems) sorted() []Problem {
	list := slices.Clone(ps.list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return list
}

// err returns an [*Error], or nil if there are no problems.
func (ps *problems) err() error {
	if len(ps.list) == 0 {
		return nil
	}
	return &Error{Problems: ps.sorted()}
}
