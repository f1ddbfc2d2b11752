package main

import (
	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
)

func newRequestUnstick() *cobra.Command {
	var f serviceFlags
	var options apiclient.Unstick
	var output string
	cmd := &cobra.Command{
		Use:   "unstick REQUEST",
		Short: "Find out why a request is stuck, and repair it",
		Long: `Asks the record and Temporal what a request waits for and since when, and prints
the findings with their remedies, stuck ones first. Safe repairs are made at once:
missing workflows are started again, and a reconciliation hands out waiting jobs.
With --force, a workflow whose tasks keep failing is reset to its first decision;
it reads the record again and continues from there.`,
		Example: `  benchloom request unstick r7k2m4q9xt2 --dry-run
  benchloom request unstick go:1.26.0 --force`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := requestRef(args[0])
			if err != nil {
				return err
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			u, err := api.UnstickRequest(cmd.Context(), ref, options)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, u, cli.Unstuck)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&options.DryRun, "dry-run", false, "only look, repair nothing")
	cmd.Flags().BoolVar(&options.Force, "force", false, "also reset workflows whose tasks keep failing")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
