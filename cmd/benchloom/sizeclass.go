package main

import "github.com/spf13/cobra"

func newSizeClass() *cobra.Command {
	return group(&cobra.Command{
		Use:     "sizeclass",
		GroupID: groupUse,
		Short:   "Show and try out how size classes are chosen",
		Example: `  benchloom sizeclass simulate --file job.json`,
	}, newSizeClassShow(), newSizeClassList(), newSizeClassSimulate())
}
