package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/bench"
)

func newResults() *cobra.Command {
	return group(&cobra.Command{
		Use:     "results",
		GroupID: groupUse,
		Short:   "Export or invalidate results",
		Example: `  benchloom results export go --tag 1.25.14 --tag 1.26.11 >results.txt`,
	}, newResultsExport(), newResultsInvalidate())
}

func newResultsExport() *cobra.Command {
	var f serviceFlags
	var tags []string
	var inTurns bool
	var output string
	cmd := &cobra.Command{
		Use:   "export PROJECT",
		Short: "Export results to standard output",
		Long: `Writes the collections of the artifacts with the given tags, or of all artifacts,
in Go's benchmark format, as CSV with one line for each value, or as a JSON array.
What was measured in turns with another artifact is left out; with --in-turns, it is
written instead, and names both.`,
		Example: `  benchloom results export go --tag 1.25.14 --tag 1.26.11 >results.txt
  benchstat -col tag -ignore collector results.txt
  benchloom results export go -o csv`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := bench.CheckName("project", args[0])
			for _, tag := range tags {
				err = errors.Join(err, bench.CheckTag(tag))
			}
			if err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			export := api.Export
			if inTurns {
				export = api.ExportInTurns
			}
			return reached(export(cmd.Context(), visible(cmd.OutOrStdout()), args[0], output, tags...))
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringSliceVar(&tags, "tag", nil, "only this artifact (repeatable)")
	cmd.Flags().BoolVar(&inTurns, "in-turns", false, "only results measured in turns")
	outputFlag(cmd, &output, formatBenchfmt, formatCSV, formatJSON)
	return cmd
}
