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
		Short: "Show a project's order of requests, or the shares of queues",
		Long: `For a project, lists its open requests in the order in which they run, each with
the reason for its position, what it waits for, and its expected start and end.
Estimates rest on how long the same jobs took before; -o json and 'benchloom
request show' name the basis.

For a queue, without a name, or with --by, lists the shares of queues, users, hosts
or pools:

  share     a weighted queue's part of the weights of all weighted queues with open
            jobs; at a task queue it shares only with queues that have jobs there
            ('benchloom explain JOB')
  started   runs that began within the last hour
  received  part of these runs
  wait      time from when a job was ready to when its run began, of these runs
  oldest    longest present wait of a job

A job that several hosts may take counts for each. A name with a colon is a queue;
any other is a project or, if there is none, a queue.`,
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
	cmd.Flags().Var(choice, "by", "list shares by queue, user, host or pool")
	choice.complete(cmd, "by")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// sharesWanted selects shares and their output format. unknown is the error of
// looking the name up as a project; nil if that was not tried.
type sharesWanted struct {
	by, name, output string
	unknown          error
}

func showShares(cmd *cobra.Command, api *apiclient.Client, w sharesWanted) error {
	shares, err := api.Shares(cmd.Context(), w.by, w.name)
	if w.unknown != nil && errors.Is(err, apiclient.ErrNotFound) {
		return fmt.Errorf("%w; nor is there a queue of that name with work: 'benchloom queue show' lists queues with work", w.unknown)
	} else if err != nil {
		return reached(err)
	}
	return show(cmd, w.output, shares, cli.Shares)
}
