package main

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newRetention() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "retention",
		GroupID: groupUse,
		Short:   "Show or apply how long everything is kept",
		Args:    exactArgs(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		listing(&cobra.Command{
			Use:   "show",
			Short: "Show how long everything is kept, and what would be removed now",
			Long: `Lists, for each kind of data, how long it is kept, what the next pass would remove
now, and what was removed so far. Sizes are those of rows, without indexes. The
durations are those of the orchestrator (--keep) and of projects (keep).`,
			Example: `  benchloom retention show
  benchloom retention show -o json`,
		}, (*apiclient.Client).Retention, cli.Retention),
		newRetentionRun(),
	)
	return cmd
}

func newRetentionRun() *cobra.Command {
	var f serviceFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Remove what was kept long enough now",
		Long: `Begins a pass at once. The orchestrator makes one each hour anyway. It needs the
role admin.`,
		Example: `  benchloom retention run`,
		Args:    exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := f.connect()
			if err != nil {
				return err
			}
			if err := api.RunRetention(cmd.Context()); err != nil {
				return reached(err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "a pass begins; 'benchloom retention show' tells what it has removed")
			return nil
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// keeping returns how long everything is kept, after changes by the environment and then the
// flag.
func keeping(flag map[string]string, environ string) (bench.Retention, error) {
	kept := bench.DefaultRetention()
	texts := make(map[string]string)
	for _, pair := range strings.FieldsFunc(environ, func(r rune) bool { return r == ',' }) {
		kind, text, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return nil, fmt.Errorf("BENCHLOOM_KEEP: %q is no kind=duration, such as output=30d", pair)
		}
		texts[kind] = text
	}
	for _, source := range []map[string]string{texts, flag} {
		changed, err := bench.ParseRetention(source)
		if err != nil {
			return nil, err
		}
		maps.Copy(kept, changed)
	}
	return kept, nil
}
