package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/sizeclass/simulate"
)

// Simulation writes the results of a simulation of size classes, phase by phase.
func Simulation(w io.Writer, r simulate.Result, v View) error {
	t := NewTable(Column{Heading: "runs"}, Column{Heading: "core-seconds", Right: true}, Column{Heading: "latency", Right: true},
		Column{Heading: "escalated", Right: true}, Column{Heading: "probes", Right: true}, Column{Heading: "failed", Right: true},
		Column{Heading: "classes", Flex: true})
	for _, p := range r.Summary {
		var ended []string
		for _, s := range p.Ended {
			ended = append(ended, fmt.Sprintf("%d: %d", s.Class, s.Runs))
		}
		t.Row(p.Runs, fmt.Sprintf("%.4g", p.CoreSeconds), fmt.Sprintf("%.4g s", p.LatencySeconds), strconv.Itoa(p.Escalated), strconv.Itoa(p.Probes),
			strconv.Itoa(p.Failed), strings.Join(ended, ", "))
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	return write(w, "\ncore-seconds and latency: means per run, including all its attempts; classes: where runs ended, with their number\n")
}
