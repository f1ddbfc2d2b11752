package api_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// Through the API: the request, the fence, both sides of a block, the comparison.
func TestTwoArtifactsAreMeasuredInTurns(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	c := b.register(t, "c1")
	wanted := apiclient.NewRequest{Project: "go", Type: bench.AdHoc, Tag: "1.26.0", Versus: "1.25.0", IdempotencyKey: "once"}
	r, err := b.writer.CreateRequest(t.Context(), wanted)
	require.NoError(t, err)
	require.Equal(t, "1.25.0", r.Versus)
	wanted.Versus = "1.24.0"
	_, err = b.writer.CreateRequest(t.Context(), wanted)
	require.ErrorContains(t, err, "another artifact to be measured in turns with")

	former, err := b.store.RequestByTag(t.Context(), "go", "1.26.0")
	require.NoError(t, err)
	jobs, err := b.store.RequestJobs(t.Context(), former.ID)
	require.NoError(t, err)
	job := jobs[0]
	job.Versus, job.Key = "1.25.0", bench.JobIdentity{Request: r.ID, Versus: "1.25.0"}.Key()
	require.NoError(t, b.store.StartAdHoc(t.Context(), r.ID))
	require.NoError(t, b.store.ExpandRequest(t.Context(), r.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(job)}))
	run := bench.NewRunID(job.Key, "workflow", "activity", 1)
	plan, err := b.collector.StartRun(t.Context(), run, b.runStart(t, run, c))
	require.NoError(t, err)
	require.Equal(t, "1.25.0", plan.Job.Versus)
	require.Equal(t, job.TestCases, plan.Missing)
	require.Equal(t, 2*len(job.TestCases), plan.Job.Results())

	var block apiclient.Block
	for tag, seconds := range map[string]float64{"1.25.0": 5, "1.26.0": 5} {
		for _, tc := range plan.Missing {
			result := apiclient.TestCaseResult{TestCase: tc, Tag: tag}
			for i := range 5 {
				result.Collections = append(result.Collections, apiclient.Collection{
					Iteration: i + 1, CollectedAt: r.CreatedAt, Values: map[bench.Metric]float64{bench.WallTime: seconds + float64(i)/100},
				})
			}
			block.Results = append(block.Results, result)
		}
	}
	receipt, err := b.collector.UploadBlock(t.Context(), run, 1, block)
	require.NoError(t, err)
	require.Equal(t, apiclient.BlockReceipt{Accepted: 2 * len(plan.Missing)}, receipt)
	block.Results[0].Tag = "1.24.0"
	_, err = b.collector.UploadBlock(t.Context(), run, 2, block)
	require.ErrorContains(t, err, "does not measure artifact")

	// Measured one after the other, the two differ by a fifth; in turns by nothing.
	query := apiclient.CompareQuery{Project: "go", A: "1.25.0", B: "1.26.0", Metrics: []bench.Metric{bench.WallTime}, OnlyInTurns: true}
	compared, err := b.nobody.Compare(t.Context(), query)
	require.NoError(t, err)
	require.Len(t, compared.Result.Rows, len(plan.Missing))
	for _, r := range compared.Result.Rows {
		require.True(t, r.InTurns)
		require.False(t, r.Significant)
		require.Equal(t, 5, r.Turns.Pairs)
		require.Equal(t, 5, r.A.N, "what is stored of each stands beside it")
		require.InDelta(t, 0.2, r.Change.Value, 1e-9)
	}
	// What the machine did is told of each side by itself, although both are of one run.
	b.sums(t, run, "a1", besides(5, 0.5, "1.25.0", "1.26.0"))
	machine, err := b.nobody.ComparedMachine(t.Context(), "go", "1.25.0", "1.26.0", fullWallTime)
	require.NoError(t, err)
	for _, side := range machine.Sides {
		of := side.Runs[len(side.Runs)-1]
		require.Equal(t, apiclient.MachineRun{Run: run, Collector: "c1", InTurns: true, State: apiclient.MachineWhole, Commands: of.Commands, Series: of.Series}, of)
		require.Len(t, of.Commands, 5)
		for _, c := range of.Commands {
			require.Equal(t, side.Tag, c.Artifact)
			require.False(t, c.WarmUp)
		}
	}
	text, err := b.nobody.CompareText(t.Context(), query, apiclient.FormatText)
	require.NoError(t, err)
	require.Contains(t, text, "5 in 1")
	// Its own results are exported, or what was measured in turns, with the names of both.
	var out bytes.Buffer
	require.NoError(t, b.nobody.Export(t.Context(), &out, "go", "csv", "1.26.0"))
	require.NotContains(t, out.String(), "1.25.0 1.26.0")
	for _, format := range []string{"csv", "json", "benchfmt"} {
		out.Reset()
		require.NoError(t, b.nobody.ExportInTurns(t.Context(), &out, "go", format, "1.25.0"))
		require.Contains(t, out.String(), "1.25.0 1.26.0")
	}
	query.Benchmarks = []string{"nothing"}
	_, err = b.nobody.Compare(t.Context(), query)
	require.ErrorIs(t, err, apiclient.ErrNotFound)
}
