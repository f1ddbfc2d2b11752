package main

import (
	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newProjectCommits() *cobra.Command {
	var f serviceFlags
	var output string
	var limit int
	cmd := &cobra.Command{
		Use:   "commits PROJECT",
		Short: "List a project's commits and the requests for them",
		Long: `Lists the commits of the branch that the project follows, newest first, with the
request for each. Skipped ones are older than what was to be requested when they
were first seen; 'benchloom submit PROJECT SHA --type master' has
one measured all the same.`,
		Example: `  benchloom project commits go
  benchloom project commits go --limit 10 -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			list, err := api.Commits(cmd.Context(), args[0], limit)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, list, cli.Commits)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 50, "at most so many, 1 to 500")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func newProjectSync() *cobra.Command {
	var f serviceFlags
	var output string
	cmd := &cobra.Command{
		Use:   "sync PROJECT",
		Short: "Look at a project's commits now",
		Long: `Runs the project's Schedule now instead of at its next time, and does not wait
for the end of it. A hook of the repository may do the same with
POST /api/v1/projects/PROJECT/sync.`,
		Example: `  benchloom project sync go`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			state, err := api.SyncProject(cmd.Context(), args[0])
			if err != nil {
				return reached(err)
			}
			if output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), state)
			}
			return cli.Synced(cmd.OutOrStdout(), args[0], state)
		},
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
