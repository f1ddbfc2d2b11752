package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/gosuite"
	"github.com/benchloom/benchloom/internal/suite"
)

func newSuite() *cobra.Command {
	return group(&cobra.Command{
		Use:     "suite",
		GroupID: groupLocal,
		Short:   "Create and check suites",
		Example: `  benchloom suite init my-suite
  benchloom suite check my-suite`,
	}, newSuiteInit(), newSuiteCheck(), newSuiteList(), newSuiteSchema())
}

// suiteProblems adds the directory to each problem of a suite, so that editors find
// the file. Selecting something that the suite lacks is a usage error.
func suiteProblems(dir string, err error) error {
	var wrong *suite.Error
	if !errors.As(err, &wrong) {
		if errors.Is(err, bench.ErrInvalid) {
			return usage(err)
		}
		return err
	}
	lines := make([]string, len(wrong.Problems))
	for i, p := range wrong.Problems {
		p.File = filepath.Join(dir, filepath.FromSlash(p.File))
		lines[i] = p.String()
	}
	return errors.New(strings.Join(lines, "\n"))
}

func newSuiteInit() *cobra.Command {
	var name, module, out string
	cmd := &cobra.Command{
		Use:   "init [DIR | --go MODULE]",
		Short: "Create a suite",
		Long: `Creates a small working suite in DIR, to start from.

With --go, writes a suite for the benchmarks of a Go module in a git repository:
each benchmark function is a test case, and artifacts are built from revisions of
the repository, once each. Existing files are not changed.`,
		Example: `  benchloom suite init my-suite
  benchloom suite init --go . --out ../my-suite
  benchloom bench ../my-suite --artifact HEAD --vs HEAD~1`,
		Args: rangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case module != "" && len(args) > 0:
				return usage(errors.New("--go names the module; name the suite's folder with --out"))
			case module != "":
				return initGo(cmd, module, out, name)
			case out != "":
				return usage(errors.New("--out belongs to --go; name the folder as the argument"))
			case len(args) == 0:
				return usage(errors.New("name the folder of the suite, or a Go module with --go"))
			}
			if name == "" {
				dir, err := filepath.Abs(args[0])
				if err != nil {
					return fmt.Errorf("finding the directory: %w", err)
				}
				name = filepath.Base(dir)
			}
			if err := suite.Init(args[0], name); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "created suite %s in %s; edit it, then run 'benchloom suite check %s'\n", name, args[0], args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the suite (default: that of the folder or the module)")
	cmd.Flags().StringVar(&module, "go", "", "directory of a Go module: write a suite for its benchmarks")
	cmd.Flags().StringVar(&out, "out", "", "folder of the suite, with --go (default: NAME-suite)")
	return cmd
}

// initGo writes a suite for a Go module.
func initGo(cmd *cobra.Command, dir, out, name string) error {
	m, err := gosuite.Find(cmd.Context(), dir, os.Environ())
	if err != nil {
		return err
	}
	if name == "" {
		name = m.Name()
	}
	if out == "" {
		out = name + "-suite"
	}
	if err := m.Write(out, name); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), `created suite %s in %s: %s in %s of %s
compare two revisions:   benchloom bench %s --artifact HEAD --vs HEAD~1
`, name, out, cli.Plural(m.Benchmarks(), "benchmark"), cli.Plural(len(m.Packages), "package"), cli.Printable(m.Path), out)
	return nil
}

func newSuiteCheck() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check a suite",
		Long: `Checks the suite in a directory, the current one by default. Prints all problems
and warnings with file, line and column, the numbers of jobs and test cases, and
the content hash.`,
		Example: `  benchloom suite check suites/go`,
		Args:    rangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := suiteDir(args)
			if err != nil {
				return err
			}
			report, err := suite.Check(dir)
			if err != nil {
				return err
			}
			for i := range report.Problems {
				report.Problems[i].File = filepath.Join(dir, filepath.FromSlash(report.Problems[i].File))
			}
			if err := show(cmd, output, report, cli.SuiteReport); err != nil {
				return err
			}
			if !report.OK() {
				return fmt.Errorf("the suite in %s is not valid", dir)
			}
			return nil
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// suiteDir returns the named directory, else the current one.
func suiteDir(args []string) (string, error) {
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return "", fmt.Errorf("%s is not a suite: %w; name a directory with a %s", dir, err, suite.FileName)
	}
	return dir, nil
}

func newSuiteList() *cobra.Command {
	var narrow selectionFlags
	var output string
	cmd := &cobra.Command{
		Use:     "list [DIR]",
		Short:   "List the test cases of a suite or a selection of it",
		Example: `  benchloom suite list suites/go --set demo`,
		Args:    rangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			selection, err := narrow.read()
			if err != nil {
				return err
			}
			dir, err := suiteDir(args)
			if err != nil {
				return err
			}
			loaded, err := suite.LoadDir(dir)
			if err != nil {
				return suiteProblems(dir, err)
			}
			plans, err := loaded.Expand(selection)
			if err != nil {
				return suiteProblems(dir, err)
			}
			if output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), plannedJobs(plans))
			}
			return cli.TestCases(cmd.OutOrStdout(), plans, view(cmd))
		},
	}
	narrow.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// plannedJob is a job that a selection expands to.
type plannedJob struct {
	Kind      bench.JobKind    `json:"kind"`
	MinSize   bench.SizeClass  `json:"min_size"`
	TestCases []bench.TestCase `json:"test_cases"`
}

func plannedJobs(plans []suite.JobPlan) []plannedJob {
	jobs := make([]plannedJob, len(plans))
	for i, p := range plans {
		jobs[i] = plannedJob{Kind: p.Kind, MinSize: p.MinSize, TestCases: p.TestCases}
	}
	return jobs
}

func newSuiteSchema() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of suite.yaml, for editors",
		Example: `  benchloom suite schema >suite.schema.json`,
		Args:    exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := cmd.OutOrStdout().Write(suite.Schema()); err != nil {
				return fmt.Errorf("writing the schema: %w", err)
			}
			return nil
		},
	}
}
