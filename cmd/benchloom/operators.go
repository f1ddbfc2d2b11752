package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

// actFlags are those of every command that the audit keeps.
type actFlags struct {
	serviceFlags
	reason, key, output string
}

func (f *actFlags) add(cmd *cobra.Command) {
	f.serviceFlags.add(cmd.Flags())
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for those who wonder")
	cmd.Flags().StringVar(&f.key, "key", "", "the same key again is answered as the first time, and nothing is done")
	outputFlag(cmd, &f.output, formatTable, formatJSON)
}

func (f *actFlags) act() apiclient.Act {
	return apiclient.Act{Reason: f.reason, IdempotencyKey: f.key}
}

// reasoned is act for what needs a reason.
func (f *actFlags) reasoned() (apiclient.Act, error) {
	if strings.TrimSpace(f.reason) == "" {
		return apiclient.Act{}, usage(errors.New("a reason is needed, for those who wonder later: add --reason"))
	}
	return f.act(), nil
}

// told writes what was done.
func (f *actFlags) told(cmd *cobra.Command, o apiclient.Operation, text string) error {
	if f.output == formatJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), o)
	}
	return cli.Operation(cmd.OutOrStdout(), o, text)
}

// toldOf writes what was done to a request.
func (f *actFlags) toldOf(cmd *cobra.Command, r apiclient.RequestOperation, text string) error {
	if f.output == formatJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), r)
	}
	return cli.Operation(cmd.OutOrStdout(), r.Operation, fmt.Sprintf("request %s (%s) %s", r.ID, cli.Subject(r.Request), text))
}

// onRequest makes a command that does something to a request.
func onRequest(cmd *cobra.Command, f *actFlags, done string, do func(context.Context, *apiclient.Client, string) (apiclient.RequestOperation, error)) *cobra.Command {
	cmd.Args = exactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := requestRef(args[0])
		if err != nil {
			return err
		}
		api, err := f.connect()
		if err != nil {
			return err
		}
		r, err := do(cmd.Context(), api, ref)
		if err != nil {
			return reached(err)
		}
		return f.toldOf(cmd, r, done)
	}
	f.add(cmd)
	return cmd
}

func newRequestCancel() *cobra.Command {
	var f actFlags
	return onRequest(&cobra.Command{
		Use:   "cancel REQUEST",
		Short: "End a request; its running jobs are stopped",
		Long: `Ends a request. Jobs for which no other open request waits are stopped at once;
what was measured stays. Cancelling a request that was cancelled changes nothing.`,
		Example: `  benchloom request cancel r7k2m4q9xt2 --reason "wrong date"`,
	}, &f, "is cancelled", func(ctx context.Context, api *apiclient.Client, ref string) (apiclient.RequestOperation, error) {
		return api.CancelRequest(ctx, ref, f.act())
	})
}

func newRequestExpire() *cobra.Command {
	var f actFlags
	var force bool
	cmd := onRequest(&cobra.Command{
		Use:   "expire REQUEST",
		Short: "End a request that has waited too long",
		Long: `Ends a request that waits for its artifacts or for its turn, with the outcome
expired. With --force also one that is in progress.`,
		Example: `  benchloom request expire r7k2m4q9xt2 --reason "the build will never come"`,
	}, &f, "has expired", func(ctx context.Context, api *apiclient.Client, ref string) (apiclient.RequestOperation, error) {
		return api.ExpireRequest(ctx, ref, apiclient.Expiry{Act: f.act(), Force: force})
	})
	cmd.Flags().BoolVar(&force, "force", false, "also when it is in progress; its running jobs are stopped")
	return cmd
}

func newRequestRetry() *cobra.Command {
	var f actFlags
	return onRequest(&cobra.Command{
		Use:   "retry REQUEST",
		Short: "Open a request that has ended again, for what lacks a result",
		Long: `Opens a request that has ended again. It takes its turn in the queue once more;
then only test cases without a valid result are measured, by new jobs and by the
project's present suite. What has a result stays.`,
		Example: `  benchloom request retry go:1.26.0 --reason "the disk was full"`,
	}, &f, "is open again", func(ctx context.Context, api *apiclient.Client, ref string) (apiclient.RequestOperation, error) {
		return api.RetryRequest(ctx, ref, f.act())
	})
}

func newRequestRemeasure() *cobra.Command {
	var f actFlags
	var benchmarks []string
	cmd := onRequest(&cobra.Command{
		Use:   "remeasure REQUEST",
		Short: "Open a request that has ended again, for what has results too",
		Long: `Opens a request that has ended again and measures what it has results of once
more. The new results count from then on; the former stay in the record.`,
		Example: `  benchloom request remeasure go:1.26.0 --benchmark gin --reason "looks odd"`,
	}, &f, "is open again", func(ctx context.Context, api *apiclient.Client, ref string) (apiclient.RequestOperation, error) {
		return api.RemeasureRequest(ctx, ref, apiclient.Remeasurement{Act: f.act(), Benchmarks: benchmarks})
	})
	cmd.Flags().StringSliceVar(&benchmarks, "benchmark", nil, "only this benchmark; may be repeated")
	return cmd
}

func newJobRetry() *cobra.Command {
	var f actFlags
	cmd := &cobra.Command{
		Use:   "retry JOB",
		Short: "Give a job that has ended another go",
		Long: `Puts a new job in the place of one that has ended, for its test cases that lack
a result. Its request is opened again when it has ended.`,
		Example: `  benchloom job retry 5kq2n7x3b4m6p2aa --reason "the disk was full"`,
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
			r, err := api.RetryJob(cmd.Context(), key, f.act())
			if err != nil {
				return reached(err)
			}
			return f.toldOf(cmd, r, "has job "+string(key)+" tried again")
		},
	}
	f.add(cmd)
	return cmd
}

func newResultsInvalidate() *cobra.Command {
	var f actFlags
	var in apiclient.Invalidation
	var since, until string
	cmd := &cobra.Command{
		Use:   "invalidate",
		Short: "Make results count no more",
		Long: `Marks the results that were measured by a collector, in a time, or for an
artifact or project as invalid. They stay in the record, but in no comparison and
no export. 'benchloom request retry' measures their test cases again.`,
		Example: `  benchloom results invalidate --collector bench-3 --since 2026-05-01T08:00:00Z --reason "a fan was dead" --dry-run
  benchloom results invalidate --project go --tag 1.26.0 --reason "the wrong build"`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if in.Act, err = f.reasoned(); err != nil {
				return err
			}
			if in.Since, err = instant("--since", since); err != nil {
				return err
			}
			if in.Until, err = instant("--until", until); err != nil {
				return err
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			done, err := api.InvalidateResults(cmd.Context(), in)
			if err != nil {
				return reached(err)
			}
			return f.told(cmd, done, "results are invalid")
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&in.Project, "project", "", "only those of this project")
	cmd.Flags().StringVar(&in.Tag, "tag", "", "only those of this artifact of the project")
	cmd.Flags().StringVar(&in.Collector, "collector", "", "only those that it measured")
	cmd.Flags().StringVar(&since, "since", "", "only those measured then or later: 2026-05-01T08:00:00Z, or a date")
	cmd.Flags().StringVar(&until, "until", "", "only those measured before")
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "only tell which these are")
	return cmd
}

// instant reads a point in time; nil for none. A date is its first moment in UTC.
func instant(flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no time is an answer
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return &at, nil
		}
	}
	return nil, usage(fmt.Errorf("%s %q is no time; write 2026-05-01T08:00:00Z, or 2026-05-01", flag, text))
}

func newArtifact() *cobra.Command {
	return group(&cobra.Command{
		Use:     "artifact",
		GroupID: groupUse,
		Short:   "Remove an artifact",
		Example: `  benchloom artifact purge go 1.26.0 --reason "withdrawn" --dry-run`,
	}, newArtifactPurge())
}

func newArtifactPurge() *cobra.Command {
	var f actFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "purge PROJECT TAG",
		Short: "Remove an artifact with its results, requests and jobs",
		Long: `Removes an artifact with all that was measured of it, its requests and their
jobs. There is no way back; 'benchloom results invalidate' keeps what it takes out.
It is refused while a request for the artifact is open.`,
		Example: `  benchloom artifact purge go 1.26.0 --reason "withdrawn" --dry-run`,
		Args:    exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(bench.CheckName("project", args[0]), bench.CheckTag(args[1])); err != nil {
				return usage(err)
			}
			act, err := f.reasoned()
			if err != nil {
				return err
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			done, err := api.PurgeArtifact(cmd.Context(), apiclient.Purge{Act: act, Project: args[0], Tag: args[1], DryRun: dryRun})
			if err != nil {
				return reached(err)
			}
			return f.told(cmd, done, fmt.Sprintf("artifact %s of %s is removed", args[1], args[0]))
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only tell what would be removed")
	return cmd
}

func newQueuePause() *cobra.Command {
	var f actFlags
	return onQueue(&cobra.Command{
		Use:   "pause PROJECT",
		Short: "Admit no request of a project and hand none of its jobs out",
		Long: `Pauses a project's queue: no request is admitted and no job is handed out until
'benchloom queue resume'. What was handed out before goes on.`,
		Example: `  benchloom queue pause go --reason "the machines are moved"`,
	}, &f, "is paused", func(ctx context.Context, api *apiclient.Client, project string) (apiclient.Operation, error) {
		act, err := f.reasoned()
		if err != nil {
			return apiclient.Operation{}, err
		}
		return api.PauseQueue(ctx, project, act)
	})
}

func newQueueResume() *cobra.Command {
	var f actFlags
	return onQueue(&cobra.Command{
		Use:     "resume PROJECT",
		Short:   "End the pause of a project's queue",
		Example: `  benchloom queue resume go`,
	}, &f, "goes on", func(ctx context.Context, api *apiclient.Client, project string) (apiclient.Operation, error) {
		return api.ResumeQueue(ctx, project, f.act())
	})
}

// onQueue makes a command that does something to a project's queue.
func onQueue(cmd *cobra.Command, f *actFlags, done string, do func(context.Context, *apiclient.Client, string) (apiclient.Operation, error)) *cobra.Command {
	cmd.Args = exactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := bench.CheckName("project", args[0]); err != nil {
			return usage(err)
		}
		api, err := f.connect()
		if err != nil {
			return err
		}
		o, err := do(cmd.Context(), api, args[0])
		if err != nil {
			return reached(err)
		}
		return f.told(cmd, o, "the queue of "+args[0]+" "+done)
	}
	f.add(cmd)
	return cmd
}

func newAudit() *cobra.Command {
	var q apiclient.AuditQuery
	cmd := listing(&cobra.Command{
		Use:     "audit",
		GroupID: groupUse,
		Short:   "List what operators did, and why",
		Long:    "Lists what operators did, the newest first: who, when, why, and what came of it.",
		Example: `  benchloom audit --project go
  benchloom audit --subject r7k2m4q9xt2 -o json`,
	}, func(api *apiclient.Client, ctx context.Context) (apiclient.AuditList, error) {
		return api.Audit(ctx, q)
	}, cli.Audit)
	cmd.Flags().StringVar(&q.Project, "project", "", "only what concerns this project")
	cmd.Flags().StringVar(&q.Who, "who", "", "only what this user did")
	cmd.Flags().StringVar(&q.Subject, "subject", "", "only what was done to this: a request's ID, a job's key, a tag")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "at most so many, up to 500")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "go on where the page before ended, with what it gave as next")
	return cmd
}
