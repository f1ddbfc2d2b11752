package main

import "github.com/spf13/cobra"

func newSizeClass() *cobra.Command {
	return group(&cobra.Command{
		Use:     "sizeclass",
		GroupID: groupUse,
		Short:   "Show and simulate the choice of size classes",
		Example: `  benchloom sizeclass simulate --file job.json`,
	}, newSizeClassShow(), newSizeClassList(), newSizeClassSimulate())
}
