package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

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
	}, newGraphRun(), newGraphClone(), newGraphSignOff(), newGraphList(), newGraphShow())
}

func newGraphRun() *cobra.Command {
	var f actFlags
	var in apiclient.GraphCall
	var sets, without []string
	var preview bool
	cmd := &cobra.Command{
		Use:   "run PROJECT TEMPLATE",
		Short: "Run the graph that a stored template makes",
		Long: `Expands a stored graph template with parameters and runs its nodes, each once what it
needs has ended as it should. 'benchloom template show' shows the graph beforehand, and
'benchloom graph show' what has become of it. With --preview, nothing runs: it only
tells whether it could.

Where the branch allows it, --set and --without customise the graph: it then carries
its difference from the template. The paths of --set are those that
'benchloom template show -o json' shows in a node's definition.`,
		Example: `  benchloom graph run go nightly --param tag=v1.2.3
  benchloom graph run go nightly --branch try --param tag=v1.2.3 --preview
  benchloom graph run go nightly --branch try --param tag=v1.2.3 --set measure:iterations=20 --without tell
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
			if in.Changes, err = nodeChanges(sets, without); err != nil {
				return usage(err)
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
	cmd.Flags().StringArrayVar(&sets, "set", nil, "another value in a node's definition, as NODE:PATH=VALUE, where VALUE is JSON or text; repeatable")
	cmd.Flags().StringArrayVar(&without, "without", nil, "node that is left out; repeatable")
	cmd.Flags().BoolVar(&preview, "preview", false, "only tell whether it could run")
	return cmd
}

// nodeValue matches NODE:PATH=VALUE.
var nodeValue = regexp.MustCompile(`^([^=]+):([a-z_.]+)=(.*)$`)

// nodeChanges reads the flags that customise a graph.
func nodeChanges(sets, without []string) ([]apiclient.NodeChange, error) {
	var changes []apiclient.NodeChange
	for _, text := range sets {
		parts := nodeValue.FindStringSubmatch(text)
		if parts == nil {
			return nil, fmt.Errorf("--set %q: write NODE:PATH=VALUE, such as measure:iterations=20", text)
		}
		var value any
		if err := json.Unmarshal([]byte(parts[3]), &value); err != nil {
			value = parts[3]
		}
		at := slices.IndexFunc(changes, func(c apiclient.NodeChange) bool { return c.Node == parts[1] })
		if at < 0 {
			at, changes = len(changes), append(changes, apiclient.NodeChange{Node: parts[1], Set: make(map[string]any)})
		}
		changes[at].Set[parts[2]] = value
	}
	for _, node := range without {
		changes = append(changes, apiclient.NodeChange{Node: node, Remove: true})
	}
	return changes, nil
}

func newGraphClone() *cobra.Command {
	var f actFlags
	var in apiclient.GraphClone
	var preview bool
	cmd := &cobra.Command{
		Use:   "clone GRAPH|REQUEST",
		Short: "Run a graph of a template once more",
		Long: `Runs the graph of a request once more, as a request of its own: with the same
definitions, branch and parameters. Nothing of what became of the other comes along.
If the graph was customised, --from says what is copied: what the template made, or the
graph as it was customised.`,
		Example: `  benchloom graph clone r7k2m4q9xt2-1
  benchloom graph clone r7k2m4q9xt2-1 --param tag=v1.2.4
  benchloom graph clone r7k2m4q9xt2-1 --from graph --preview`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := graphRefOf(args[0])
			if err != nil {
				return err
			}
			if in.From != "" && in.From != apiclient.CloneTemplate && in.From != apiclient.CloneGraph {
				return usage(fmt.Errorf("--from %q: use %s or %s", in.From, apiclient.CloneTemplate, apiclient.CloneGraph))
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			in.Act = f.act()
			started, err := api.CloneGraph(cmd.Context(), ref, in, preview)
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
	cmd.Flags().StringVar(&in.From, "from", "", "what is copied: template, graph (default: template, unless the graph was customised)")
	cmd.Flags().StringArrayVar(&in.Parameters, "param", nil, "another value of a parameter, as name=value; repeatable")
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

// graphRefOf reads the ID of a graph, or a reference to a request.
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
together are a graph: those of a stage, of a look, of a retry, and the nodes of a template.
Other requests for commands have none.`,
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
	cmd.Flags().BoolVar(&q.Customised, "customised", false, "only graphs that differ from what their templates made")
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
