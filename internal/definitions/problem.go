package definitions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// Problem is a mistake in a definitions folder.
type Problem struct {
	// File is relative to the folder.
	File string `json:"file"`
	// Line and Column count from 1; 0 if the problem has no position.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// String formats the problem as compilers do: file:line:column: message.
func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	}
	return p.File + ": " + p.Message
}

// Error lists the problems of a folder. It wraps [bench.ErrInvalid].
type Error struct{ Problems []Problem }

// Error returns one line per problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns [bench.ErrInvalid].
func (e *Error) Unwrap() error { return bench.ErrInvalid }

// maxProblems limits the number of reported problems; more only hide the first.
const maxProblems = 50

// position is a place in a file.
type position struct {
	file         string
	line, column int
}

// problems collects problems without duplicates.
type problems struct {
	list []Problem
	seen map[Problem]bool
}

func (ps *problems) add(at position, format string, args ...any) {
	p := Problem{File: at.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...)}
	if ps.seen == nil {
		ps.seen = make(map[Problem]bool)
	}
	if ps.seen[p] || ps.full() {
		return
	}
	ps.seen[p] = true
	ps.list = append(ps.list, p)
}

// full reports whether the limit of problems is reached.
func (ps *problems) full() bool { return len(ps.list) >= maxProblems }

// err returns an [*Error], sorted by place, or nil if there are no problems.
func (ps *problems) err() error {
	if len(ps.list) == 0 {
		return nil
	}
	list := slices.Clone(ps.list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{list}
}
