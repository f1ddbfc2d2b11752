package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newJob() *cobra.Command {
	return group(&cobra.Command{
		Use:     "job",
		GroupID: groupUse,
		Short:   "Show a job",
		Example: `  benchloom job show 5kq2n7x3b4m6p2aa`,
	}, newJobShow())
}

func newJobShow() *cobra.Command {
	var f serviceFlags
	var output string
	cmd := &cobra.Command{
		Use:     "show JOB",
		Short:   "Show a job with its test cases and runs",
		Long:    "Shows a job, named by its key as 'benchloom status REQUEST' prints it.",
		Example: `  benchloom job show 5kq2n7x3b4m6p2aa`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := bench.ParseJobKey(args[0])
			if err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			d, err := api.Job(cmd.Context(), key)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, d, cli.Job)
		},
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func newLogs() *cobra.Command {
	var f serviceFlags
	var number int
	var follow, raw bool
	cmd := &cobra.Command{
		Use:     "logs JOB|RUN",
		GroupID: groupUse,
		Short:   "Print the output of a run",
		Long: `Prints the output of a run, named by its ID, or of a job's last run. With
--follow, output is printed until the run ends. On a terminal, control sequences are
shown as text, such as \x1b[2J, and not obeyed; --raw passes them on.`,
		Example: `  benchloom logs 5kq2n7x3b4m6p2aa -f
  benchloom logs 5kq2n7x3b4m6p2aa --run 1
  benchloom logs 5kq2n7x3b4m6p2aa-0f3c9a1e`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, runErr := bench.ParseRunID(args[0])
			key, keyErr := bench.ParseJobKey(args[0])
			switch {
			case runErr != nil && keyErr != nil:
				return usage(fmt.Errorf("%w; or name a run by its ID", keyErr))
			case runErr == nil && number != 0:
				return usage(errors.New("--run belongs to a job; the run is named already"))
			case number < 0:
				return usage(fmt.Errorf("--run %d: runs count from 1", number))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			read := func(ctx context.Context, q apiclient.LogQuery) (apiclient.LogPiece, error) {
				q.Run = number
				return api.JobLog(ctx, key, q)
			}
			if runErr == nil {
				read = func(ctx context.Context, q apiclient.LogQuery) (apiclient.LogPiece, error) {
					return api.RunLog(ctx, run, q)
				}
			}
			out := cmd.OutOrStdout()
			if !raw {
				out = visible(out)
			}
			err = copyLog(cmd.Context(), out, read, follow)
			if follow && cmd.Context().Err() != nil {
				return nil //nolint:nilerr // Ctrl-C is how following ends
			}
			return reached(err)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().IntVar(&number, "run", 0, "number of the job's run (default: the last)")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print output until the run ends")
	cmd.Flags().BoolVar(&raw, "raw", false, "pass control sequences on to the terminal")
	return cmd
}

// longPoll bounds the API's wait for output before it answers without any. Its
// maximum is 20 s.
const longPoll = 20 * time.Second

// copyLog copies a log piece by piece.
func copyLog(ctx context.Context, w io.Writer, read func(context.Context, apiclient.LogQuery) (apiclient.LogPiece, error), follow bool) error {
	query := apiclient.LogQuery{}
	for {
		piece, err := read(ctx, query)
		switch {
		case err == nil:
		case follow && query.From > 0 && apiclient.IsTransient(err) && ctx.Err() == nil:
			if err := pause(ctx, watchEvery); err != nil {
				return err
			}
			continue
		default:
			return err
		}
		if _, err := w.Write(piece.Data); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
		query.From = piece.Next
		if piece.Complete || !follow && len(piece.Data) == 0 {
			if escaper, ok := w.(*cli.Escaper); ok {
				return escaper.Close()
			}
			return nil
		}
		if follow {
			query.Wait = longPoll
		}
	}
}
