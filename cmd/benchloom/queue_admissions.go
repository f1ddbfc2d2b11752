package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newQueueAdmissions() *cobra.Command {
	var f serviceFlags
	var output, state string
	cmd := &cobra.Command{
		Use:   "admissions PROJECT",
		Short: "Show who was admitted when, and from what that followed",
		Long: `Lists the latest admissions of a project, the oldest first. Each is recorded with
what the queue looked like at that moment: --state REQUEST writes that as
'benchloom queue simulate' reads it, which then names the request that was
admitted as the first that may start. A request that was admitted more than once
has its latest.`,
		Example: `  benchloom queue admissions go
  benchloom queue admissions go --state r7k2m4q9xt2 > state.json
  benchloom queue simulate --file state.json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			if state != "" && cmd.Flags().Changed("output") {
				return usage(errors.New("--state writes a state file, which has one format; leave --output out"))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			list, err := api.Admissions(cmd.Context(), args[0])
			if err != nil {
				return reached(err)
			}
			if state != "" {
				return writeState(cmd.OutOrStdout(), list, args[0], bench.RequestID(state))
			}
			return show(cmd, output, list, cli.Admissions)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&state, "state", "", "write the state from which this `REQUEST` was admitted")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// writeState writes what the latest admission of a request was decided from.
func writeState(w io.Writer, list apiclient.AdmissionList, project string, id bench.RequestID) error {
	for i := len(list.Admissions) - 1; i >= 0; i-- {
		a := list.Admissions[i]
		if a.Request != id {
			continue
		}
		var text bytes.Buffer
		if err := json.Indent(&text, a.State, "", "  "); err != nil {
			return fmt.Errorf("reading the state from which %s was admitted: %w", id, err)
		}
		text.WriteByte('\n')
		_, err := w.Write(text.Bytes())
		return err
	}
	return fmt.Errorf("no admission of request %s is recorded in project %s: 'benchloom queue admissions %s' lists those that are", id, project, project)
}
