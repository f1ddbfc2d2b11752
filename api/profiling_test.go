package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// The project says what is recorded beside runs, a request what differs from that, and the fence tells the collector.
func TestProfilingIsConfigured(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project := b.project(t)
	c := b.register(t, "c1")
	everything := &profiler.Settings{Enabled: true, SystemMetrics: true, Timings: true}
	require.Equal(t, everything, b.start(t, b.submit(t, "1.20.0"), c, 1).Profiling, "unless configured")

	off, first, last := false, 2, 9
	project.Config.Profiling = bench.Profiling{Timings: &off, StartOnBatch: &first}
	applied, err := b.admin.ApplyProject(t.Context(), project, false)
	require.NoError(t, err)
	require.Equal(t, project.Config, applied.Project.Config)
	require.Equal(t, &profiler.Settings{Enabled: true, SystemMetrics: true, StartOnBatch: 2}, b.start(t, b.submit(t, "1.21.0"), c, 1).Profiling)

	wanted := apiclient.NewRequest{Project: "go", Tag: "1.22.0", Profiling: bench.Profiling{EndAfterBatch: &last}}
	r, err := b.writer.CreateRequest(t.Context(), wanted)
	require.NoError(t, err)
	require.Equal(t, wanted.Profiling, r.Profiling)
	b.admit(t, r.ID)
	require.Equal(t, &profiler.Settings{Enabled: true, SystemMetrics: true, StartOnBatch: 2, EndAfterBatch: &last}, b.start(t, b.expand(t, r), c, 1).Profiling)

	// It is part of what was asked for.
	again, err := b.writer.CreateRequest(t.Context(), wanted)
	require.NoError(t, err)
	require.Equal(t, r.ID, again.ID)
	wanted.Profiling = bench.Profiling{Enabled: &off}
	_, err = b.writer.CreateRequest(t.Context(), wanted)
	require.ErrorContains(t, err, "exists already with another profiling")

	wanted.Tag = "1.23.0"
	r, err = b.writer.CreateRequest(t.Context(), wanted)
	require.NoError(t, err)
	b.admit(t, r.ID)
	require.Nil(t, b.start(t, b.expand(t, r), c, 1).Profiling, "nothing is recorded")
}

func TestAnImpossibleWindowOfProfilingIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project := b.project(t)
	b.register(t, "c1")
	one, two, negative := 1, 2, -1
	project.Config.Profiling = bench.Profiling{StartOnBatch: &negative}
	_, err := b.admin.ApplyProject(t.Context(), project, true)
	require.ErrorContains(t, err, "profiling: start_on_batch is -1; batches count from 0")
	project.Config.Profiling = bench.Profiling{StartOnBatch: &two, EndAfterBatch: &one}
	_, err = b.admin.ApplyProject(t.Context(), project, true)
	require.ErrorContains(t, err, "profiling: end_after_batch 1 is before start_on_batch 2")

	// A request's end may be before its project's begin.
	project.Config.Profiling.EndAfterBatch = nil
	_, err = b.admin.ApplyProject(t.Context(), project, false)
	require.NoError(t, err)
	_, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.22.0", Profiling: bench.Profiling{EndAfterBatch: &one}})
	require.ErrorContains(t, err, "profiling: end_after_batch 1 is before start_on_batch 2")
	_, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{
		Project: "go", Type: bench.AdHoc, Command: &apiclient.Command{Argv: []string{"true"}}, Profiling: bench.Profiling{EndAfterBatch: &one},
	})
	require.ErrorContains(t, err, "profiling: end_after_batch 1 is before start_on_batch 2")
}

// What a command asks for is recorded with its request.
func TestACommandIsSubmittedWithProfiling(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	off := false
	wanted := apiclient.NewRequest{Type: bench.AdHoc, Command: &apiclient.Command{Argv: []string{"true"}}, Profiling: bench.Profiling{Enabled: &off}, IdempotencyKey: "once"}
	r, err := b.writer.CreateRequest(t.Context(), wanted)
	require.NoError(t, err)
	require.Equal(t, wanted.Profiling, r.Profiling)
	stored, err := b.store.Request(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, []bench.Target{linux}, stored.Selection.Targets)
	require.Equal(t, &wanted.Profiling, stored.Profiling)
	wanted.Profiling = bench.Profiling{}
	_, err = b.writer.CreateRequest(t.Context(), wanted)
	require.ErrorContains(t, err, "another profiling")
}
