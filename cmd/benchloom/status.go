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

func newStatus() *cobra.Command {
	var f serviceFlags
	var watch bool
	var project, output string
	var limit int
	cmd := &cobra.Command{
		Use:     "status [REQUEST...]",
		GroupID: groupUse,
		Short:   "Show requests and their progress",
		Long: `Without arguments, lists the latest requests. With a request, named by its ID or
as project:tag, shows its status, jobs, runs and errors.

--watch follows the named requests, or all open ones, until they have ended; the
exit code is 4 if a named one did not succeed. On a terminal it draws progress in
place; elsewhere it prints a line for each change.`,
		Example: `  benchloom status
  benchloom status r7k2m4q9xt2
  benchloom status go:1.26.0
  benchloom status --watch --project go`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var refs []string
			for _, arg := range args {
				ref, err := requestRef(arg)
				if err != nil {
					return err
				}
				refs = append(refs, ref)
			}
			if limit < 1 {
				return usage(fmt.Errorf("--limit %d: use a number above 0", limit))
			}
			if watch && output == formatJSON {
				return usage(errors.New("--watch has no JSON; repeat the command without it"))
			}
			if project != "" && len(refs) > 0 {
				return usage(errors.New("--project applies to the list of requests only; leave it out"))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			query := apiclient.RequestQuery{Project: project, Limit: limit}
			switch {
			case watch:
				return watchRequests(cmd, api, refs, query)
			case len(refs) == 0:
				list, err := api.Requests(cmd.Context(), query)
				if err != nil {
					return reached(err)
				}
				return showRequests(cmd, output, list)
			}
			return showDetails(cmd, api, output, refs)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "follow until all have ended")
	cmd.Flags().StringVar(&project, "project", "", "only requests of this project")
	cmd.Flags().IntVar(&limit, "limit", 20, "maximum number of requests")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func showRequests(cmd *cobra.Command, output string, list apiclient.RequestList) error {
	if output == formatJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), list)
	}
	return cli.Requests(cmd.OutOrStdout(), list.Requests, view(cmd))
}

func showDetails(cmd *cobra.Command, api *apiclient.Client, output string, refs []string) error {
	for i, ref := range refs {
		d, err := api.Request(cmd.Context(), ref)
		if err != nil {
			return reached(err)
		}
		if i > 0 && output != formatJSON {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := show(cmd, output, d, cli.Request); err != nil {
			return err
		}
	}
	return nil
}

// watchRequests watches the named requests, else all open ones.
func watchRequests(cmd *cobra.Command, api *apiclient.Client, refs []string, query apiclient.RequestQuery) error {
	named := len(refs) > 0
	if !named {
		open, err := openRequests(cmd.Context(), api, query)
		if err != nil {
			return reached(err)
		}
		if refs = open; len(refs) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "No request is open.")
			return nil
		}
	}
	w := &watcher{api: api, refs: refs, out: cmd.OutOrStdout()}
	ended, err := w.run(cmd.Context())
	switch {
	case cmd.Context().Err() != nil:
		fmt.Fprintln(cmd.ErrOrStderr(), "stopped watching; the requests continue")
		return nil //nolint:nilerr // Ctrl-C is how watching ends
	case err != nil:
		return reached(err)
	case named:
		return outcomes(ended)
	}
	return nil
}

// openRequests returns the IDs of requests that have not ended, oldest first.
func openRequests(ctx context.Context, api *apiclient.Client, query apiclient.RequestQuery) ([]string, error) {
	var refs []string
	for {
		page, err := api.Requests(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Requests {
			if r.Status != bench.Completed {
				refs = append([]string{string(r.ID)}, refs...)
			}
		}
		if query.Cursor = page.Next; query.Cursor == "" || len(refs) >= query.Limit {
			return refs, nil
		}
	}
}

// watcher shows the progress of requests.
type watcher struct {
	api  *apiclient.Client
	refs []string
	// quiet suppresses output.
	quiet bool
	out   io.Writer

	seen   []apiclient.RequestDetail
	screen *cli.Screen
	away   bool
}

const (
	// watchEvery is the pause between two reads.
	watchEvery = time.Second
	// watchPatience is the time to wait for an API that does not answer.
	watchPatience = 5 * time.Minute
)

func (w *watcher) run(ctx context.Context) ([]apiclient.RequestDetail, error) {
	if terminalSize(w.out).Width > 0 {
		w.screen = cli.NewScreen(w.out)
	}
	return cli.Watch{
		Fetch: w.fetch, Transient: apiclient.IsTransient, Patience: watchPatience, Every: watchEvery,
		Show: w.show, Now: time.Now, Pause: pause,
	}.Run(ctx)
}

// fetch reads the requests. A request that has ended is not read again.
func (w *watcher) fetch(ctx context.Context) ([]apiclient.RequestDetail, error) {
	list := make([]apiclient.RequestDetail, len(w.refs))
	for i, ref := range w.refs {
		if w.seen != nil && w.seen[i].Status == bench.Completed {
			list[i] = w.seen[i]
			continue
		}
		var err error
		if list[i], err = w.api.Request(ctx, ref); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (w *watcher) show(list []apiclient.RequestDetail, away error) error {
	before := w.seen
	w.seen = list
	switch {
	case w.quiet:
		return nil
	case w.screen == nil:
		return w.lines(before, list, away)
	}
	size := terminalSize(w.out)
	size.Height-- // for the line below
	lines := cli.LiveLines(list, time.Now(), size)
	if away != nil {
		lines = append(lines, "the API does not answer; retrying")
	}
	return w.screen.Draw(lines)
}

func (w *watcher) lines(before, list []apiclient.RequestDetail, away error) error {
	lines := cli.Changes(before, list)
	if now := away != nil; now != w.away {
		w.away = now
		if now {
			lines = append(lines, fmt.Sprintf("retrying: %v", away))
		} else {
			lines = append(lines, "the API answers again")
		}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(w.out, "%s %s\n", time.Now().Format(time.TimeOnly), line); err != nil {
			return fmt.Errorf("writing progress: %w", err)
		}
	}
	return nil
}
