package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/definitions"
	"github.com/benchloom/benchloom/internal/graph"
)

func newTemplate() *cobra.Command {
	return group(&cobra.Command{
		Use:     "template",
		GroupID: groupUse,
		Short:   "Show which graphs a project's templates make",
		Example: `  benchloom template list go
  benchloom template show go nightly --param tag=v1.2.3`,
	}, newTemplateList(), newTemplateShow())
}

// definitionsFlag adds the flag that names definitions by their hash.
func definitionsFlag(cmd *cobra.Command, hash *string) {
	cmd.Flags().StringVar(hash, "definitions", "", "content hash of definitions that the project was given, or its first seven digits or more (default: the newest)")
}

func newTemplateList() *cobra.Command {
	var f serviceFlags
	var hash, output string
	cmd := &cobra.Command{
		Use:   "list PROJECT",
		Short: "List the graph templates of a project",
		Long: `Lists the graph templates that 'benchloom definitions push' gave a project, with their
parameters: what might run.`,
		Example: `  benchloom template list go
  benchloom template list go -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			list, err := api.Templates(cmd.Context(), args[0], hash)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, list, cli.Templates)
		},
	}
	f.add(cmd.Flags())
	definitionsFlag(cmd, &hash)
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func newTemplateShow() *cobra.Command {
	var f serviceFlags
	var q apiclient.TemplateQuery
	var output string
	cmd := &cobra.Command{
		Use:   "show PROJECT TEMPLATE",
		Short: "Show the graph that a stored template makes",
		Long: `Expands a stored graph template with parameters, and prints the graph: a table of nodes
by layer, JSON with each job, or a drawing for Graphviz. Nothing is run. A branch that
uses definitions of another place gets those that were pushed from there.`,
		Example: `  benchloom template show go nightly --param tag=v1.2.3
  benchloom template show go nightly --branch try --param tag=v1.2.3 -o json`,
		Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			r, err := api.Template(cmd.Context(), args[0], args[1], q)
			if err != nil {
				return reached(err)
			}
			if output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), r)
			}
			e, err := rendered(r)
			if err != nil {
				return err
			}
			if output == formatDot {
				return cli.RenderedDot(cmd.OutOrStdout(), e)
			}
			return cli.Rendered(cmd.OutOrStdout(), e, view(cmd))
		},
	}
	f.add(cmd.Flags())
	definitionsFlag(cmd, &q.Definitions)
	cmd.Flags().StringVar(&q.Branch, "branch", "main", "branch for which the graph is made")
	cmd.Flags().StringArrayVar(&q.Parameters, "param", nil, "value of a parameter, as name=value; repeatable")
	outputFlag(cmd, &output, formatTable, formatJSON, formatDot)
	return cmd
}

// rendered reads a graph that the service made.
func rendered(r apiclient.RenderedTemplate) (*definitions.Expansion, error) {
	g, err := graph.Parse(r.Graph)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of the service: %w", err)
	}
	return &definitions.Expansion{
		Template: r.Template, Definitions: r.Definitions, Branch: r.Branch, Parameters: r.Parameters, Hash: r.GraphHash, Graph: g,
		Rule: definitions.Branch{
			Name: r.Rule.Name, Protected: r.Rule.Protected, Customise: r.Rule.Customise, Definitions: r.Rule.Definitions, Switches: r.Rule.Switches, Parameters: r.Rule.Parameters,
		},
	}, nil
}
