package cli

import (
	"fmt"
	"io"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/results"
)

// WriteBenchfmt writes the collections in Go's benchmark format for benchstat, with the
// names and units of the API's export.
func (r LocalReport) WriteBenchfmt(w io.Writer) error {
	out := benchfmt.NewWriter(w)
	for _, result := range r.Results {
		for _, c := range result.Collections {
			for _, line := range results.BenchmarkResults(result.TestCase, c.Metrics) {
				for _, config := range [][2]string{{"suite", r.Suite}, {"tag", result.Subject}, {"target", string(result.TestCase.Target)}} {
					line.Config = append(line.Config, benchfmt.Config{Key: config[0], Value: []byte(Printable(config[1])), File: true})
				}
				if err := out.Write(line); err != nil {
					return fmt.Errorf("writing the output: %w", err)
				}
			}
		}
	}
	return nil
}
