package main

import (
	"context"
	"encoding/json"
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
		Short:   "Show a run, and the files that it has kept",
		Example: `  benchloom run show 5kq2n7x3b4m6p2aa-0f3c9a1e --metrics`,
	}, newRunShow(), newRunFiles())
}

func newRunShow() *cobra.Command {
	var f serviceFlags
	var metrics, follow bool
	var series []string
	var output string
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run, or what was sampled during it",
		Long: `Shows a run, named by its ID as 'benchloom job show' prints it. With --metrics, draws
what the machine and the job did meanwhile: each series with its least, mean and most,
and as a line over time; -o json and -o csv write every value. Series are named by
scope, name and device, such as job/cpu_used, or by name alone.

With --follow, goes on until the run has ended and everything has arrived: -o csv writes
values as they arrive, -o json one object for each upload, a line each. The table comes
at the end.`,
		Example: `  benchloom run show 5kq2n7x3b4m6p2aa-0f3c9a1e
  benchloom run show 5kq2n7x3b4m6p2aa-0f3c9a1e --metrics
  benchloom run show 5kq2n7x3b4m6p2aa-0f3c9a1e --metrics --series cpu_used -o csv
  benchloom run show 5kq2n7x3b4m6p2aa-0f3c9a1e --metrics --follow -o csv`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := bench.ParseRunID(args[0])
			switch {
			case err != nil:
				return usage(err)
			case !metrics && len(series) > 0:
				return usage(errors.New("--series belongs to --metrics"))
			case !metrics && follow:
				return usage(errors.New("--follow belongs to --metrics"))
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
			if follow && output != formatTable {
				return followMetrics(cmd, api, id, output, series)
			}
			if follow {
				err := untilSampled(cmd.Context(), api, id, func(apiclient.ProfileMetrics) error { return nil }, series)
				if err != nil {
					return err
				}
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
	cmd.Flags().BoolVar(&follow, "follow", false, "go on until the run has ended (with --metrics)")
	cmd.Flags().StringSliceVar(&series, "series", nil, "only this series (repeatable)")
	outputFlag(cmd, &output, formatTable, formatJSON, formatCSV)
	return cmd
}

// followMetrics writes samples as they arrive.
func followMetrics(cmd *cobra.Command, api *apiclient.Client, id bench.RunID, output string, series []string) error {
	out := visible(cmd.OutOrStdout())
	if output == formatJSON {
		lines := json.NewEncoder(out)
		return untilSampled(cmd.Context(), api, id, func(p apiclient.ProfileMetrics) error {
			if len(p.Batches)+len(p.Summaries) == 0 {
				return nil
			}
			return lines.Encode(p)
		}, series)
	}
	if err := cli.WriteMetricsCSV(out, cli.RunMetrics{}); err != nil { // its heading
		return err
	}
	return untilSampled(cmd.Context(), api, id, func(p apiclient.ProfileMetrics) error { return cli.AppendMetricsCSV(out, p.Batches) }, series)
}

// followAttempts bounds the streams in a row that break off without a sample: with their pauses, about a minute.
const followAttempts = 10

// untilSampled takes a run's samples until the run is over. If the stream breaks off, it goes on with the samples not taken yet.
func untilSampled(ctx context.Context, api *apiclient.Client, id bench.RunID, each func(apiclient.ProfileMetrics) error, series []string) error {
	for next, over := 0, false; !over; {
		err := apiclient.Retry(ctx, apiclient.RetryPolicy{Attempts: followAttempts}, func(ctx context.Context) (err error) {
			before := next
			next, err = api.FollowProfile(ctx, id, next, each, series...)
			if over = err == nil; apiclient.IsTransient(err) && next > before {
				return nil // attempts are counted anew
			}
			return err
		})
		if err != nil {
			return reached(err)
		}
	}
	return nil
}

// readMetrics reads all samples of a run so far.
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
