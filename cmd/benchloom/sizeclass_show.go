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
		Short: "Show the learned sizes of a job shape",
		Long: `Shows what was learned about the jobs of a shape, named by the shape or by the key
of one of its jobs: the class of the next job and the reason; for each class its
probability, acceptable time, timeout and median; every remembered attempt and its
present meaning; the last failure on the largest class; probes.`,
		Example: `  benchloom sizeclass list
  benchloom sizeclass show 5kq2n7x3b4m6p2aa
  benchloom sizeclass show 5kq2n7x3b4m6p2aa -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return usage(errors.New("the shape is empty; name one that 'benchloom sizeclass list' lists, or a job's key"))
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
	cmd.Flags().StringVar(&project, "project", "", "project of the shape, if several projects have it")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func newSizeClassList() *cobra.Command {
	var f serviceFlags
	var output, project string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List job shapes with learned sizes",
		Long: `Lists job shapes with learned sizes, the latest learned first. Jobs have the same
shape if they differ only in their artifact: they have the same command line, or
the same test cases.`,
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
	cmd.Flags().StringVar(&project, "project", "", "only shapes of this project")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
