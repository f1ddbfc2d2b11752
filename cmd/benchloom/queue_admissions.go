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
		Short: "List a project's admissions",
		Long: `Lists the latest admissions of a project, oldest first. Each is recorded with the
state that decided it. --state REQUEST writes that state for 'benchloom queue
simulate', which then lists the admitted request as the first that may start. If a
request was admitted more than once, its last admission counts.`,
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
	cmd.Flags().StringVar(&state, "state", "", "write the state that decided the admission of `REQUEST`")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// writeState writes the state that decided a request's latest admission.
func writeState(w io.Writer, list apiclient.AdmissionList, project string, id bench.RequestID) error {
	for i := len(list.Admissions) - 1; i >= 0; i-- {
		a := list.Admissions[i]
		if a.Request != id {
			continue
		}
		var text bytes.Buffer
		if err := json.Indent(&text, a.State, "", "  "); err != nil {
			return fmt.Errorf("reading the state that decided the admission of %s: %w", id, err)
		}
		text.WriteByte('\n')
		_, err := w.Write(text.Bytes())
		return err
	}
	return fmt.Errorf("no admission of request %s is recorded in project %s: 'benchloom queue admissions %s' lists those recorded", id, project, project)
}
