package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/graphset"
)

func newRetrigger() *cobra.Command {
	return again(false, &cobra.Command{
		Use:     "retrigger GRAPH|REQUEST [JOB...]",
		GroupID: groupUse,
		Short:   "Run jobs of a graph again, and those that need them",
		Long: `Runs jobs that have ended again: those named, or those that --select matches, of one
graph or of all graphs of a request. New jobs measure all of their test cases, in a new
graph of the same set; the former results stay in the record.

If other jobs need them, --downstream says whether these run again too: none, all, or
the portion that --select matches. What needs a job starts after it.

With --lacking, only test cases without a valid result are measured: of one named job,
or of a whole request that has ended. What the project's present suite adds is planned
when it is the request's turn.

Fields of --select are kind, stage, state, target and benchmark; see 'benchloom graph
show'. With --preview, nothing runs: it only tells which jobs would, and their machine
time.`,
		Example: `  benchloom retrigger go:1.26.0 --lacking --reason "the disk was full"
  benchloom retrigger go:1.26.0 --select state=failure --preview
  benchloom retrigger go:1.26.0 --select stage=own,benchmark=gin --reason "looks odd"
  benchloom retrigger r7k2m4q9xt2 5kq2n7x3b4m6p2aa --downstream all --reason "a noisy machine"
  benchloom retrigger r7k2m4q9xt2-1 --downstream none --key again-1
  benchloom retrigger go:1.26.0 5kq2n7x3b4m6p2aa --downstream portion --select benchmark=gin`,
	})
}

func newRerun() *cobra.Command {
	return again(true, &cobra.Command{
		Use:     "rerun GRAPH|REQUEST [JOB...]",
		GroupID: groupUse,
		Short:   "Run the same jobs of a graph again, and those that need them",
		Long: `Runs jobs that have ended again as themselves: those named, or those that --select
matches, of one graph or of all graphs of a request. They keep their keys, and get another
run with all of their test cases; the newest results count. 'benchloom retrigger' makes
new jobs instead, also in place of those that were skipped.

If other jobs need them, --downstream says whether these run again too: none, all, or
the portion that --select matches. What runs again with what it needs starts after it.

Fields of --select are kind, stage, state, target and benchmark; see 'benchloom graph
show'. With --preview, nothing runs: it only tells which jobs would, and their machine
time.`,
		Example: `  benchloom rerun go:1.26.0 --select state=failure --reason "a full disk"
  benchloom rerun r7k2m4q9xt2 5kq2n7x3b4m6p2aa --downstream all --preview
  benchloom rerun r7k2m4q9xt2 5kq2n7x3b4m6p2aa --times 5 --budget 2h
  benchloom rerun r7k2m4q9xt2-1 --downstream none --key again-1`,
	})
}

// again adds the flags of a command that runs jobs again, and what it does.
func again(rerun bool, cmd *cobra.Command) *cobra.Command {
	call := (*apiclient.Client).Retrigger
	if rerun {
		call = (*apiclient.Client).Rerun
	}
	var f actFlags
	var in apiclient.Retrigger
	var selectors []string
	var preview bool
	var budget time.Duration
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(errors.New("name the graph, or the request, of which jobs run again"))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := graphRefOf(args[0])
		if err != nil {
			return err
		}
		for _, arg := range args[1:] {
			key, err := bench.ParseJobKey(arg)
			if err != nil {
				return usage(err)
			}
			in.Jobs = append(in.Jobs, key)
		}
		in.Select = strings.Join(selectors, ",")
		if _, err := graphset.ParseSelector(in.Select); err != nil {
			return usage(err)
		}
		if _, err := graphset.ParseDownstream(in.Downstream); err != nil {
			return usage(err)
		}
		api, err := f.connect()
		if err != nil {
			return err
		}
		in.Act, in.Budget = f.act(), budget.Seconds()
		r, err := call(api, cmd.Context(), ref, in, preview)
		if err != nil {
			return reached(err)
		}
		if f.output == formatJSON {
			return cli.WriteJSON(cmd.OutOrStdout(), r)
		}
		text := fmt.Sprintf("jobs of request %s (%s) run again", r.ID, cli.Subject(r.Request))
		if r.Operation.Graph != "" {
			text += " as graph " + r.Operation.Graph
		}
		if err := cli.Operation(cmd.OutOrStdout(), r.Operation, text); err != nil || r.Operation.Preview == nil {
			return err
		}
		return cli.PreviewedJobs(cmd.OutOrStdout(), *r.Operation.Preview, view(cmd))
	}
	f.add(cmd)
	if !rerun {
		cmd.Flags().BoolVar(&in.Lacking, "lacking", false, "measure only test cases without a valid result, of a job or of a whole request")
	}
	cmd.Flags().StringSliceVar(&selectors, "select", nil, "jobs to run again, or the portion downstream of named ones: FIELD=VALUE (repeatable)")
	cmd.Flags().StringVar(&in.Downstream, "downstream", "", "what becomes of the jobs that need them: none, portion, all")
	cmd.Flags().IntVar(&in.Times, "times", 1, "how often each of them runs, 1 to 100")
	cmd.Flags().DurationVar(&budget, "budget", 0, "refuse what would take more machine time than this, such as 2h; 0: whatever it takes")
	cmd.Flags().BoolVar(&preview, "preview", false, "only tell what would run again, and its machine time")
	return cmd
}
