package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/suite"
)

func newProject() *cobra.Command {
	return group(&cobra.Command{
		Use:     "project",
		GroupID: groupUse,
		Short:   "Create, change and show projects",
		Example: `  benchloom project apply -f project.yaml
  benchloom project list`,
	}, newProjectApply(), newProjectList(), newProjectShow(), newProjectCommits(), newProjectSync())
}

func newProjectApply() *cobra.Command {
	var f serviceFlags
	var file, folder, output string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Create or change a project from a file",
		Long: `Reads a project from a YAML file, uploads its suite if the service lacks it, and
creates or changes the project. Prints the changes.

An unknown key is an error that names its line and column. Keys: name, suite
(the suite's directory, relative to the file), description, targets, artifacts
(provider, parameters, tags), source (git, branch, look_back, releases, every,
backfill), queue (policy, max_in_progress), size (class), max_job_fails, verify,
verify_budget and verify_at_least.

source.git names the repository whose commits are benchmarked: an absolute path on
the orchestrator's machine, or a URL that git can fetch. Each commit of the branch
(default main) gets a request; look_back (commits 100, days 29) bounds how far back.
releases is a pattern of tags, such as v*. The first look requests everything within
look_back; backfill: 10 limits it to the newest ten commits and ten releases.

verify says what is measured again, in turns with the baseline, until there is a
verdict: suspects (the default), all or off. verify_budget (default 25%) bounds the
machine time that this adds to a request, as a share of its own; verify_at_least
(default 10m) is what it may take in any case.

--dry-run changes no project. The suite is uploaded all the same, which has no
effect by itself.`,
		Example: `  benchloom project apply -f project.yaml
  benchloom project apply -f project.yaml --suite ./suite --dry-run`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usage(errors.New("no file: name the project's file with -f, or - for standard input"))
			}
			wanted, dir, err := readProject(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			if folder != "" {
				dir = folder
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			applied, err := apply(cmd.Context(), api, wanted, dir, dryRun)
			if err != nil {
				return reached(err)
			}
			if output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), applied)
			}
			return cli.Applied(cmd.OutOrStdout(), applied)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVarP(&file, "file", "f", "", "project file; - for standard input")
	cmd.Flags().StringVar(&folder, "suite", "", "directory of the suite, instead of the file's")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// readProject reads a project file. It returns the project and its suite's directory.
func readProject(in io.Reader, file string) (apiclient.Project, string, error) {
	var text []byte
	var err error
	if file == "-" {
		file = "stdin.yaml"
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return apiclient.Project{}, "", fmt.Errorf("reading the project's file: %w", err)
	}
	p, err := cli.ReadProjectFile(file, text)
	if err != nil {
		return apiclient.Project{}, "", err
	}
	return apiclient.Project{Name: p.Name, Config: p.ProjectConfig}, p.Suite, nil
}

// problemUnknownSuite is the type of the problem of a project whose suite was not
// uploaded.
const problemUnknownSuite = "urn:benchloom:unknown-suite"

// apply applies a project and uploads its suite if the service lacks it.
func apply(ctx context.Context, api *apiclient.Client, wanted apiclient.Project, folder string, dryRun bool) (apiclient.Applied, error) {
	if folder == "" {
		return api.ApplyProject(ctx, wanted, dryRun)
	}
	if _, err := suiteDir([]string{folder}); err != nil {
		return apiclient.Applied{}, err
	}
	bundle, err := suite.Pack(folder)
	if err != nil {
		return apiclient.Applied{}, err
	}
	if _, err := bundle.Load(); err != nil {
		return apiclient.Applied{}, suiteProblems(folder, err)
	}
	wanted.SuiteHash = bundle.Hash
	applied, err := api.ApplyProject(ctx, wanted, dryRun)
	var problem *apiclient.Problem
	if !errors.As(err, &problem) || problem.Type != problemUnknownSuite {
		return applied, err
	}
	if _, err := api.PutSuite(ctx, bundle.Hash, bundle.Archive); err != nil {
		return applied, fmt.Errorf("uploading the suite: %w", err)
	}
	return api.ApplyProject(ctx, wanted, dryRun)
}

func newProjectList() *cobra.Command {
	return listing(&cobra.Command{
		Use:     "list",
		Short:   "List all projects",
		Example: `  benchloom project list`,
	}, (*apiclient.Client).Projects, cli.Projects)
}

func newProjectShow() *cobra.Command {
	return askOf(&cobra.Command{
		Use:     "show PROJECT",
		Short:   "Show a project's configuration",
		Example: `  benchloom project show go`,
	}, func(ctx context.Context, api *apiclient.Client, project string) (apiclient.Project, error) {
		return api.Project(ctx, project)
	}, cli.Project)
}
