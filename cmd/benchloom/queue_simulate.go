package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/cli"
)

// maxStateFile bounds a state file in bytes: some 200,000 requests.
const maxStateFile = 64 << 20

func newQueueSimulate() *cobra.Command {
	var file, output string
	policy := string(admission.Spec)
	cmd := &cobra.Command{
		Use:   "simulate --file FILE",
		Short: "Order the requests of a file as the service would",
		Long: `Orders the requests of a file by the rules of the service and gives the reason for
each position. No service needs to run. The file, or standard input for "-", is

  {"requests": [{"id": "r1", "tag": "c2", "type": "master", "parent": "c1", "pr": 7,
                 "created_at": "2026-01-31T12:00:00Z", "commit_date": null,
                 "status": "artifacts_ready"}],
   "completed": ["c1"]}

Types are release, master and try; statuses waiting_for_artifacts,
artifacts_ready, in_progress and completed; times are RFC 3339. Required are
type, created_at, status, and one of id and tag. Unknown fields are errors.

The policy "spec" orders by type (master before try), then by pull request number;
"upstream" by number, then by type.`,
		Example: `  benchloom queue simulate --file state.json
  benchloom queue simulate --file - -o json --policy upstream < state.json`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usage(errors.New("--file is missing; name a state file, or - for standard input"))
			}
			text, err := readStateFile(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			requests, completed, err := admission.DecodeState(text)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			order := admission.NewListing(admission.Order(requests, completed, admission.Policy(policy)))
			return show(cmd, output, order, cli.Order)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "state file; - for standard input")
	choice := &choice{value: &policy, valid: []string{string(admission.Spec), string(admission.Upstream)}}
	cmd.Flags().Var(choice, "policy", "order of requests: spec, upstream")
	choice.complete(cmd, "policy")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func readStateFile(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading the state file: %w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxStateFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the state file from %s: %w", name, err)
	case len(text) > maxStateFile:
		return nil, fmt.Errorf("reading the state file from %s: it is larger than %d MB", name, maxStateFile>>20)
	}
	return text, nil
}
