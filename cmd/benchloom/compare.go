package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/stats"
)

// comparisonFlags select the rows of a comparison and the condition for failure.
type comparisonFlags struct {
	metrics []string
	all     bool
	reasons bool
	sort    string
	failOn  string
}

func (f *comparisonFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.metrics, "metric", nil, "metrics to compare; size:* stands for all sizes")
	flags.BoolVar(&f.all, "all", false, "compare all metrics, and show rows without a significant difference")
	flags.BoolVar(&f.reasons, "reasons", false, "show the reason for each row's verdict")
	f.sort = "name"
	sorting := &choice{value: &f.sort, valid: []string{"name", "size", "certainty"}}
	flags.Var(sorting, "sort", "order of rows: name, size, certainty")
	sorting.complete(cmd, "sort")
	f.addFailOn(cmd)
}

// addFailOn adds --fail-on.
func (f *comparisonFlags) addFailOn(cmd *cobra.Command) {
	failing := &choice{value: &f.failOn, valid: []string{failOnRegression}}
	cmd.Flags().Var(failing, "fail-on", "regression: exit with code 3 if there is one")
	failing.complete(cmd, "fail-on")
}

const failOnRegression = "regression"

// comparisonHelp explains the flags common to compare and bench.
const comparisonHelp = `Without --metric or --all, these metrics are compared: cpu-time, wall-time,
max-rss, instructions:u, sizes, and the units of benchmark outputs such as ns/op.

With --fail-on regression, the exit code is 3 if at least one series of the
compared metrics is a significant regression: a rank test over the values of both
sides gives p < 0.05, the change is at least 0.2 % (or the series' own threshold)
and exceeds the noise by a margin that allows for the number of series. For exact
metrics (sizes), any growth counts. Undecided series and missing test cases are
shown but do not count.`

// check rejects contradictory flags.
func (f *comparisonFlags) check(flags *pflag.FlagSet) error {
	if f.all && len(f.metrics) > 0 {
		return usage(errors.New("--all compares all metrics; leave --metric out"))
	}
	for _, m := range f.metrics {
		if err := bench.CheckMetric(m); err != nil {
			return usage(err)
		}
	}
	if flags.Changed("fail-on") && f.failOn == "" {
		return usage(errors.New("--fail-on needs a value: use regression"))
	}
	return nil
}

// tableOptions returns the options for writing a table to w.
func (f *comparisonFlags) tableOptions(w io.Writer) stats.TableOptions {
	sorting := map[string]stats.Sorting{"name": stats.ByName, "size": stats.BySize, "certainty": stats.ByCertainty}
	return stats.TableOptions{
		Sorting: sorting[f.sort], OnlySignificant: !f.all, Reasons: f.reasons, Color: colorful(w), Width: terminalSize(w).Width,
	}
}

// verdict returns an error with exitRegression if the condition of --fail-on holds.
func (f *comparisonFlags) verdict(list []cli.Verdict) error {
	n := cli.Regressions(list)
	if f.failOn == "" || n == 0 {
		return nil
	}
	return &exitError{exitRegression, fmt.Errorf("%s found (--fail-on %s)", cli.Plural(n, "significant regression"), f.failOn)}
}

func newCompare() *cobra.Command {
	var f serviceFlags
	var c comparisonFlags
	var narrow selectionFlags
	var inTurns bool
	var output string
	cmd := &cobra.Command{
		Use:     "compare PROJECT A B",
		GroupID: groupUse,
		Short:   "Compare the results of two artifacts",
		Long: `Compares artifact B with artifact A, the baseline: rows with a significant
difference and a summary. Test cases that cannot be compared are listed with the
reason.

If both were measured in turns ('benchloom submit --adhoc PROJECT B --vs A'), those
results are compared, and a note says so. With --in-turns, no others are compared.

` + comparisonHelp,
		Example: `  benchloom compare go 1.25.14 1.26.11
  benchloom compare go 1.25.14 1.26.11 --metric cpu-time --all
  benchloom compare go 1.25.14 1.26.11 --fail-on regression -o markdown >comment.md`,
		Args: exactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(cmd.Flags()); err != nil {
				return err
			}
			selection, err := narrow.read()
			if err != nil {
				return err
			}
			if err := errors.Join(bench.CheckName("project", args[0]), bench.CheckTag(args[1]), bench.CheckTag(args[2])); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			query := apiclient.CompareQuery{
				Project: args[0], A: args[1], B: args[2], Benchmarks: selection.Benchmarks, Profiles: selection.Profiles,
				Scenarios: selection.Scenarios, Backends: selection.Backends, Targets: selection.Targets,
				OnlyInTurns: inTurns, Sort: c.sort, OnlySignificant: !c.all, Reasons: c.reasons,
			}
			return runCompare(cmd, api, query, &c, output)
		},
	}
	f.add(cmd.Flags())
	c.add(cmd)
	narrow.addNames(cmd.Flags())
	cmd.Flags().BoolVar(&inTurns, "in-turns", false, "compare only results measured in turns")
	outputFlag(cmd, &output, formatTable, formatJSON, formatMarkdown)
	return cmd
}

// runCompare calls the API three times: for the measured metrics, for the verdicts
// on the chosen ones, and for the text. The chosen metrics are the family to which
// corrections apply.
func runCompare(cmd *cobra.Command, api *apiclient.Client, query apiclient.CompareQuery, f *comparisonFlags, output string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	text, verdicts, err := compareJSON(ctx, api, query)
	if err != nil {
		return err
	}
	if query.Metrics, err = cli.ChooseMetrics(cli.Measured(verdicts), f.metrics, f.all); err != nil {
		return usage(err)
	}
	if len(query.Metrics) > 0 && !f.all {
		if text, verdicts, err = compareJSON(ctx, api, query); err != nil {
			return err
		}
	}
	if output == formatJSON {
		if err := cli.WriteJSON(out, json.RawMessage(text)); err != nil {
			return err
		}
		return f.verdict(verdicts)
	}
	format := apiclient.FormatText
	if output == formatMarkdown {
		format = apiclient.FormatMarkdown
	} else {
		query.Width, query.Color = min(terminalSize(out).Width, maxWidth), colorful(out)
		fmt.Fprintf(out, "project %s: %s (B) compared with %s (A)\n\n", query.Project, query.B, query.A)
	}
	if text, err = api.CompareText(ctx, query, format); err != nil {
		return reached(err)
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return f.verdict(verdicts)
}

// silentCompare compares as [runCompare] does but writes nothing.
func silentCompare(ctx context.Context, api *apiclient.Client, query apiclient.CompareQuery, f *comparisonFlags) error {
	_, verdicts, err := compareJSON(ctx, api, query)
	if err != nil {
		return err
	}
	if query.Metrics, err = cli.ChooseMetrics(cli.Measured(verdicts), f.metrics, f.all); err != nil {
		return usage(err)
	}
	if len(query.Metrics) > 0 {
		if _, verdicts, err = compareJSON(ctx, api, query); err != nil {
			return err
		}
	}
	return f.verdict(verdicts)
}

// compareJSON returns a comparison as JSON, and its verdicts.
func compareJSON(ctx context.Context, api *apiclient.Client, query apiclient.CompareQuery) (string, []cli.Verdict, error) {
	text, err := api.CompareText(ctx, query, formatJSON)
	if err != nil {
		return "", nil, reached(err)
	}
	verdicts, err := cli.ReadVerdicts(text)
	return text, verdicts, err
}

// maxWidth is the widest terminal that the API writes text for.
const maxWidth = 1000
