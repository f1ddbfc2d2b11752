package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newExplain() *cobra.Command {
	var f serviceFlags
	var output string
	cmd := &cobra.Command{
		Use:     "explain JOB|REQUEST",
		GroupID: groupUse,
		Short:   "Explain what a job or request is waiting for",
		Long: `Explains a job, named by its key: what it waits for, its position in its queue and
that queue's share, why each collector does not take it, why it has its size
class, and what its runs have cost. The ID of a run stands for its job.

Explains a request, named by its ID or as project:tag: what it waits for, its
position in its project's order of requests, and some of its open jobs, the next
one in detail.`,
		Example: `  benchloom explain 5kq2n7x3b4m6p2aa
  benchloom explain r7k2m4q9xt2
  benchloom explain go:1.26.0 -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, isJob := jobNamed(args[0])
			ref, err := requestRef(args[0])
			if !isJob && err != nil {
				return usage(fmt.Errorf("%w; or name a job by its key", err))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			if isJob {
				e, err := api.ExplainJob(cmd.Context(), key)
				if err != nil {
					return reached(err)
				}
				return show(cmd, output, e, cli.JobExplanation)
			}
			e, err := api.ExplainRequest(cmd.Context(), ref)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, e, cli.RequestExplanation)
		},
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// jobNamed returns the job named by a key or by the ID of a run.
func jobNamed(s string) (bench.JobKey, bool) {
	if run, err := bench.ParseRunID(s); err == nil {
		return run.Job(), true
	}
	key, err := bench.ParseJobKey(s)
	return key, err == nil
}
