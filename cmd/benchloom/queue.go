package main

import "github.com/spf13/cobra"

func newQueue() *cobra.Command {
	return group(&cobra.Command{
		Use:     "queue",
		GroupID: groupUse,
		Short:   "Manage queues",
		Example: `  benchloom queue show go
  benchloom queue list
  benchloom queue set-weight user:ada 50
  benchloom queue show --by user
  benchloom queue simulate --file state.json --policy upstream`,
	}, newQueueShow(), newQueueList(), newQueueApply(), newQueueSetWeight(), newQueueSimulate(), newQueueAdmissions(), newQueuePause(), newQueueResume())
}
