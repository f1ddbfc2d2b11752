package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
)

func newQueue() *cobra.Command {
	return group(&cobra.Command{
		Use:     "queue",
		GroupID: groupUse,
		Short:   "Show, configure, try out, pause or resume whose turn it is",
		Example: `  benchloom queue show go
  benchloom queue list
  benchloom queue set-weight user:ada 50
  benchloom queue simulate --file state.json --policy upstream`,
	}, newQueueShow(), newQueueList(), newQueueApply(), newQueueSetWeight(), newQueueSimulate(), newQueueAdmissions(), newQueuePause(), newQueueResume())
}

func newQueueShow() *cobra.Command {
	return askOf(&cobra.Command{
		Use:   "show PROJECT",
		Short: "Show whose turn it is, why, and when",
		Long: `Lists the open requests of a project in the order in which they run, each with
the reason for its place, what it waits for, and when it is expected to start and
end. Estimates rest on how long the same jobs took before; -o json and
'benchloom request show' say on what exactly.`,
		Example: `  benchloom queue show go
  benchloom queue show go -o json`,
	}, func(ctx context.Context, api *apiclient.Client, project string) (apiclient.Queue, error) {
		return api.Queue(ctx, project)
	}, cli.Queue)
}
