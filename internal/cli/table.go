package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Column is a column of a [Table].
type Column struct {
	Heading string
	// Right aligns numbers.
	Right bool
	// Flex allows cutting cells if the table is too wide.
	Flex bool
}

// Table is text in columns. Empty columns are not shown.
type Table struct {
	columns []Column
	rows    [][]string
}

// NewTable returns an empty table.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds a row, with one cell for each column.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.columns))
	for i := range t.columns {
		row[i] = Printable(cells[i])
	}
	t.rows = append(t.rows, row)
}

// Write writes the table. Flex columns are cut to keep lines within width
// characters; 0 means unlimited.
func (t *Table) Write(w io.Writer, width int) error {
	widths := t.widths(width)
	var b strings.Builder
	headings := make([]string, len(t.columns))
	for i, c := range t.columns {
		headings[i] = c.Heading
	}
	for _, row := range append([][]string{headings}, t.rows...) {
		var line strings.Builder
		for i, cell := range row {
			if widths[i] < 0 {
				continue
			}
			cell = cut(cell, widths[i])
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.columns[i].Right {
				line.WriteString(padding + cell + "  ")
			} else {
				line.WriteString(cell + padding + "  ")
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return write(w, b.String())
}

// leastFlex is the minimum width of a flex column, so that its text stays legible.
const leastFlex = 12

// widths returns the widths of the columns; -1 for hidden ones.
func (t *Table) widths(bound int) []int {
	widths := make([]int, len(t.columns))
	total := -2
	for i, c := range t.columns {
		widths[i] = -1
		for _, row := range t.rows {
			if n := utf8.RuneCountInString(row[i]); n > 0 {
				widths[i] = max(widths[i], n, utf8.RuneCountInString(c.Heading))
			}
		}
		if widths[i] > 0 {
			total += widths[i] + 2
		}
	}
	for i, c := range t.columns {
		if c.Flex && bound > 0 && total > bound && widths[i] > leastFlex {
			narrowed := max(leastFlex, widths[i]-(total-bound))
			total -= widths[i] - narrowed
			widths[i] = narrowed
		}
	}
	return widths
}
