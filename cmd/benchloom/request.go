package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newRequest() *cobra.Command {
	return group(&cobra.Command{
		Use:     "request",
		GroupID: groupUse,
		Short:   "Show and manage requests",
		Example: `  benchloom request show r7k2m4q9xt2
  benchloom request cancel go:1.26.0 --reason "wrong date"
  benchloom request unstick go:1.26.0 --dry-run`,
	}, newRequestShow(), newRequestJobs(), newRequestCancel(), newRequestExpire(), newRequestSetQueue(), newRequestUnstick(), newArtifactsReady())
}

func newRequestShow() *cobra.Command {
	var f serviceFlags
	var output string
	cmd := &cobra.Command{
		Use:     "show REQUEST",
		Short:   "Show a request with its jobs, runs and errors",
		Example: `  benchloom request show r7k2m4q9xt2`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := requestRef(args[0])
			if err != nil {
				return err
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			return showDetails(cmd, api, output, []string{ref})
		},
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func newRequestJobs() *cobra.Command {
	var f serviceFlags
	var status, output string
	var limit int
	cmd := &cobra.Command{
		Use:   "jobs REQUEST",
		Short: "List the jobs of a request",
		Long:  "Lists the jobs of a request, in order of creation.",
		Example: `  benchloom request jobs r7k2m4q9xt2 --status failure
  benchloom request jobs r7k2m4q9xt2 --limit 0 -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := requestRef(args[0])
			if err != nil {
				return err
			}
			if limit < 0 {
				return usage(fmt.Errorf("--limit %d: use a number above 0, or 0 for all", limit))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			list, err := requestJobs(cmd.Context(), api, ref, bench.JobStatus(status), limit)
			if err != nil {
				return reached(err)
			}
			if output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), list)
			}
			return cli.Jobs(cmd.OutOrStdout(), list.Jobs, view(cmd))
		},
	}
	f.add(cmd.Flags())
	statuses := &choice{value: &status, valid: []string{"queued", "handed_out", "in_progress", "success", "failure", "cancelled"}}
	cmd.Flags().Var(statuses, "status", "only jobs with this status: "+strings.Join(statuses.valid, ", "))
	statuses.complete(cmd, "status")
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number of jobs; 0 for all")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// jobsPage is the number of jobs requested at once.
const jobsPage = 1000

// requestJobs lists at most limit jobs of a request; if limit is 0, all.
func requestJobs(ctx context.Context, api *apiclient.Client, ref string, status bench.JobStatus, limit int) (apiclient.JobList, error) {
	out := apiclient.JobList{Jobs: []apiclient.Job{}}
	query := apiclient.JobQuery{Status: status}
	for {
		query.Limit = jobsPage
		if limit > 0 {
			query.Limit = min(jobsPage, limit-len(out.Jobs))
		}
		page, err := api.RequestJobs(ctx, ref, query)
		if err != nil {
			return out, err
		}
		out.Jobs, out.Next = append(out.Jobs, page.Jobs...), page.Next
		if query.After = page.Next; query.After == "" || len(out.Jobs) == limit {
			return out, nil
		}
	}
}

func newArtifactsReady() *cobra.Command {
	var f serviceFlags
	var artifact apiclient.ArtifactsReady
	var output string
	cmd := &cobra.Command{
		Use:   "artifacts-ready REQUEST --tag TAG",
		Short: "Report that a request's artifacts are ready",
		Long: `Reports that the artifact TAG of a try build can be fetched. A CI system calls it
after the build. Repeating it changes nothing, and a request that has ended is not
started again.`,
		Example: `  benchloom request artifacts-ready r7k2m4q9xt2 --tag 5f1c0de --parent 4e0b9cd`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := requestRef(args[0])
			if err != nil {
				return err
			}
			if artifact.Tag == "" {
				return usage(errors.New("--tag is missing: name the artifact that is ready"))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			n, err := api.ArtifactsReady(cmd.Context(), ref, artifact)
			if err != nil {
				return reached(err)
			}
			if output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), n)
			}
			what := "its artifacts are ready"
			switch {
			case n.Late:
				what = "it had ended before: " + cli.Standing(n.Request)
			case n.Duplicate:
				what = "its artifacts were ready before; it is " + cli.Standing(n.Request)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "request %s (%s): %s\n", n.Request.ID, cli.Printable(cli.Subject(n.Request)), what)
			return nil
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&artifact.Tag, "tag", "", "tag of the artifact")
	cmd.Flags().StringVar(&artifact.Parent, "parent", "", "tag of the commit that it was built from (default: from the commit source)")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
