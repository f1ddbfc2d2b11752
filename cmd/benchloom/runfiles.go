package main

import (
	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newRunFiles() *cobra.Command {
	var f serviceFlags
	var output string
	cmd := &cobra.Command{
		Use:   "files RUN [PATH]",
		Short: "List the files that a run has kept, or download one",
		Long: `Lists the files that a command of a graph names as its uploads and that its run has
kept. With a path of the list, writes that file to standard output.`,
		Example: `  benchloom run files 5kq2n7x3b4m6p2aa-0f3c9a1e
  benchloom run files 5kq2n7x3b4m6p2aa-0f3c9a1e out/report.html >report.html`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := bench.ParseRunID(args[0])
			if err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			if len(args) > 1 {
				return reached(api.RunFile(cmd.Context(), id, args[1], cmd.OutOrStdout()))
			}
			files, err := api.RunFiles(cmd.Context(), id)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, apiclient.RunFileList{Files: files}, cli.RunFiles)
		},
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
