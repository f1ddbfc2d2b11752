package graphset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
)

const (
	amd64 = bench.Target("x86_64-unknown-linux-gnu")
	arm64 = bench.Target("aarch64-unknown-linux-gnu")
)

// release is the set of a release: a build, two jobs of its parent, two of its own which
// need these, and a look. The job "gin" was replaced by "gin2" in a second graph.
func release() (graphset.Set, map[bench.JobKey][]string) {
	node := func(number int, job bench.JobKey, stage bench.Stage, status bench.JobStatus) graphset.Node {
		n := graphset.Node{Number: number, Job: job, Stage: stage, Kind: bench.KindRuntime, Target: amd64, Status: status, CreatedAt: begin}
		if !status.Open() {
			n.StartedAt, n.EndedAt = at(1), at(5)
		}
		return n
	}
	build := node(1, "build", bench.StageBuild, bench.JobSuccess)
	build.Kind = bench.KindBuild
	gin, again := node(3, "gin", bench.StageOwn, bench.JobFailure), node(4, "gin2", bench.StageOwn, bench.JobSuccess)
	gin.Replaced, again.Replaces = true, "gin"
	elsewhere := node(3, "kit-arm", bench.StageOwn, bench.JobFailure)
	elsewhere.Target = arm64
	set := graphset.Set{
		Graphs: []graphset.Graph{{Number: 1}, {Number: 2}, {Number: 3, Follows: 2}, {Number: 4, Follows: 3}, {Number: 5, Follows: 4}},
		Nodes: []graphset.Node{
			build, node(2, "parent", bench.StageParent, bench.JobSuccess), node(2, "parent-kit", bench.StageParent, bench.JobSuccess), gin, node(3, "kit", bench.StageOwn, bench.JobSuccess),
			elsewhere, again, node(5, "look", bench.StageVerify, bench.JobSuccess),
		},
		Edges: []graphset.Edge{
			{Number: 3, From: "build", To: "gin", Condition: graph.OnSuccess}, {Number: 3, From: "parent", To: "gin", Condition: graph.OnAny},
			{Number: 3, From: "parent", To: "kit", Condition: graph.OnAny}, {Number: 3, From: "parent-kit", To: "kit", Condition: graph.OnAny},
			{Number: 5, From: "gin2", To: "look", Condition: graph.OnAny},
		},
	}
	return set, map[bench.JobKey][]string{
		"parent": {"gin", "kit"}, "parent-kit": {"kit"}, "gin": {"gin"}, "gin2": {"gin"}, "kit": {"gin", "kit"}, "kit-arm": {"kit"}, "look": {"gin"},
	}
}

// said writes a repetition in a line: chosen > dependents, left, open.
func said(r graphset.Repetition) string {
	list := func(jobs []graphset.Again) (text string) {
		for _, a := range jobs {
			text += string(a.Job)
			for _, b := range a.Benchmarks {
				text += ":" + b
			}
			text += " "
		}
		return text
	}
	return fmt.Sprintf("%s> %sleft %d open %d", list(r.Chosen), list(r.Dependents), r.Left, r.Open)
}

func TestWhatAChoiceRepeats(t *testing.T) {
	t.Parallel()
	selected := func(s string) graphset.Selector {
		sel, err := graphset.ParseSelector(s)
		require.NoError(t, err)
		return sel
	}
	named := func(jobs ...bench.JobKey) graphset.Choice { return graphset.Choice{Jobs: jobs} }
	with := func(c graphset.Choice, d graphset.Downstream, sel string) graphset.Choice {
		c.Downstream, c.Select = d, selected(sel)
		return c
	}
	for name, c := range map[string]struct {
		choice graphset.Choice
		want   string // as [said] says it, or a part of the error
	}{
		"a named job that nothing needs":               {named("gin2"), "gin2 > left 0 open 0"},
		"a job named twice":                            {named("gin2", "kit", "gin2"), "kit gin2 > left 0 open 0"},
		"nothing is said of what needs it":             {named("parent"), "2 jobs need what runs again; say whether they run again too: downstream none, portion or all"},
		"or of the only one":                           {named("parent-kit"), "one job needs what runs again"},
		"what needs it is left":                        {with(named("parent"), graphset.DownstreamNone, ""), "parent > left 2 open 0"},
		"what needs it, also in place of another":      {with(named("parent"), graphset.DownstreamAll, ""), "parent > kit gin2 left 0 open 0"},
		"a portion":                                    {with(named("parent"), graphset.DownstreamPortion, "benchmark=kit"), "parent > kit:kit left 1 open 0"},
		"a portion of nothing":                         {with(graphset.Choice{}, graphset.DownstreamPortion, "kind=benchmark"), "a portion needs the jobs"},
		"named and selected":                           {with(named("parent"), graphset.DownstreamAll, "benchmark=kit"), "jobs are named and selected"},
		"nothing":                                      {graphset.Choice{}, "nothing says which jobs run again"},
		"failures":                                     {with(graphset.Choice{}, "", "state=failure"), "kit-arm > left 0 open 0"},
		"of a target":                                  {with(graphset.Choice{}, graphset.DownstreamNone, "target="+string(amd64)+",stage=own"), "kit gin2 > left 0 open 0"},
		"two of a kind with what needs them":           {with(graphset.Choice{}, graphset.DownstreamAll, "stage=parent"), "parent parent-kit > kit gin2 left 0 open 0"},
		"a benchmark, also downstream":                 {with(graphset.Choice{}, graphset.DownstreamAll, "stage=parent,benchmark=gin"), "parent:gin > kit:gin gin2:gin left 0 open 0"},
		"a benchmark on which only some depends":       {with(graphset.Choice{}, graphset.DownstreamAll, "stage=parent,benchmark=kit"), "parent:kit parent-kit:kit > kit:kit left 0 open 0"},
		"benchmarks":                                   {with(graphset.Choice{}, graphset.DownstreamNone, "kind=benchmark"), "parent parent-kit kit kit-arm gin2 > left 0 open 0"},
		"what is built is stored":                      {with(graphset.Choice{}, "", "kind=build"), "no job of it that has ended matches kind=build"},
		"a build that is named":                        {named("build"), "job build has built what is stored"},
		"a graph":                                      {graphset.Choice{Number: 2, Downstream: graphset.DownstreamNone}, "parent parent-kit > left 2 open 0"},
		"what stands in the place of one of the graph": {graphset.Choice{Number: 3, Downstream: graphset.DownstreamNone}, "kit kit-arm gin2 > left 0 open 0"},
		"named in its graph":                           {graphset.Choice{Number: 3, Jobs: []bench.JobKey{"gin2"}}, "gin2 > left 0 open 0"},
		"named in another graph":                       {graphset.Choice{Number: 2, Jobs: []bench.JobKey{"kit"}}, "job kit belongs to graph 3 of the set, not to graph 2"},
		"one that was replaced":                        {named("gin"), "job gin was replaced by gin2; name that one"},
		"a look":                                       {named("look"), "job look has measured a suspicion in turns"},
		"one of another set":                           {named("stranger"), "job stranger does not belong to it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, benchmarks := release()
			got, err := set.Repeat(c.choice, benchmarks, *at(10))
			if err != nil {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.Equal(t, c.want, said(got))
		})
	}
}

// A rerun is of whole jobs, leaves builds that are stored, and comes too late for what was
// skipped.
func TestWhatARerunRepeats(t *testing.T) {
	t.Parallel()
	rerun := func(c graphset.Choice) graphset.Choice { c.Rerun = true; return c }
	sel, err := graphset.ParseSelector("stage=parent,benchmark=gin")
	require.NoError(t, err)
	set, benchmarks := release()
	got, err := set.Repeat(rerun(graphset.Choice{Select: sel, Downstream: graphset.DownstreamAll}), benchmarks, *at(10))
	require.NoError(t, err)
	require.Equal(t, "parent > kit gin2 left 0 open 0", said(got))
	_, err = set.Repeat(rerun(graphset.Choice{Jobs: []bench.JobKey{"build"}}), benchmarks, *at(10))
	require.ErrorContains(t, err, "has built what is stored")

	set.Edges = append(set.Edges, graphset.Edge{Number: 2, From: "parent-kit", To: "build", Condition: graph.OnAny})
	got, err = set.Repeat(rerun(graphset.Choice{Jobs: []bench.JobKey{"parent-kit"}, Downstream: graphset.DownstreamAll}), benchmarks, *at(10))
	require.NoError(t, err)
	require.Equal(t, "parent-kit > kit gin2 left 1 open 0", said(got), "what was built is stored")

	set, benchmarks = release()
	for i := range set.Nodes {
		if set.Nodes[i].Job == "kit" {
			set.Nodes[i].Skipped = &graph.Reason{Code: graph.LimitPassed, Node: "parent"}
		}
	}
	for _, c := range []graphset.Choice{{Jobs: []bench.JobKey{"kit"}}, {Jobs: []bench.JobKey{"parent"}, Downstream: graphset.DownstreamAll}} {
		_, err = set.Repeat(rerun(c), benchmarks, *at(10))
		var refused *graphset.ChoiceError
		require.ErrorAs(t, err, &refused)
		require.True(t, refused.TooLate)
		require.Equal(t, "job kit was skipped, because parent did not succeed within the time limit; a rerun comes too late, only a new job can have its place", err.Error())
		_, err = set.Repeat(c, benchmarks, *at(10))
		require.NoError(t, err, "a new job may have its place")
	}
}

func TestWhatHasNotEndedRunsAnyway(t *testing.T) {
	t.Parallel()
	set, benchmarks := release()
	for i := range set.Nodes {
		if set.Nodes[i].Job == "kit" {
			set.Nodes[i].Status, set.Nodes[i].EndedAt = bench.JobInProgress, nil
		}
	}
	got, err := set.Repeat(graphset.Choice{Jobs: []bench.JobKey{"parent"}, Downstream: graphset.DownstreamAll}, benchmarks, *at(10))
	require.NoError(t, err)
	require.Equal(t, "parent > gin2 left 0 open 1", said(got))
	_, err = set.Repeat(graphset.Choice{Jobs: []bench.JobKey{"kit"}}, benchmarks, *at(10))
	var refused *graphset.ChoiceError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, bench.JobKey("kit"), refused.Job)
	require.Contains(t, refused.Why, "has not ended, it is running")
}

func TestSelectorsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "kind=benchmark,kind=build,stage=own,state=failure,target=x86_64-unknown-linux-gnu,benchmark=gin,benchmark=kit"} {
		sel, err := graphset.ParseSelector(s)
		require.NoError(t, err)
		require.Equal(t, s, sel.String())
		require.Equal(t, s == "", sel.Empty())
	}
	for s, want := range map[string]string{
		"gin": "is no FIELD=VALUE", "kind=": "is no FIELD=VALUE", "tag=v1": `jobs have no field "tag"`, "kind=boat": "boat", "stage=verify": `no stage "verify" can run again`,
		"state=running": `no job in state "running" can run again; use success, failure, skipped, cancelled`,
	} {
		_, err := graphset.ParseSelector(s)
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	_, err := graphset.ParseDownstream("some")
	require.ErrorIs(t, err, bench.ErrInvalid)
}

// Whatever is chosen of a random set: each job counts once, all is of the present set, a
// selection obeys its selector, and all that is downstream is repeated, left, or open.
func TestRepetitionsOfRandomSets(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 16))
		set, benchmarks := randomSet(random)
		choice := graphset.Choice{Downstream: []graphset.Downstream{graphset.DownstreamNone, graphset.DownstreamAll, ""}[random.IntN(3)]}
		if random.IntN(2) == 0 {
			choice.Jobs = []bench.JobKey{set.Nodes[random.IntN(len(set.Nodes))].Job}
		} else {
			choice.Select.Stages = []bench.Stage{bench.StageParent}
		}
		got, err := set.Repeat(choice, benchmarks, *at(10))
		all := choice
		all.Downstream = graphset.DownstreamAll
		whole, errAll := set.Repeat(all, benchmarks, *at(10))
		if errAll != nil {
			require.Equal(t, errAll, err, "seed %d", seed)
			continue
		}
		var needs *graphset.DownstreamError
		if err != nil {
			require.ErrorAs(t, err, &needs, "seed %d", seed)
			require.Empty(t, choice.Downstream)
			require.Equal(t, len(whole.Dependents), needs.Dependents)
			continue
		}
		require.Equal(t, whole.Chosen, got.Chosen, "seed %d", seed)
		require.Equal(t, len(whole.Dependents), len(got.Dependents)+got.Left, "seed %d", seed)
		require.Equal(t, whole.Open, got.Open, "seed %d", seed)
		seen := make(map[bench.JobKey]bool)
		for _, a := range slices.Concat(whole.Chosen, whole.Dependents) {
			require.False(t, seen[a.Job], "seed %d: %s twice", seed, a.Job)
			seen[a.Job] = true
			at := slices.IndexFunc(set.Nodes, func(n graphset.Node) bool { return n.Job == a.Job })
			require.False(t, set.Nodes[at].Replaced, "seed %d: %s counts no longer", seed, a.Job)
			require.False(t, set.Nodes[at].Status.Open(), "seed %d: %s has not ended", seed, a.Job)
		}
		for _, e := range set.Edges { // closed: what needs a repeated job is repeated, or open, or counts no longer
			at := slices.IndexFunc(set.Nodes, func(n graphset.Node) bool { return n.Job == e.To })
			if seen[e.From] && !set.Nodes[at].Replaced && !set.Nodes[at].Status.Open() {
				require.True(t, seen[e.To], "seed %d: %s needs %s", seed, e.To, e.From)
			}
		}
	}
}

func randomSet(random *rand.Rand) (graphset.Set, map[bench.JobKey][]string) {
	var set graphset.Set
	benchmarks := make(map[bench.JobKey][]string)
	stages := []bench.Stage{bench.StageParent, bench.StageOwn}
	statuses := []bench.JobStatus{bench.JobSuccess, bench.JobFailure, bench.JobCancelled, bench.JobInProgress, bench.JobQueued}
	for number := range 1 + random.IntN(4) {
		set.Graphs = append(set.Graphs, graphset.Graph{Number: number + 1})
		before := len(set.Nodes)
		for range 1 + random.IntN(5) {
			n := graphset.Node{
				Number: number + 1, Job: bench.JobKey(fmt.Sprintf("job%d", len(set.Nodes))), Stage: stages[random.IntN(2)], Kind: bench.KindRuntime, Target: amd64,
				Status: statuses[random.IntN(len(statuses))], CreatedAt: begin,
			}
			if former := random.IntN(before + 1); before > 0 && former < before && !set.Nodes[former].Replaced && !set.Nodes[former].Status.Open() && random.IntN(2) == 0 {
				set.Nodes[former].Replaced = true
				n.Replaces, n.Stage = set.Nodes[former].Job, set.Nodes[former].Stage
			}
			for i := range set.Nodes {
				if random.IntN(4) == 0 {
					set.Edges = append(set.Edges, graphset.Edge{Number: number + 1, From: set.Nodes[i].Job, To: n.Job, Condition: graph.OnAny})
				}
			}
			set.Nodes = append(set.Nodes, n)
			benchmarks[n.Job] = []string{"gin"}
		}
	}
	return set, benchmarks
}
