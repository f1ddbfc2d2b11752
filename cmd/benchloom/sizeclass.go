package main

import "github.com/spf13/cobra"

func newSizeClass() *cobra.Command {
	return group(&cobra.Command{
		Use:     "sizeclass",
		GroupID: groupUse,
		Short:   "Try out how size classes are chosen",
		Example: `  benchloom sizeclass simulate --file job.json`,
	}, newSizeClassSimulate())
}
