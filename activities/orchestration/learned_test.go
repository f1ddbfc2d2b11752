package orchestration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// What is learned from a job lets those like it wait for another class: they are handed
// out there at once, for its collectors may idle. So it is at a job's end, and when a
// run was too small.
func TestJobsMovedByLearnedSizesAreHandedOutAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	collectors := make(map[bench.SizeClass]bench.Collector)
	for _, class := range []bench.SizeClass{1, 4} {
		collectors[class] = b.registerAt(bench.Pool{Target: target, SizeClass: class, Name: "sizes"})
	}
	_, first := b.command(bench.Constraints{})
	require.EqualValues(t, 1, b.job(first.Key).SizeClass, "it is tried on the smallest one")
	var others []bench.JobKey
	for range 20 {
		_, job := b.command(bench.Constraints{})
		others = append(others, job.Key)
	}
	handedOut := func(class bench.SizeClass) []bench.Job {
		var jobs []bench.Job
		for _, key := range others {
			if j := b.job(key); j.SizeClass == class && j.Status == bench.JobHandedOut {
				jobs = append(jobs, j)
			}
		}
		return jobs
	}
	const room = 4 // for one collector
	require.Len(t, handedOut(4), room)
	require.Empty(t, handedOut(1))

	b.measure(first, collectors[1], 2)
	b.recordEnd(first.Key, "")
	small := handedOut(1)
	require.Len(t, small, room)

	// The large one has taken all that it had, when class 1 proves too small again and
	// again. The jobs that fail move by themselves, without a hand-out.
	b.execute(`update job_queue set status = 'success', completed_at = now() where size_class = 4`)
	for range 5 {
		if len(handedOut(4)) > 0 {
			break
		}
		key := handedOut(1)[0].Key
		require.NoError(t, b.store.FinishRun(t.Context(), b.start(key, collectors[1], 1), bench.RunEnd{Outcome: bench.RunOutOfMemory}))
		_, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: key, Kind: bench.FailTooSmall, Message: "out of memory"})
		require.NoError(t, err)
	}
	require.NotEmpty(t, handedOut(4))
}
