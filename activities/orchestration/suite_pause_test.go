package orchestration_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// failing carries a release out whose test cases all fail, each with the message in which
// %s is its benchmark.
func (b *bundle) failing(tag string, c bench.Collector, kind bench.FailureKind, message string) protocol.RequestRef {
	b.t.Helper()
	ref := b.running(tag)
	b.handOut(ref)
	b.failJobs(ref, c, kind, message)
	require.NoError(b.t, b.JobsDone(b.t.Context(), ref))
	require.NoError(b.t, b.JobsDone(b.t.Context(), ref), "an activity may be repeated")
	return ref
}

func (b *bundle) failJobs(ref protocol.RequestRef, c bench.Collector, kind bench.FailureKind, message string) {
	b.t.Helper()
	for _, j := range b.open(ref) {
		run := b.start(j.Key, c, 1)
		var errs []bench.RunError
		for _, tc := range j.TestCases {
			errs = append(errs, bench.RunError{Run: run, TestCase: &tc, Kind: kind, Message: fmt.Sprintf(message, tc.Benchmark)})
		}
		_, err := b.store.StoreBlock(b.t.Context(), run, nil, errs)
		require.NoError(b.t, err)
		require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: bench.RunFailure, Message: "failed"}))
		require.Equal(b.t, bench.JobFailure, b.recordEnd(j.Key, "failed").Status)
	}
}

func (b *bundle) paused() *store.Pause {
	b.t.Helper()
	p, err := b.store.QueuePause(b.t.Context(), project)
	require.NoError(b.t, err)
	return p
}

func TestASuiteThatFailsTwoRequestsPausesTheProject(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	first := b.failing("1.9.0", c, bench.FailJob, "%s 1/2: /artifacts/1.9.0/x: no unit MB/s")
	require.Nil(t, b.paused(), "one request may fail for a reason of its own")
	waiting := b.create(bench.Release, "1.11.0", 3)
	second := b.failing("1.10.0", c, bench.FailJob, "%s 2/2: /artifacts/1.10.0/x: no unit MB/s")
	p := b.paused()
	require.NotNil(t, p)
	require.Equal(t, "benchloom", p.By)
	require.Contains(t, p.Reason, "every test case of 1.9.0 and 1.10.0 failed in the same way, such as gin build full gc x86_64-unknown-linux-gnu: gin 2/2: /artifacts/1.10.0/x: no unit MB/s; correct the suite and apply it")
	state := b.admit()
	require.Equal(t, p.String(), state.Paused)
	require.Empty(t, state.InProgress)
	require.Contains(t, b.request(waiting).Message, "no unit MB/s")
	entries, err := b.store.Audit(t.Context(), store.AuditFilter{Project: project})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, []any{"benchloom", "queue pause", p.Reason, []bench.RequestID{first.ID, second.ID}}, []any{entries[0].Who, entries[0].Action, entries[0].Reason, entries[0].Result.Requests})

	// The same suite does not resume it, a changed one does.
	_, resumed, err := b.store.ResumeForSuite(t.Context(), project, "ada")
	require.NoError(t, err)
	require.False(t, resumed)
	b.applySuite(smallSuite + "# mended\n")
	done, resumed, err := b.store.ResumeForSuite(t.Context(), project, "ada")
	require.NoError(t, err)
	require.True(t, resumed)
	require.Equal(t, []string{"ada", "queue resume", "the suite has changed"}, []string{done.Who, done.Action, done.Reason})
	require.Nil(t, b.paused())
	_, resumed, err = b.store.ResumeForSuite(t.Context(), project, "ada")
	require.NoError(t, err)
	require.False(t, resumed)
	require.Len(t, b.admit().InProgress, 1)

	// With the changed suite, too, it takes two.
	b.handOut(waiting)
	b.failJobs(waiting, c, bench.FailJob, "%s 1/2: no unit MB/s")
	require.NoError(t, b.JobsDone(t.Context(), waiting))
	require.Nil(t, b.paused())
	b.failing("1.12.0", c, bench.FailJob, "%s 1/2: no unit MB/s")
	require.NotNil(t, b.paused())

	// Who resumes it as it is is not contradicted by what failed before.
	_, err = b.store.ResumeQueue(t.Context(), project, byAda)
	require.NoError(t, err)
	require.NoError(t, b.JobsDone(t.Context(), waiting))
	b.failing("1.13.0", c, bench.FailJob, "%s 1/2: no unit MB/s")
	require.Nil(t, b.paused())
	b.failing("1.14.0", c, bench.FailJob, "%s 1/2: no unit MB/s")
	require.NotNil(t, b.paused())
}

func TestWhatIsNotTheSuitesFaultPausesNothing(t *testing.T) {
	t.Parallel()
	const same = "%s 1/2: exit status 1"
	for name, second := range map[string]func(t *testing.T, b *bundle, c bench.Collector){
		"another message": func(_ *testing.T, b *bundle, c bench.Collector) {
			b.failing("1.1.0", c, bench.FailJob, "%s 1/2: killed")
		},
		"another kind": func(_ *testing.T, b *bundle, c bench.Collector) { b.failing("1.1.0", c, bench.FailTimeout, same) },
		"one result": func(t *testing.T, b *bundle, c bench.Collector) {
			ref := b.running("1.1.0")
			b.handOut(ref)
			good := b.open(ref)[0]
			b.measure(good, c, 1)
			b.recordEnd(good.Key, "")
			b.failJobs(ref, c, bench.FailJob, same)
			require.NoError(t, b.JobsDone(t.Context(), ref))
		},
		"a job that failed as a whole": func(t *testing.T, b *bundle, _ bench.Collector) {
			ref := b.running("1.1.0")
			b.handOut(ref)
			b.fail(ref, "there is no such artifact")
		},
		"another suite": func(_ *testing.T, b *bundle, c bench.Collector) {
			b.applySuite(smallSuite + "# changed\n")
			b.failing("1.1.0", c, bench.FailJob, same)
		},
		"a good one in between": func(_ *testing.T, b *bundle, c bench.Collector) {
			b.released("1.0.5", c, 1)
			b.failing("1.1.0", c, bench.FailJob, same)
		},
		"a person's own work": func(t *testing.T, b *bundle, c bench.Collector) {
			ref := b.create(bench.AdHoc, "1.1.0", 2)
			_, err := b.Expand(t.Context(), own(ref))
			require.NoError(t, err)
			b.failJobs(ref, c, bench.FailJob, same)
			require.NoError(t, b.JobsDone(t.Context(), ref))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, `{}`)
			c := b.register("c1")
			b.failing("1.0.0", c, bench.FailJob, same)
			second(t, b, c)
			require.Nil(t, b.paused())
		})
	}

	t.Run("the machine", func(t *testing.T) {
		t.Parallel()
		b := setup(t, `{}`)
		c := b.register("c1")
		for _, tag := range []string{"1.0.0", "1.1.0"} {
			b.failing(tag, c, bench.FailInfrastructure, "%s: the disk is full")
		}
		require.Nil(t, b.paused())
	})

	t.Run("a pause by a person", func(t *testing.T) {
		t.Parallel()
		b := setup(t, `{}`)
		c := b.register("c1")
		refs := []protocol.RequestRef{b.running("1.0.0"), b.running("1.1.0")}
		for _, ref := range refs {
			b.handOut(ref)
		}
		_, err := b.store.PauseQueue(t.Context(), project, byAda)
		require.NoError(t, err)
		for _, ref := range refs {
			b.failJobs(ref, c, bench.FailJob, same)
			require.NoError(t, b.JobsDone(t.Context(), ref))
		}
		require.Equal(t, "ada", b.paused().By)
		b.applySuite(smallSuite + "# changed\n")
		_, resumed, err := b.store.ResumeForSuite(t.Context(), project, "ada")
		require.NoError(t, err)
		require.False(t, resumed, "it stays until a person ends it")
	})
}
