package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
)

// What operators do with requests: retry, remeasure, invalidate, pause, cancel and purge.
func TestOperatorActions(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	shell := newShellSuite(t, 2)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	because := apiclient.Act{Reason: "for a test"}
	lacking := apiclient.Retrigger{Act: because, Lacking: true}
	measured := func(tag string) map[string]int {
		return map[string]int{"count-1 " + tag: shell.executions(t)["count-1 "+tag], "count-2 " + tag: shell.executions(t)["count-2 "+tag]}
	}
	times := func(tag string, one, two int) map[string]int {
		return map[string]int{"count-1 " + tag: one, "count-2 " + tag: two}
	}

	// An artifact is missing, then appears: the same request is retried.
	first := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.0.0"})
	require.Equal(t, bench.Failure, s.await(t, first.ID, ended).Outcome)
	shell.artifact(t, "1.0.0", 10)
	_, err := s.api.Retrigger(t.Context(), string(first.ID), lacking, false)
	require.NoError(t, err)
	require.Equal(t, bench.Success, s.await(t, first.ID, ended).Outcome)
	require.Equal(t, times("1.0.0", 3, 3), measured("1.0.0"))
	_, err = s.api.Retrigger(t.Context(), string(first.ID), lacking, false)
	require.ErrorContains(t, err, "every test case of it has a result")

	// Existing results are measured again only on request.
	_, err = s.api.Retrigger(t.Context(), string(first.ID), apiclient.Retrigger{Act: because, Select: "stage=own,benchmark=count-2"}, false)
	require.NoError(t, err)
	require.Equal(t, bench.Success, s.await(t, first.ID, ended).Outcome)
	require.Equal(t, times("1.0.0", 3, 6), measured("1.0.0"))

	// A retry measures invalidated results again.
	_, err = s.api.InvalidateResults(t.Context(), apiclient.Invalidation{Act: because, Project: "shell", Tag: "1.0.0"})
	require.NoError(t, err)
	_, err = s.api.Retrigger(t.Context(), string(first.ID), lacking, false)
	require.NoError(t, err)
	require.Equal(t, bench.Success, s.await(t, first.ID, ended).Outcome)
	require.Equal(t, times("1.0.0", 6, 9), measured("1.0.0"))

	// A paused project admits no request, and says who paused it and why.
	_, err = s.api.PauseQueue(t.Context(), "shell", because)
	require.NoError(t, err)
	shell.artifact(t, "1.1.0", 10)
	second := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.1.0"})
	require.Eventually(t, func() bool {
		d, err := s.api.Request(t.Context(), string(second.ID))
		return err == nil && d.Status == bench.ArtifactsReady && len(d.Message) > 0 && d.Message[:len("the queue is paused by ")] == "the queue is paused by "
	}, patience, 50*time.Millisecond)
	_, err = s.api.ResumeQueue(t.Context(), "shell", apiclient.Act{})
	require.NoError(t, err)
	require.Equal(t, bench.Success, s.await(t, second.ID, ended).Outcome)

	// Cancelled in the middle and retried at once: the retry waits for the end of the
	// former workflow and of its benchmark.
	shell.artifact(t, "1.2.0", 10)
	release := s.hold(t, failpoint.Measuring)
	third := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.2.0"})
	s.reached(t, failpoint.Measuring)
	_, err = s.api.CancelRequest(t.Context(), string(third.ID), because)
	require.NoError(t, err)
	release()
	_, err = s.api.Retrigger(t.Context(), string(third.ID), lacking, false)
	require.NoError(t, err)
	require.Equal(t, bench.Success, s.await(t, third.ID, ended).Outcome)

	// After a purge, the same submission makes a new request.
	_, err = s.api.PurgeArtifact(t.Context(), apiclient.Purge{Act: because, Project: "shell", Tag: "1.2.0"})
	require.NoError(t, err)
	again := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.2.0"})
	require.NotEqual(t, third.ID, again.ID)
	require.Equal(t, bench.Success, s.await(t, again.ID, ended).Outcome)
}
