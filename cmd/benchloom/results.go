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
	var output string
	cmd := &cobra.Command{
		Use:   "export PROJECT",
		Short: "Export results to standard output",
		Long: `Writes the collections of the artifacts with the given tags, or of all artifacts,
in Go's benchmark format, as CSV with one line for each value, or as a JSON array.`,
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
			return reached(api.Export(cmd.Context(), cmd.OutOrStdout(), args[0], output, tags...))
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringSliceVar(&tags, "tag", nil, "only this artifact (repeatable)")
	outputFlag(cmd, &output, formatBenchfmt, formatCSV, formatJSON)
	return cmd
}
