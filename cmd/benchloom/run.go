package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newRun() *cobra.Command {
	return group(&cobra.Command{
		Use:     "run",
		GroupID: groupUse,
		Short:   "Show a run",
		Example: `  benchloom run show 5kq2n7x3b4m6p2aa-0f3c9a1e --metrics`,
	}, newRunShow())
}

func newRunShow() *cobra.Command {
	var f serviceFlags
	var metrics bool
	var series []string
	var output string
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run, or what was sampled during it",
		Long: `Shows a run, named by its ID as 'benchloom job show' prints it. With --metrics, draws
what the machine and the job did meanwhile: each series with its least, mean and most,
and as a line over time; -o json and -o csv write every value. Series are named by
scope, name and device, such as job/cpu_used, or by name alone.`,
		Example: `  benchloom run show 5kq2n7x3b4m6p2aa-0f3c9a1e
  benchloom run show 5kq2n7x3b4m6p2aa-0f3c9a1e --metrics
  benchloom run show 5kq2n7x3b4m6p2aa-0f3c9a1e --metrics --series cpu_used -o csv`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := bench.ParseRunID(args[0])
			switch {
			case err != nil:
				return usage(err)
			case !metrics && len(series) > 0:
				return usage(errors.New("--series belongs to --metrics"))
			case !metrics && output == formatCSV:
				return usage(errors.New("-o csv writes the values of --metrics; use -o json for the run itself"))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			if !metrics {
				d, err := api.Run(cmd.Context(), id)
				if err != nil {
					return reached(err)
				}
				return show(cmd, output, d, cli.Run)
			}
			m, err := readMetrics(cmd.Context(), api, id, series)
			switch {
			case err != nil:
				return reached(err)
			case output == formatCSV:
				return cli.WriteMetricsCSV(visible(cmd.OutOrStdout()), m)
			}
			return show(cmd, output, m, cli.Metrics)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&metrics, "metrics", false, "show what was sampled during the run")
	cmd.Flags().StringSliceVar(&series, "series", nil, "only this series (repeatable)")
	outputFlag(cmd, &output, formatTable, formatJSON, formatCSV)
	return cmd
}

// readMetrics reads everything that was sampled during a run so far.
func readMetrics(ctx context.Context, api *apiclient.Client, id bench.RunID, series []string) (m cli.RunMetrics, err error) {
	for from, more := 0, true; more; {
		page, err := api.ProfileMetrics(ctx, id, from, series...)
		if err != nil {
			return m, err
		}
		m.Batches = append(m.Batches, page.Batches...)
		m.Summaries = append(m.Summaries, page.Summaries...)
		from, more = page.Next, page.More
	}
	// Afterwards, so that each attempt with values is listed.
	m.Profile, err = api.Profile(ctx, id)
	return m, err
}
