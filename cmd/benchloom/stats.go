package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
)

func newStats() *cobra.Command {
	return group(&cobra.Command{
		Use:     "stats",
		GroupID: groupUse,
		Short:   "Show how well the service serves its users",
		Example: `  benchloom stats wait
  benchloom stats wait --queue project:go --since 72h --block 2h`,
	}, newStatsWait())
}

func newStatsWait() *cobra.Command {
	var f serviceFlags
	var output string
	var q apiclient.WaitQuery
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Show how long jobs wait for a collector",
		Long: `For each pool and queue, lists the jobs that became able to run within a period:

  in time      part of them that started within the queue's objective, of those that
               started or have waited for longer than it; 15 minutes unless 'benchloom
               queue apply' sets wait_objective
  started      those that started; waiting: those that can run and have not; late:
               those of them that have waited for longer than the objective
  p50, p90     time within which half and nine tenths of them started
  not able     time in which they could not run, which is no waiting: they were not in
               their turn, their project was paused, their account had as much under way
               as it may, or no collector that can run them was live

A job waits from the first moment at which nothing keeps it from running. With
--block, blocks of 15 minutes or two hours are listed as well, by when jobs became
able to run. Below, how long requests took that were completed within the period,
from what caused them: the commit, for those that a commit source has made.`,
		Example: `  benchloom stats wait
  benchloom stats wait --pool lab --since 6h --block 15m
  benchloom stats wait --project go -o json`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := f.connect()
			if err != nil {
				return err
			}
			q.Since = since.String()
			stats, err := api.WaitStats(cmd.Context(), q)
			if err != nil {
				return reached(err)
			}
			write := cli.Waits
			if q.Block != "" {
				write = cli.WaitsByBlock
			}
			return show(cmd, output, stats, write)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&q.Pool, "pool", "", "only this pool, by its task queue or its name")
	cmd.Flags().StringVar(&q.Queue, "queue", "", "only this queue")
	cmd.Flags().StringVar(&q.Project, "project", "", "only jobs of this project")
	cmd.Flags().DurationVar(&since, "since", 24*time.Hour, "period before now: a multiple of 15m, at most 168h")
	block := &choice{value: &q.Block, valid: []string{"15m", "2h"}}
	cmd.Flags().Var(block, "block", "list blocks of time, too: 15m or 2h")
	block.complete(cmd, "block")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
