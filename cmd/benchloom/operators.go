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

// actFlags are the flags of every command that the audit records.
type actFlags struct {
	serviceFlags
	reason, key, output string
}

func (f *actFlags) add(cmd *cobra.Command) {
	f.serviceFlags.add(cmd.Flags())
	cmd.Flags().StringVar(&f.reason, "reason", "", "reason, recorded in the audit")
	cmd.Flags().StringVar(&f.key, "key", "", "idempotency key: a command repeated with the same key does nothing and gets the first answer again")
	outputFlag(cmd, &f.output, formatTable, formatJSON)
}

func (f *actFlags) act() apiclient.Act {
	return apiclient.Act{Reason: f.reason, IdempotencyKey: f.key}
}

// reasoned is act for commands that require a reason.
func (f *actFlags) reasoned() (apiclient.Act, error) {
	if strings.TrimSpace(f.reason) == "" {
		return apiclient.Act{}, usage(errors.New("a reason is needed for the audit: add --reason"))
	}
	return f.act(), nil
}

// told writes the result of an operation.
func (f *actFlags) told(cmd *cobra.Command, o apiclient.Operation, text string) error {
	if f.output == formatJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), o)
	}
	return cli.Operation(cmd.OutOrStdout(), o, text)
}

// toldOf writes the result of an operation on a request.
func (f *actFlags) toldOf(cmd *cobra.Command, r apiclient.RequestOperation, text string) error {
	if f.output == formatJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), r)
	}
	if r.Operation.DryRun {
		text = "would be open again"
	}
	return cli.Operation(cmd.OutOrStdout(), r.Operation, fmt.Sprintf("request %s (%s) %s", r.ID, cli.Subject(r.Request), text))
}

// onRequest completes a command that acts on a request.
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
		Short: "Cancel a request and stop its jobs",
		Long: `Ends a request with the outcome cancelled. Jobs that no other open request waits
for are stopped at once; results measured so far stay. Cancelling a cancelled
request changes nothing.`,
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
		Short: "Expire a request that has waited too long",
		Long: `Ends a request that waits for its artifacts or for admission, with the outcome
expired. With --force, it also ends a request in progress.`,
		Example: `  benchloom request expire r7k2m4q9xt2 --reason "the build will never come"`,
	}, &f, "has expired", func(ctx context.Context, api *apiclient.Client, ref string) (apiclient.RequestOperation, error) {
		return api.ExpireRequest(ctx, ref, apiclient.Expiry{Act: f.act(), Force: force})
	})
	cmd.Flags().BoolVar(&force, "force", false, "also expire a request in progress; its running jobs are stopped")
	return cmd
}

func newRequestSetQueue() *cobra.Command {
	var f actFlags
	cmd := &cobra.Command{
		Use:   "set-queue REQUEST QUEUE [JOB...]",
		Short: "Put a request's jobs into another queue",
		Long: `Puts the jobs of an open request that have not begun, or those named, into another
queue, which changes their level and their share. Without names, later jobs of the
request wait there, too. No job goes earlier than the limits of its submitter, or your
own, allow. That of a job for which other requests wait changes only to an earlier level.`,
		Example: `  benchloom request set-queue go:1.26.0 urgent --reason "security release"
  benchloom request set-queue r7k2m4q9xt2 idle 5kq2n7x3b4m6p2aa`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(errors.New("name the request, and the queue for its jobs; 'benchloom queue list' lists the queues"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := requestRef(args[0])
			if err != nil {
				return err
			}
			if err := bench.CheckQueue(args[1]); err != nil {
				return usage(err)
			}
			in := apiclient.QueueChange{Queue: args[1]}
			for _, arg := range args[2:] {
				key, err := bench.ParseJobKey(arg)
				if err != nil {
					return usage(err)
				}
				in.Jobs = append(in.Jobs, key)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			in.Act = f.act()
			r, err := api.SetQueue(cmd.Context(), ref, in)
			if err != nil {
				return reached(err)
			}
			return f.toldOf(cmd, r, "waits in queue "+args[1])
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
		Short: "Invalidate results",
		Long: `Marks results as invalid: those of a collector, a period, a project or an artifact.
They stay in the record but enter no comparison and no export. 'benchloom retrigger
REQUEST --lacking' measures their test cases again.`,
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
	cmd.Flags().StringVar(&in.Project, "project", "", "only results of this project")
	cmd.Flags().StringVar(&in.Tag, "tag", "", "only results of this artifact of the project")
	cmd.Flags().StringVar(&in.Collector, "collector", "", "only results measured by this collector")
	cmd.Flags().StringVar(&since, "since", "", "only results measured at this time or later: 2026-05-01T08:00:00Z, or a date")
	cmd.Flags().StringVar(&until, "until", "", "only results measured before this time")
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "only show which results these are")
	return cmd
}

// instant parses a point in time; nil if text is empty. A date means midnight UTC.
func instant(flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no time is an answer
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return &at, nil
		}
	}
	return nil, usage(fmt.Errorf("%s %q is not a time; write 2026-05-01T08:00:00Z, or 2026-05-01", flag, text))
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
		Long: `Removes an artifact with its results, requests and jobs. This cannot be undone;
'benchloom results invalidate' keeps the results in the record. An artifact with an
open request is not removed.`,
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
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be removed")
	return cmd
}

func newQueuePause() *cobra.Command {
	var f actFlags
	return onQueue(&cobra.Command{
		Use:   "pause PROJECT",
		Short: "Pause a project",
		Long: `Pauses a project: none of its requests is admitted and none of its jobs is handed
out until 'benchloom queue resume'. Jobs that were handed out before continue.`,
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
		Short:   "Resume a paused project",
		Example: `  benchloom queue resume go`,
	}, &f, "is resumed", func(ctx context.Context, api *apiclient.Client, project string) (apiclient.Operation, error) {
		return api.ResumeQueue(ctx, project, f.act())
	})
}

// onQueue completes a command that pauses or resumes a project.
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
		return f.told(cmd, o, "project "+args[0]+" "+done)
	}
	f.add(cmd)
	return cmd
}

func newAudit() *cobra.Command {
	var q apiclient.AuditQuery
	cmd := listing(&cobra.Command{
		Use:     "audit",
		GroupID: groupUse,
		Short:   "List who did what, and when",
		Long: `Lists what people and CI systems have changed, newest first: who, when, why, and the
result. That includes submissions, applied projects, uploaded suites, tokens, queues
and the commands of collectors.`,
		Example: `  benchloom audit --project go
  benchloom audit --subject r7k2m4q9xt2 -o json`,
	}, func(api *apiclient.Client, ctx context.Context) (apiclient.AuditList, error) {
		return api.Audit(ctx, q)
	}, cli.Audit)
	cmd.Flags().StringVar(&q.Project, "project", "", "only actions on this project")
	cmd.Flags().StringVar(&q.Who, "who", "", "only actions by this user")
	cmd.Flags().StringVar(&q.Subject, "subject", "", "only actions on this request ID, job key or tag")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "maximum number of entries, up to 500")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "start after the previous page, with the cursor that it gave")
	return cmd
}
