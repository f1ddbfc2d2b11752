package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newDefinitionsPush() *cobra.Command {
	var f actFlags
	var source string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "push DIR PROJECT",
		Short: "Give a project the templates of a definitions folder",
		Long: `Checks a definitions folder as 'benchloom definitions check' does and stores it for a
project, whose templates it holds from then on: see 'benchloom template list'. The same
folder again changes nothing.

--source says where the folder is from, as branches.yaml names it: branches whose
definitions are REPOSITORY@REVISION use the folder that was pushed with this source.`,
		Example: `  benchloom definitions push definitions go
  benchloom definitions push definitions@v1.2 go --source https://example.com/definitions.git@v1.2
  benchloom definitions push definitions go --dry-run`,
		Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[1]); err != nil {
				return usage(err)
			}
			folder, err := readDefinitions(cmd.Context(), args[0])
			if err == nil {
				_, err = folder.Check(cmd.Context())
			}
			if err != nil {
				return definitionProblems(args[0], err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			done, err := api.PushDefinitions(cmd.Context(), args[1], apiclient.DefinitionsPush{Act: f.act(), Files: folder.Files(), Source: source}, dryRun)
			if err != nil {
				return reached(err)
			}
			if f.output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), done)
			}
			return cli.Operation(cmd.OutOrStdout(), done.Operation, fmt.Sprintf("project %s has %s of %s", args[1], cli.Plural(len(folder.Templates()), "graph template"), args[0]))
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&source, "source", "", "where the folder is from: REPOSITORY@REVISION, as branches.yaml names it")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only check the folder, also as the service does")
	return cmd
}

func newDefinitionsList() *cobra.Command {
	var f serviceFlags
	var limit int
	var output string
	cmd := &cobra.Command{
		Use:   "list PROJECT",
		Short: "List the definitions that a project was given",
		Example: `  benchloom definitions list go
  benchloom definitions list go --limit 0 -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			if limit < 0 {
				return usage(fmt.Errorf("--limit %d: use a number above 0, or 0 for all", limit))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			list := apiclient.DefinitionsList{Definitions: []apiclient.PushedDefinitions{}}
			for more := true; more; more = list.Next != "" && (limit == 0 || len(list.Definitions) < limit) {
				at := definitionsPage
				if limit > 0 {
					at = min(at, limit-len(list.Definitions))
				}
				page, err := api.Definitions(cmd.Context(), args[0], at, list.Next)
				if err != nil {
					return reached(err)
				}
				list.Definitions, list.Next = append(list.Definitions, page.Definitions...), page.Next
			}
			return show(cmd, output, list, cli.DefinitionsList)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 50, "maximum number of definitions; 0 for all")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// definitionsPage is the number of definitions requested at once.
const definitionsPage = 200
