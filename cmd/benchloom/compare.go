package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/report"
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
	flags.StringArrayVar(&f.metrics, "metric", nil, "metrics to show; size:* stands for all sizes, ns/op for those of all lines")
	flags.BoolVar(&f.all, "all", false, "show all rows, of all metrics unless --metric names some")
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
	cmd.Flags().Var(failing, "fail-on", "regression: exit with code 3 if a shown series changed for the worse")
	failing.complete(cmd, "fail-on")
}

const failOnRegression = "regression"

// comparisonHelp explains the verdicts and the flags common to compare and bench.
const comparisonHelp = `A verdict rests on pairs of iterations that were measured in turns, or on exact
values such as sizes:

  changed        there is a change, in the direction that is shown
  no difference  every change that the pairs allow is too small to matter
  undecided      neither is shown; the reason and what would decide it are given
  no suspicion   nothing was measured in turns, because stored results gave no
                 cause; the change that would have been seen is given

Without --metric or --all, rows of these metrics are shown: cpu-time, wall-time,
max-rss, instructions:u, sizes, and the units of benchmark outputs such as ns/op.
Other metrics explain a change and have no verdict. What is shown never changes a
verdict.

With --fail-on regression, the exit code is 3 if at least one series that is shown
changed for the worse. Undecided series and missing test cases do not count.`

// check rejects contradictory flags.
func (f *comparisonFlags) check(flags *pflag.FlagSet) error {
	for _, m := range f.metrics {
		if err := checkMetric(m); err != nil {
			return usage(err)
		}
	}
	if flags.Changed("fail-on") && f.failOn == "" {
		return usage(errors.New("--fail-on needs a value: use regression"))
	}
	return nil
}

// checkMetric refuses names that are neither a metric nor a series of a table: benchmark, line and unit.
func checkMetric(asked string) error {
	for name := range strings.SplitSeq(asked, ",") {
		words := strings.Fields(name)
		if len(words) == 0 || len(words) > 3 {
			return bench.CheckMetric(name)
		}
		if err := bench.CheckUnit(words[len(words)-1]); err != nil {
			return err
		}
	}
	return nil
}

// tableOptions returns the options for writing a table to w.
func (f *comparisonFlags) tableOptions(w io.Writer) report.TableOptions {
	sorting := map[string]report.Sorting{"name": report.ByName, "size": report.BySize, "certainty": report.ByCertainty}
	return report.TableOptions{
		Sorting: sorting[f.sort], OnlyRemarkable: !f.all, Reasons: f.reasons, Color: colorful(w), Width: terminalSize(w).Width,
	}
}

// verdict returns an error with exitRegression if the condition of --fail-on holds.
func (f *comparisonFlags) verdict(list []cli.Verdict) error {
	n := cli.Regressions(list)
	if f.failOn == "" || n == 0 {
		return nil
	}
	return &exitError{exitRegression, fmt.Errorf("%s found (--fail-on %s)", cli.Plural(n, "regression"), f.failOn)}
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
		Long: `Compares artifact B with artifact A, the baseline, and shows the rows that raised a
suspicion, with their verdicts, and a summary. Test cases that cannot be compared are
listed with the reason.

Stored results describe and raise suspicions. What was measured in turns ('benchloom
submit --adhoc PROJECT B --vs A') stands beside them; with --in-turns, only rows that
were measured so are shown.

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

// runCompare calls the API for the verdicts on all metrics, chooses those to show, and calls it
// for the text. The choice changes no verdict.
func runCompare(cmd *cobra.Command, api *apiclient.Client, query apiclient.CompareQuery, f *comparisonFlags, output string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	text, verdicts, err := f.choose(ctx, api, &query)
	if err != nil {
		return err
	}
	if output == formatJSON {
		if len(query.Metrics) > 0 {
			if text, _, err = compareJSON(ctx, api, query); err != nil {
				return err
			}
		}
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
	_, verdicts, err := f.choose(ctx, api, &query)
	if err != nil {
		return err
	}
	return f.verdict(verdicts)
}

// choose sets the query's metrics to those that are shown, and returns their verdicts and
// the comparison of all metrics as JSON.
func (f *comparisonFlags) choose(ctx context.Context, api *apiclient.Client, query *apiclient.CompareQuery) (string, []cli.Verdict, error) {
	text, verdicts, err := compareJSON(ctx, api, *query)
	if err != nil {
		return "", nil, err
	}
	chosen, err := cli.ChooseMetrics(cli.Measured(verdicts), cli.Shown(verdicts), f.metrics, f.all)
	if err != nil {
		return "", nil, usage(err)
	}
	if len(f.metrics) > 0 || !f.all {
		query.Metrics = chosen
	}
	return text, slices.DeleteFunc(verdicts, func(v cli.Verdict) bool { return !slices.Contains(chosen, v.Metric) }), nil
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
