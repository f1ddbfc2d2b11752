package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/fairshare"
)

func newQueueApply() *cobra.Command {
	var f actFlags
	var file string
	var replace, dryRun bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Configure queues and account limits from a file",
		Long: `Reads queues and account limits from a YAML or JSON file and applies them: all of
them, or none if any is invalid. What the file does not name stays as it is; with
--replace, it returns to its defaults.

  queues:
    - {name: "user:ada", weight: 50}          # shares by weight: 0.1 to 1000, default 1
    - {name: single-build, weight: 30}        # a queue of its own: submit --queue single-build
    - {name: nightly, class: strict, level: 4} # 1, 2: before all weighted queues; 4, 5: after them
    - {name: "project:go", wait_objective: 5m} # its jobs should start within it: 'benchloom stats wait'
  accounts:
    - {account: "*", max_running: 8, max_queued: 20000, first_level: 2}
    - {account: ada, first_level: 1}          # an account's own row replaces that of *
    - {account: ada, branch: dev, first_level: 3}

The queues vip (before all others) and idle (after all others) always exist. A
change applies at once to jobs that are not handed out yet; a new level also to
those that are.`,
		Example: `  benchloom queue apply -f queues.yaml
  benchloom queue apply -f queues.yaml --replace --dry-run`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usage(errors.New("no file: name the file with -f, or - for standard input"))
			}
			wanted, err := readQueues(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			done, err := api.ApplyQueues(cmd.Context(), apiclient.QueueConfig{
				Act: f.act(), Queues: wanted.Queues, Accounts: wanted.Accounts, Replace: replace, DryRun: dryRun,
			})
			if err != nil {
				return reached(err)
			}
			return f.told(cmd, done, "queues are configured")
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with queues and accounts; - for standard input")
	cmd.Flags().BoolVar(&replace, "replace", false, "reset what the file does not name to its defaults")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	return cmd
}

// readQueues reads a file of queues and account limits.
func readQueues(in io.Reader, file string) (fairshare.File, error) {
	var text []byte
	var err error
	if file == "-" {
		file = "stdin.yaml"
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return fairshare.File{}, fmt.Errorf("reading the queue file: %w", err)
	}
	return cli.ReadQueueFile(file, text)
}

func newQueueList() *cobra.Command {
	return listing(&cobra.Command{
		Use:   "list",
		Short: "List queues and account limits",
		Long: `Lists queues in the order in which they are served. Weighted queues share by their
weights; a strict queue goes before (or after) all queues of another level, and a
warning names those that it can starve. Jobs are in the queue of their submitter
(user:ACCOUNT), a project's releases and commits in the project's (project:NAME),
unless another queue is named.`,
		Example: `  benchloom queue list
  benchloom queue list -o json`,
	}, (*apiclient.Client).Queues, cli.Queues)
}

func newQueueSetWeight() *cobra.Command {
	var f actFlags
	var create bool
	cmd := &cobra.Command{
		Use:   "set-weight QUEUE WEIGHT",
		Short: "Set the weight of a queue",
		Long: `Sets a weighted queue's share relative to the others, from 0.1 to 1000. The default
is 1. The weight applies to all jobs that are not handed out yet, which is all but
a few for each collector.

Without --create, the queue must be configured, belong to a known account or
project, or have jobs; any other name is taken for a mistake.`,
		Example: `  benchloom queue set-weight user:ada 50
  benchloom queue set-weight project:go 2.5 --reason "the release is near"`,
		Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			weight, err := strconv.ParseFloat(args[1], 64)
			if err != nil {
				return usage(fmt.Errorf("weight %q is not a number; use %g to %g", args[1], fairshare.MinWeight, fairshare.MaxWeight))
			}
			if err := errors.Join(bench.CheckQueue(args[0]), fairshare.CheckWeight(args[0], weight)); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			done, err := api.SetWeight(cmd.Context(), args[0], apiclient.QueueWeight{Act: f.act(), Weight: weight, Create: create})
			if err != nil {
				return reached(err)
			}
			return f.told(cmd, done, fmt.Sprintf("queue %s has weight %g", args[0], weight))
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&create, "create", false, "also accept an unknown queue")
	return cmd
}

func (f *submitFlags) checkQueue() error {
	if f.queue != "" {
		if err := bench.CheckQueue(f.queue); err != nil {
			return usage(fmt.Errorf("--queue: %w", err))
		}
	}
	if f.branch != "" {
		if err := fairshare.CheckBranch(f.branch); err != nil {
			return usage(fmt.Errorf("--branch: %w", err))
		}
	}
	return nil
}
