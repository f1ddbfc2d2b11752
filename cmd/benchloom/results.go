package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newResults() *cobra.Command {
	return group(&cobra.Command{
		Use:     "results",
		GroupID: groupUse,
		Short:   "Export, invalidate or check results",
		Example: `  benchloom results export go --tag 1.25.14 --tag 1.26.11 >results.txt`,
	}, newResultsExport(), newResultsInvalidate(), newResultsCheck(), newResultsRebuild())
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

func newResultsCheck() *cobra.Command {
	var f serviceFlags
	var output string
	cmd := &cobra.Command{
		Use:   "check PROJECT",
		Short: "Check packed results against stored ones",
		Long: `Compares the packed results of a project, which pages and comparisons read, with the
rows that they are derived from, and prints what differs; then it exits with 1.
Artifacts that have changed since they were packed are read from their rows until they
are packed again, and are only counted. It reads every value: some tenths of a second
for each large artifact. It needs the role admin.`,
		Example: `  benchloom results check go
  benchloom results check go -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			found, err := api.CheckResults(cmd.Context(), args[0])
			if err != nil {
				return reached(err)
			}
			if err := show(cmd, output, found, cli.PackedCheck); err != nil {
				return err
			}
			if n := len(found.Differences); n > 0 {
				return fmt.Errorf("%s between packed and stored results; 'benchloom results rebuild %s' packs them anew, and please report it: it must not happen", cli.Plural(n, "difference"), args[0])
			}
			return nil
		},
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func newResultsRebuild() *cobra.Command {
	var f actFlags
	cmd := &cobra.Command{
		Use:   "rebuild PROJECT",
		Short: "Pack all results of a project anew",
		Long: `Removes the packed results of a project, which pages and comparisons read. The
orchestrator packs them anew, the newest artifacts first; until then pages read the
rows of results, and take longer. Results themselves do not change. It needs the role
admin.`,
		Example: `  benchloom results rebuild go --reason "results check found differences"`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			act, err := f.reasoned()
			if err != nil {
				return err
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			done, err := api.RebuildResults(cmd.Context(), args[0], act)
			if err != nil {
				return reached(err)
			}
			return f.told(cmd, done, "the results of "+args[0]+" are packed anew")
		},
	}
	f.add(cmd)
	return cmd
}
