package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/definitions"
	"github.com/benchloom/benchloom/internal/revision"
)

const formatDot = "dot"

func newDefinitions() *cobra.Command {
	return group(&cobra.Command{
		Use:     "definitions",
		GroupID: groupLocal,
		Short:   "Check graph templates, show what they make, and give them to projects",
		Long: `Works on a definitions folder: branches.yaml, graph templates (graphs/NAME.yaml) and
job templates (jobs/NAME.yaml). DIR@REVISION is the folder as it was at a revision of
its git repository.`,
		Example: `  benchloom definitions check definitions
  benchloom definitions render definitions nightly --param tag=v1.2.3
  benchloom definitions diff definitions@main definitions
  benchloom definitions push definitions go`,
	}, newDefinitionsCheck(), newDefinitionsRender(), newDefinitionsDiff(), newDefinitionsPush(), newDefinitionsList())
}

func newDefinitionsCheck() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Check a definitions folder",
		Long: `Reads a definitions folder and expands each graph template on each branch that
branches.yaml names, with defaults and examples of parameters. Prints all problems with
file, line and column, else the folder's content hash and the size of each graph.`,
		Example: `  benchloom definitions check definitions
  benchloom definitions check definitions@v1.2 -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := checkDefinitions(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := show(cmd, output, report, cli.Definitions); err != nil {
				return err
			}
			if len(report.Problems) > 0 {
				return fmt.Errorf("the definitions in %s are not valid", args[0])
			}
			return nil
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// checkDefinitions reads a folder and tries its templates. Problems are part of the report.
func checkDefinitions(ctx context.Context, place string) (cli.DefinitionsReport, error) {
	var report cli.DefinitionsReport
	folder, err := readDefinitions(ctx, place)
	if err == nil {
		report.Branches = folder.Branches()
		report.Graphs, err = folder.Check(ctx)
	}
	if list, ok := errors.AsType[*definitions.Error](err); ok {
		report.Problems = list.Problems
		for i := range report.Problems {
			report.Problems[i].File = filepath.Join(place, filepath.FromSlash(report.Problems[i].File))
		}
		return report, nil
	}
	if err != nil {
		return report, err
	}
	report.Hash = folder.Hash()
	return report, nil
}

func newDefinitionsRender() *cobra.Command {
	var branch, output string
	var parameters []string
	cmd := &cobra.Command{
		Use:   "render DIR TEMPLATE",
		Short: "Show the graph that a template makes",
		Long: `Expands a graph template with parameters, as the service would on the branch, and
prints the graph: a table of nodes by layer, JSON with each job, or a drawing for
Graphviz. Nothing is run. Entries of a list stand between commas.`,
		Example: `  benchloom definitions render definitions nightly --param tag=v1.2.3
  benchloom definitions render definitions nightly --branch try --param tag=v1.2.3 --param targets=x86_64-unknown-linux-gnu -o json
  benchloom definitions render definitions nightly --param tag=v1.2.3 -o dot | dot -Tsvg >nightly.svg`,
		Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := readDefinitions(cmd.Context(), args[0])
			if err != nil {
				return definitionProblems(args[0], err)
			}
			values, err := folder.ParseParameters(args[1], parameters)
			if err != nil {
				return usage(err)
			}
			e, err := folder.Expand(cmd.Context(), definitions.Call{Template: args[1], Branch: branch, Parameters: values})
			if err != nil {
				return definitionProblems(args[0], err)
			}
			if elsewhere := e.Rule.Definitions; elsewhere != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "branch %s uses the definitions of %s; this is what those in %s would make\n", cli.Printable(branch), cli.Printable(elsewhere), cli.Printable(args[0]))
			}
			if output == formatDot {
				return cli.RenderedDot(cmd.OutOrStdout(), e)
			}
			return show(cmd, output, e, cli.Rendered)
		},
	}
	cmd.Flags().StringVar(&branch, "branch", "main", "branch for which the graph is made")
	cmd.Flags().StringArrayVar(&parameters, "param", nil, "value of a parameter, as name=value; repeatable")
	outputFlag(cmd, &output, formatTable, formatJSON, formatDot)
	return cmd
}

func newDefinitionsDiff() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "diff FROM TO",
		Short: "Tell what changes between two definitions folders",
		Long: `Expands all templates of two folders, or of two revisions of one, on each branch with
defaults and examples of parameters, and tells in words how the graphs differ: nodes,
values of jobs and edges. Changes of branches and switches are told as well.`,
		Example: `  benchloom definitions diff definitions@v1.1 definitions@v1.2
  benchloom definitions diff definitions@main definitions
  benchloom definitions diff old/definitions new/definitions -o json`,
		Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			folders := make([]*definitions.Folder, len(args))
			for i, place := range args {
				var err error
				if folders[i], err = readDefinitions(cmd.Context(), place); err != nil {
					return definitionProblems(place, err)
				}
				if _, err := folders[i].Check(cmd.Context()); err != nil {
					return definitionProblems(place, err)
				}
			}
			d, err := definitions.Diff(cmd.Context(), folders[0], folders[1])
			if err != nil {
				return err
			}
			return show(cmd, output, d, cli.DefinitionsDifference)
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// definitionProblems adds the place to each problem, so that editors find the file. A problem of
// the call alone is a usage error.
func definitionProblems(place string, err error) error {
	list, ok := errors.AsType[*definitions.Error](err)
	if !ok {
		if errors.Is(err, bench.ErrInvalid) {
			return usage(err)
		}
		return err
	}
	lines := make([]string, len(list.Problems))
	for i, p := range list.Problems {
		p.File = filepath.Join(place, filepath.FromSlash(p.File))
		lines[i] = p.String()
	}
	return errors.New(strings.Join(lines, "\n"))
}

// readDefinitions reads the definitions in a directory, or in DIR@REVISION.
func readDefinitions(ctx context.Context, place string) (*definitions.Folder, error) {
	info, err := os.Stat(place)
	if err == nil && !info.IsDir() {
		return nil, usage(fmt.Errorf("%s is not a directory; name a folder with graph templates (graphs/NAME.yaml)", place))
	}
	i := strings.LastIndex(place, "@")
	if err == nil || i < 0 {
		return readDefinitionsIn(place)
	}
	dir, wanted := place[:i], place[i+1:]
	if dir == "" || wanted == "" {
		return nil, usage(fmt.Errorf("%q names no folder; write DIR or DIR@REVISION", place))
	}
	return readDefinitionsAt(ctx, dir, wanted)
}

func readDefinitionsIn(dir string) (*definitions.Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s is no definitions folder: %w; name a folder with graph templates (graphs/NAME.yaml)", dir, err)
	}
	defer root.Close()
	return definitions.Read(root.FS())
}

// readDefinitionsAt reads a folder as it was at a revision, whatever lies there now.
func readDefinitionsAt(ctx context.Context, dir, wanted string) (folder *definitions.Folder, err error) {
	repository, below, err := repositoryOf(dir)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "benchloom-definitions-*")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the revision: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	tree := filepath.Join(scratch, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory for the revision: %w", err)
	}
	repositories := revision.New(filepath.Join(scratch, "mirrors"), os.Environ())
	repositories.Relative = true
	at, err := repositories.Resolve(ctx, repository, wanted)
	if err != nil {
		return nil, err
	}
	if err := repositories.Export(ctx, repository, at, tree); err != nil {
		return nil, err
	}
	there := filepath.Join(tree, below)
	if info, err := os.Stat(there); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("revision %s of %s has no folder %s", wanted, repository, filepath.ToSlash(below))
	}
	return readDefinitionsIn(there)
}

// repositoryOf returns the git repository that a directory is in, and the directory's place
// there. The directory itself may be gone.
func repositoryOf(dir string) (root, below string, err error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", "", fmt.Errorf("finding the directory: %w", err)
	}
	for root = absolute; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			below, err = filepath.Rel(root, absolute)
			if err != nil {
				return "", "", fmt.Errorf("finding the directory: %w", err)
			}
			return root, below, nil
		}
		if root == filepath.Dir(root) {
			return "", "", fmt.Errorf("%s is in no git repository, so it has no revisions; name folders without @REVISION", dir)
		}
	}
}
