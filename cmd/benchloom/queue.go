package main

import (
	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newQueue() *cobra.Command {
	return group(&cobra.Command{
		Use:     "queue",
		GroupID: groupUse,
		Short:   "Show, try out, pause or resume the order of requests",
		Example: `  benchloom queue show go
  benchloom queue simulate --file state.json --policy upstream`,
	}, newQueueShow(), newQueueSimulate(), newQueueAdmissions(), newQueuePause(), newQueueResume())
}

func newQueueShow() *cobra.Command {
	var f serviceFlags
	var output string
	cmd := &cobra.Command{
		Use:   "show PROJECT",
		Short: "Show whose turn it is, why, and when",
		Long: `Lists the open requests of a project in the order in which they run, each with
the reason for its place, what it waits for, and when it is expected to start and
end. Estimates rest on how long the same jobs took before; -o json and
'benchloom request show' say on what exactly.`,
		Example: `  benchloom queue show go
  benchloom queue show go -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			queue, err := api.Queue(cmd.Context(), args[0])
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, queue, cli.Queue)
		},
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
