package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newQueueShow() *cobra.Command {
	var f serviceFlags
	var output, by string
	cmd := &cobra.Command{
		Use:   "show [PROJECT|QUEUE] [--by queue|user|host|pool]",
		Short: "Show whose turn it is, why, and when; and who has had which share",
		Long: `Of a project: lists its open requests in the order in which they run, each with
the reason for its place, what it waits for, and when it is expected to start and
end. Estimates rest on how long the same jobs took before; -o json and
'benchloom request show' say on what exactly.

Without a name, of a queue, or with --by: lists what queues, users, hosts or pools
are to have and have had. "share" is a weighted queue's part of the weights of all
weighted queues with open jobs, wherever these wait: at a task queue it shares only
with those that have jobs there ('benchloom explain JOB'); "received" its part of the runs that began within
the last hour, which "started" counts. Waits are from the moment when a job was
ready to its run's start, of the same runs; "oldest" is how long the job has waited
that has waited longest. A job that several hosts may take counts for each.

A name with a colon is a queue's; any other a project's, else a queue's.`,
		Example: `  benchloom queue show
  benchloom queue show go
  benchloom queue show user:ada
  benchloom queue show --by host -o json`,
		Args: rangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.Join(args, "")
			ofProject := len(args) == 1 && by == "" && !strings.Contains(name, ":")
			if ofProject {
				if err := bench.CheckName("project or queue", name); err != nil {
					return usage(err)
				}
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			var unknown error
			if ofProject {
				q, err := api.Queue(cmd.Context(), name)
				if err == nil {
					return show(cmd, output, q, cli.Queue)
				} else if !errors.Is(err, apiclient.ErrNotFound) {
					return reached(err)
				}
				unknown = err
			}
			return showShares(cmd, api, sharesWanted{by: by, name: name, output: output, unknown: unknown})
		},
	}
	f.add(cmd.Flags())
	choice := &choice{value: &by, valid: []string{"queue", "user", "host", "pool"}}
	cmd.Flags().Var(choice, "by", "whose shares: queue, user, host, pool")
	choice.complete(cmd, "by")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// sharesWanted is which shares are asked for, and how they are written. unknown is
// why the name is no project's, where it might have been.
type sharesWanted struct {
	by, name, output string
	unknown          error
}

func showShares(cmd *cobra.Command, api *apiclient.Client, w sharesWanted) error {
	shares, err := api.Shares(cmd.Context(), w.by, w.name)
	if w.unknown != nil && errors.Is(err, apiclient.ErrNotFound) {
		return fmt.Errorf("%w; nor is there a queue of that name with work: 'benchloom queue show' lists those that have", w.unknown)
	} else if err != nil {
		return reached(err)
	}
	return show(cmd, w.output, shares, cli.Shares)
}
