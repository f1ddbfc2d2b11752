package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Parameters that tables share.
const (
	// sortParameter names a column; a minus before it sorts the other way.
	sortParameter = "sort"
	// pageParameter holds the cursor of the API at which a list continues.
	pageParameter = "page"
)

// column is a column by which a table of T can be sorted.
type column[T any] struct {
	name    string
	compare func(a, b T) int
}

// by is a column that is ordered by a value.
func by[T any, V cmp.Ordered](name string, value func(T) V) column[T] {
	return column[T]{name, func(a, b T) int { return cmp.Compare(value(a), value(b)) }}
}

// order says how a table is sorted: templates write its headings with it.
type order struct {
	Column     string
	Descending bool
	// Given is the parameter as it was given; empty: it was not.
	Given string
}

// sorted sorts rows by the parameter of the page, or by the first column. Rows that are
// equal keep their order.
func sorted[T any](v *visit, rows []T, columns ...column[T]) (order, error) {
	o := order{Column: columns[0].name, Given: v.get(sortParameter)}
	if o.Given != "" {
		o.Column, o.Descending = strings.CutPrefix(o.Given, "-")
	}
	at := slices.IndexFunc(columns, func(c column[T]) bool { return c.name == o.Column })
	if at < 0 {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.name
		}
		return o, badParameter(sortParameter, o.Given, "the columns are "+strings.Join(names, ", ")+"; a minus before one reverses it")
	}
	slices.SortStableFunc(rows, func(a, b T) int {
		if o.Descending {
			a, b = b, a
		}
		return columns[at].compare(a, b)
	})
	return o, nil
}

// badParameter is the problem of a parameter with a value that the page does not know.
func badParameter(name, value, remedy string) error {
	return &apiclient.Problem{
		Type: apiclient.ProblemPrefix + "invalid", Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest,
		Detail: fmt.Sprintf("the parameter %s is %.40q, which this page does not know: %s", name, value, remedy),
	}
}

// Next returns the value of the parameter that sorts by a column: the other way if the table is
// sorted by that column already.
func (o order) Next(column string) string {
	if o.Column == column && !o.Descending {
		return "-" + column
	}
	return column
}

// Aria returns the value of the attribute aria-sort of a column's heading.
func (o order) Aria(column string) string {
	switch {
	case o.Column != column:
		return "none"
	case o.Descending:
		return "descending"
	}
	return "ascending"
}

// Sign is shown beside the heading of a column.
func (o order) Sign(column string) string {
	switch {
	case o.Column != column:
		return ""
	case o.Descending:
		return "▼"
	}
	return "▲"
}
