package main

import "github.com/spf13/cobra"

func newQueue() *cobra.Command {
	return group(&cobra.Command{
		Use:     "queue",
		GroupID: groupUse,
		Short:   "Try out the order of requests",
		Example: `  benchloom queue show go
  benchloom queue simulate --file state.json --policy upstream`,
	}, newQueueSimulate())
}
