package main

import (
	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
)

func newRequestUnstick() *cobra.Command {
	var f serviceFlags
	var wish apiclient.Unstick
	var output string
	cmd := &cobra.Command{
		Use:   "unstick REQUEST",
		Short: "Find out why a request does not move, and mend it",
		Long: `Asks the record and Temporal what a request waits for and since when, and
prints it with the remedy: what is stuck first. What is safe is mended at once:
workflows that are missing are started again, and a reconciliation runs, which
hands out what waits. With --force a workflow whose tasks keep failing is set back
to its first decision; it reads the record again and goes on from there.`,
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
			u, err := api.UnstickRequest(cmd.Context(), ref, wish)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, u, cli.Unstuck)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&wish.DryRun, "dry-run", false, "only look, mend nothing")
	cmd.Flags().BoolVar(&wish.Force, "force", false, "also reset workflows whose tasks keep failing")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
