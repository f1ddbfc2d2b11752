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
request for each. Skipped commits were older than those that the first look
requested (backfill); 'benchloom submit PROJECT SHA --type master' measures one all
the same.`,
		Example: `  benchloom project commits go
  benchloom project commits go --limit 10 -o json`,
	}, func(ctx context.Context, api *apiclient.Client, project string) (apiclient.CommitList, error) {
		return api.Commits(ctx, project, limit)
	}, cli.Commits)
	cmd.Flags().IntVar(&limit, "limit", 50, "maximum number of commits, 1 to 500")
	return cmd
}

func newProjectSync() *cobra.Command {
	var synced string // the project's name, which the answer lacks
	return askOf(&cobra.Command{
		Use:   "sync PROJECT",
		Short: "Look for new commits of a project now",
		Long: `Triggers the project's Schedule now and does not wait for it to finish. A
repository hook can do the same with POST /api/v1/projects/PROJECT/sync.`,
		Example: `  benchloom project sync go`,
	}, func(ctx context.Context, api *apiclient.Client, project string) (apiclient.SourceState, error) {
		synced = project
		return api.SyncProject(ctx, project)
	}, func(w io.Writer, state apiclient.SourceState, _ cli.View) error { return cli.Synced(w, synced, state) })
}
