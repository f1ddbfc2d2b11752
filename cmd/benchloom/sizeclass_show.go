package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newSizeClassShow() *cobra.Command {
	var f serviceFlags
	var output, project string
	cmd := &cobra.Command{
		Use:   "show SHAPE|JOB",
		Short: "Show what is known of how large a machine jobs need",
		Long: `Shows what was learned of the jobs of a shape, named by it or by the key of one of
them: on which class the next one runs and why; of each class its probability, the
acceptable time, the timeout and the median; every attempt that is remembered and
what it says today; the last failure on the largest class; probes.`,
		Example: `  benchloom sizeclass list
  benchloom sizeclass show 5kq2n7x3b4m6p2aa
  benchloom sizeclass show 5kq2n7x3b4m6p2aa -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return usage(errors.New("the shape is empty; name one as 'benchloom sizeclass list' lists them, or a job"))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			e, err := api.Shape(cmd.Context(), args[0], project)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, e, cli.Shape)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&project, "project", "", "which one is meant, where several projects have the shape")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func newSizeClassList() *cobra.Command {
	var f serviceFlags
	var output, project string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the shapes of jobs of whose size something is known",
		Long: `Lists of what shapes something is known, what was learned of last first. A shape is
what makes jobs alike whatever their artifact: the command line, or the test cases.`,
		Example: `  benchloom sizeclass list
  benchloom sizeclass list --project go -o json`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if project != "" {
				if err := bench.CheckName("project", project); err != nil {
					return usage(err)
				}
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			list, err := api.Shapes(cmd.Context(), project)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, list, cli.Shapes)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&project, "project", "", "only those of this project")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
