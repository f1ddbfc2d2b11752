package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newGraph() *cobra.Command {
	return group(&cobra.Command{
		Use:     "graph",
		GroupID: groupUse,
		Short:   "Run graphs of jobs, and show what has run",
		Example: `  benchloom graph run go nightly --param tag=v1.2.3
  benchloom graph list go --ran
  benchloom graph show go:1.26.0`,
	}, newGraphRun(), newGraphSignOff(), newGraphList(), newGraphShow())
}

func newGraphRun() *cobra.Command {
	var f actFlags
	var in apiclient.GraphCall
	var preview bool
	cmd := &cobra.Command{
		Use:   "run PROJECT TEMPLATE",
		Short: "Run the graph that a stored template makes",
		Long: `Expands a stored graph template with parameters and runs its nodes, each once what it
needs has ended as it should. 'benchloom template show' shows the graph beforehand, and
'benchloom graph show' what has become of it. With --preview, nothing runs: it only
tells whether it could.`,
		Example: `  benchloom graph run go nightly --param tag=v1.2.3
  benchloom graph run go nightly --branch try --param tag=v1.2.3 --preview
  benchloom graph run go nightly --param tag=v1.2.3 --key nightly-v1.2.3`,
		Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			in.Template, in.Act = args[1], f.act()
			started, err := api.RunGraph(cmd.Context(), args[0], in, preview)
			if err != nil {
				return reached(err)
			}
			if f.output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), started)
			}
			return cli.StartedGraph(cmd.OutOrStdout(), started)
		},
	}
	f.add(cmd)
	definitionsFlag(cmd, &in.Definitions)
	cmd.Flags().StringVar(&in.Branch, "branch", "main", "branch for which the graph is made")
	cmd.Flags().StringArrayVar(&in.Parameters, "param", nil, "value of a parameter, as name=value; repeatable")
	cmd.Flags().StringVar(&in.Queue, "queue", "", "queue of its jobs (default: your own)")
	cmd.Flags().BoolVar(&preview, "preview", false, "only tell whether it could run")
	return cmd
}

func newGraphSignOff() *cobra.Command {
	var f actFlags
	var refuse bool
	cmd := &cobra.Command{
		Use:   "sign-off GRAPH|REQUEST [NODE]",
		Short: "Answer a sign-off of a graph",
		Long: `Agrees to what a sign-off of a graph asks, or refuses it. The nodes that need it follow,
or stay blocked until their limit. The node may be left out if only one waits.`,
		Example: `  benchloom graph sign-off r7k2m4q9xt2-1
  benchloom graph sign-off r7k2m4q9xt2-1 agree --refuse --reason "two regressions"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return usage(errors.New("name the graph, or its request, and the sign-off if several wait"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := graphRefOf(args[0])
			if err != nil {
				return err
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			in := apiclient.SignOff{Act: f.act(), Agree: !refuse}
			if len(args) == 2 {
				in.Node = args[1]
			}
			done, err := api.SignOff(cmd.Context(), ref, in)
			if err != nil {
				return reached(err)
			}
			if f.output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), done)
			}
			return cli.Operation(cmd.OutOrStdout(), done, "sign-off "+done.Subject+" of graph "+ref+" is answered")
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&refuse, "refuse", false, "answer no")
	return cmd
}

// graphRefOf reads the ID of a graph, or what names a request.
func graphRefOf(s string) (string, error) {
	if _, err := bench.ParseGraphID(s); err == nil {
		return s, nil
	}
	return requestRef(s)
}

func newGraphList() *cobra.Command {
	var f serviceFlags
	var q apiclient.GraphQuery
	var output string
	cmd := &cobra.Command{
		Use:   "list PROJECT",
		Short: "List the graphs of a project",
		Long: `Lists the graphs of a project, the newest first. Jobs of a request that were written
together are a graph: those of a stage, of a look, of a retry. Requests for commands have none.`,
		Example: `  benchloom graph list go
  benchloom graph list go --ran --limit 10
  benchloom graph list go --request go:1.26.0 -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			if q.Request != "" {
				var err error
				if q.Request, err = requestRef(q.Request); err != nil {
					return err
				}
			}
			if q.Limit < 0 {
				return usage(fmt.Errorf("--limit %d: use a number above 0, or 0 for all", q.Limit))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			list, err := graphs(cmd.Context(), api, args[0], q)
			if err != nil {
				return reached(err)
			}
			if output == formatJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), list)
			}
			return cli.Graphs(cmd.OutOrStdout(), list.Graphs, view(cmd))
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&q.Ran, "ran", false, "only graphs of which a run has begun")
	cmd.Flags().StringVar(&q.Request, "request", "", "only graphs of this request")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "maximum number of graphs; 0 for all")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// graphsPage is the number of graphs requested at once.
const graphsPage = 200

// graphs lists at most q.Limit graphs; if it is 0, all.
func graphs(ctx context.Context, api *apiclient.Client, project string, q apiclient.GraphQuery) (apiclient.GraphList, error) {
	out, limit := apiclient.GraphList{Graphs: []apiclient.Graph{}}, q.Limit
	for {
		q.Limit = graphsPage
		if limit > 0 {
			q.Limit = min(graphsPage, limit-len(out.Graphs))
		}
		page, err := api.Graphs(ctx, project, q)
		if err != nil {
			return out, err
		}
		out.Graphs, out.Next = append(out.Graphs, page.Graphs...), page.Next
		if q.Cursor = page.Next; q.Cursor == "" || len(out.Graphs) == limit {
			return out, nil
		}
	}
}

func newGraphShow() *cobra.Command {
	var f serviceFlags
	var output string
	cmd := &cobra.Command{
		Use:   "show GRAPH|REQUEST",
		Short: "Show a graph, or all graphs of a request, with its nodes",
		Long: `Shows a graph, or all graphs of a request: for each job its state, what it needs, and
why it is blocked. A web page draws them: see /graphs/REQUEST at the address of the API.`,
		Example: `  benchloom graph show r7k2m4q9xt2-1
  benchloom graph show go:1.26.0 -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := graphRefOf(args[0])
			if err != nil {
				return err
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			d, err := api.Graph(cmd.Context(), ref)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, d, cli.Graph)
		},
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
