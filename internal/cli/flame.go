package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/benchloom/benchloom/internal/flame"
)

// FunctionTable writes the functions of a profile, limited to most; 0 means all.
func FunctionTable(w io.Writer, table flame.Table, most int, v View) error {
	if err := write(w, fmt.Sprintf("%s: %s in %s\n", Printable(table.Type), flame.Amount(table.Sum, table.Unit), Plural(len(table.Functions), "function"))); err != nil {
		return err
	}
	t := NewTable(Column{Heading: "self", Right: true}, Column{Heading: "share", Right: true}, Column{Heading: "with callees", Right: true}, Column{Heading: "share", Right: true},
		Column{Heading: "function", Flex: true})
	for _, f := range table.Functions[:bounded(len(table.Functions), most)] {
		t.Row(flame.Amount(f.Self, table.Unit), ofAll(flame.Share(f.Self, table.Sum)), flame.Amount(f.Total, table.Unit), ofAll(flame.Share(f.Total, table.Sum)), f.Name)
	}
	return t.Write(w, v.Width)
}

// DifferenceTable writes the functions of two profiles that changed most, limited to
// most; 0 means all.
func DifferenceTable(w io.Writer, d flame.Difference, most int, v View) error {
	text := fmt.Sprintf("%s: %s before, %s after; shares of all, in points\n", Printable(d.Type), flame.Amount(d.SumA, d.Unit), flame.Amount(d.SumB, d.Unit))
	if err := write(w, text); err != nil {
		return err
	}
	t := NewTable(Column{Heading: "self", Right: true}, Column{Heading: "before", Right: true}, Column{Heading: "after", Right: true}, Column{Heading: "with callees", Right: true},
		Column{Heading: "function", Flex: true}, Column{Heading: ""})
	for _, f := range d.Functions[:bounded(len(d.Functions), most)] {
		only := ""
		switch {
		case f.OnlyInA:
			only = "gone"
		case f.OnlyInB:
			only = "new"
		}
		t.Row(points(f.SelfShareB-f.SelfShareA), ofAll(f.SelfShareA), ofAll(f.SelfShareB), points(f.TotalShareB-f.TotalShareA), f.Name, only)
	}
	return t.Write(w, v.Width)
}

func bounded(n, most int) int {
	if most > 0 {
		return min(n, most)
	}
	return n
}

func ofAll(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

// points writes a difference of shares, with its sign unless it rounds to zero.
func points(difference float64) string {
	if math.Abs(difference) < .0005 {
		return "0.0"
	}
	return fmt.Sprintf("%+.1f", 100*difference)
}

// FunctionCSV writes a heading and a line for each function.
func FunctionCSV(w io.Writer, table flame.Table) error {
	rows := [][]string{{"function", "file", "type", "unit", "self", "total"}}
	for _, f := range table.Functions {
		rows = append(rows, []string{f.Name, f.File, table.Type, table.Unit, integer(f.Self), integer(f.Total)})
	}
	return writeCSV(w, rows)
}

// DifferenceCSV writes a heading and a line for each function.
func DifferenceCSV(w io.Writer, d flame.Difference) error {
	rows := [][]string{{"function", "file", "type", "unit", "self_a", "self_b", "total_a", "total_b", "self_share_a", "self_share_b", "total_share_a", "total_share_b"}}
	for _, f := range d.Functions {
		rows = append(rows, []string{
			f.Name, f.File, d.Type, d.Unit, integer(f.SelfA), integer(f.SelfB), integer(f.TotalA), integer(f.TotalB),
			decimal(f.SelfShareA), decimal(f.SelfShareB), decimal(f.TotalShareA), decimal(f.TotalShareB),
		})
	}
	return writeCSV(w, rows)
}

func integer(v int64) string   { return strconv.FormatInt(v, 10) }
func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func writeCSV(w io.Writer, rows [][]string) error {
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
