package orchestration_test

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

func TestExpandingTwiceWritesTheJobsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	ref := b.admitted("1.26.0")

	// No target is named: the one that has a collector is taken.
	first, err := b.Expand(t.Context(), own(ref))
	require.NoError(t, err)
	require.Equal(t, protocol.JobCounts{Total: 2, Open: 2}, first.Counts)
	jobs := b.jobs(ref)
	require.Equal(t, []bench.JobKey{jobs[0].Key, jobs[1].Key}, b.handedOut(ref), "there is a collector for them")
	require.Len(t, jobs, 2)
	require.Equal(t, []bench.JobKind{bench.KindCompileTime, bench.KindRuntime}, []bench.JobKind{jobs[0].Kind, jobs[1].Kind})
	for _, j := range jobs {
		require.Equal(t, "project:go", j.Queue)
		require.Equal(t, "1.26.0", j.Tag)
		require.Equal(t, bench.SizeClass(2), j.SizeClass)
	}

	// Neither a repetition nor other collectors change what is written.
	_, err = b.store.RegisterCollector(t.Context(), bench.Collector{
		Name: "large", Target: target, SizeClass: 8, Pool: "large", MachineID: "machine of large", Version: "1", HardwareID: "cpu1", Facts: []byte(`{}`),
	}, offline)
	require.NoError(t, err)
	again, err := b.Expand(t.Context(), own(ref))
	require.NoError(t, err)
	require.Equal(t, first.Counts, again.Counts)
	require.Equal(t, keysOf(first.HandedOut), keysOf(again.HandedOut), "also what the first answer has named: it may be lost")
	require.Equal(t, jobs, b.jobs(ref))

	// A job that has ended needs no hand-out any more.
	for _, j := range jobs {
		b.recordEnd(j.Key, "broken")
	}
	ended, err := b.Expand(t.Context(), own(ref))
	require.NoError(t, err)
	require.Equal(t, protocol.ExpandResult{Counts: protocol.JobCounts{Total: 2, Failure: 2}}, ended)
}

func TestAnUnplaceableRequestFailsWithTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config   string
		register bool
		want     string
	}{
		"no collector":   {`{}`, false, "none is registered at all; start one with 'benchloom collector'"},
		"another target": {`{"targets": ["aarch64-unknown-linux-gnu"]}`, true, "no collector is registered that can run aarch64-unknown-linux-gnu"},
		"another class":  {`{"size": {"class": 16}}`, true, "no collector is registered that can run x86_64-unknown-linux-gnu of size class 16"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.config)
			if c.register {
				b.register("c1")
			}
			ref := b.admitted("1.26.0")
			out, err := b.Expand(t.Context(), own(ref))
			require.NoError(t, err)
			require.Contains(t, out.Failed, c.want)
			require.Empty(t, b.jobs(ref))
			require.Nil(t, b.request(ref).ExpandedAt)

			done := b.complete(ref, out.Failed)
			require.Equal(t, protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Failure, Message: out.Failed}}, done)
		})
	}
}

func TestErrorsThatRetriesCannotCureArePermanent(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	permanent := func(err error, want string) {
		t.Helper()
		var application *temporal.ApplicationError
		require.ErrorAs(t, err, &application)
		require.Equal(t, protocol.ErrTypePermanent, application.Type())
		require.True(t, application.NonRetryable())
		require.ErrorContains(t, err, want)
	}
	unknown := protocol.RequestRef{Project: project, ID: "raaaaaaaaa"}
	_, err := b.LoadRequest(t.Context(), unknown)
	permanent(err, "reading the request")
	_, err = b.Expand(t.Context(), own(unknown))
	permanent(err, "reading the request")
	_, err = b.RecordJobEnd(t.Context(), protocol.JobEndInput{Project: project, Key: "aaaaaaaaaaaaaaaa"})
	permanent(err, "recording the job's end")
	_, err = b.Admit(t.Context(), protocol.QueueInput{Project: "nobody"})
	permanent(err, "reading project nobody")

	ref := b.admitted("1.26.0")
	b.apply(`{"queue": 7}`)
	_, err = b.Expand(t.Context(), own(ref))
	permanent(err, "apply a corrected configuration")
}

func TestACommandIsOneJobInItsSubmittersQueue(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	submit := func() protocol.RequestRef {
		id, err := bench.NewRequestID(rand.Reader)
		require.NoError(t, err)
		_, _, err = b.store.CreateRequest(t.Context(), bench.Request{
			ID: id, Project: project, Type: bench.AdHoc,
			Submission: bench.Submission{Submitter: "ada"},
			Commands:   bench.Commands{Command: &bench.Command{Argv: []string{"sleep", "1"}, TimeoutSeconds: 10, Iterations: 3}},
			Standing:   bench.Standing{Status: bench.ArtifactsReady},
		})
		require.NoError(t, err)
		return protocol.RequestRef{Project: project, ID: id}
	}
	one, two := submit(), submit()
	for _, ref := range []protocol.RequestRef{one, two, one} {
		out, err := b.Expand(t.Context(), own(ref))
		require.NoError(t, err)
		require.Equal(t, protocol.JobCounts{Total: 1, Open: 1}, out.Counts)
	}
	job := b.jobs(one)[0]
	require.Equal(t, "user:ada", job.Queue)
	require.Equal(t, 3, job.Iterations)
	require.Equal(t, []bench.TestCase{{Benchmark: bench.CommandBenchmark, Target: target}}, job.TestCases)
	require.Equal(t, bench.InProgress, b.request(one).Status, "nobody admits it")
	require.NotEqual(t, job.Key, b.jobs(two)[0].Key, "equal commands of two requests are two jobs")

	// Its end wakes no queue.
	b.workflows.taken()
	require.NoError(t, b.JobsDone(t.Context(), one))
	require.Empty(t, b.workflows.taken())
}
