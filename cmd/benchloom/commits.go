package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
)

func newProjectCommits() *cobra.Command {
	var limit int
	cmd := askOf(&cobra.Command{
		Use:   "commits PROJECT",
		Short: "List a project's commits and the requests for them",
		Long: `Lists the commits of the branch that the project follows, newest first, with the
request for each. Skipped ones are older than what was to be requested when they
were first seen; 'benchloom submit PROJECT SHA --type master' has
one measured all the same.`,
		Example: `  benchloom project commits go
  benchloom project commits go --limit 10 -o json`,
	}, func(ctx context.Context, api *apiclient.Client, project string) (apiclient.CommitList, error) {
		return api.Commits(ctx, project, limit)
	}, cli.Commits)
	cmd.Flags().IntVar(&limit, "limit", 50, "at most so many, 1 to 500")
	return cmd
}

func newProjectSync() *cobra.Command {
	var synced string // the project's name: the answer does not repeat it
	return askOf(&cobra.Command{
		Use:   "sync PROJECT",
		Short: "Look at a project's commits now",
		Long: `Runs the project's Schedule now instead of at its next time, and does not wait
for the end of it. A hook of the repository may do the same with
POST /api/v1/projects/PROJECT/sync.`,
		Example: `  benchloom project sync go`,
	}, func(ctx context.Context, api *apiclient.Client, project string) (apiclient.SourceState, error) {
		synced = project
		return api.SyncProject(ctx, project)
	}, func(w io.Writer, state apiclient.SourceState, _ cli.View) error { return cli.Synced(w, synced, state) })
}
