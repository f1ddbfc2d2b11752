//go:build linux

package collection_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// profileJob records a job that runs the benchmark "profiled" under a profiler.
func (b *bundle) profileJob(profiler string) bench.JobKey {
	b.t.Helper()
	job, err := bench.NewProfileJob("go", "v1", b.hash, bench.TestCase{Benchmark: "profiled", Target: target}, profiler)
	require.NoError(b.t, err)
	return b.request(job)
}

func (b *bundle) profiles(key bench.JobKey) []bench.CodeProfile {
	b.t.Helper()
	list, err := b.store.CodeProfiles(b.t.Context(), store.CodeProfileFilter{Job: key, Limit: 10})
	require.NoError(b.t, err)
	return list
}

func uploadsProfiles(path string) bool { return strings.Contains(path, "/code-profile") }

func TestAProfileIsStored(t *testing.T) {
	for profiler, total := range map[string]int64{"one": 9, "good": 100} {
		b := setup(t)
		key := b.profileJob(profiler)
		out, err := b.run(key, 1)
		require.NoError(t, err)
		require.Equal(t, bench.RunSuccess, out.Outcome)
		require.Equal(t, []string{"profiled", "profiled"}, b.journal(), "without the profiler first")
		stored := b.profiles(key)
		require.Len(t, stored, 1)
		require.Equal(t, []any{profiler, "folded", "v1", out.Run}, []any{stored[0].Profiler, stored[0].Format, stored[0].Tag, stored[0].Run})
		require.Equal(t, total, stored[0].SampleTypes[0].Total, "of all files")
		require.Empty(t, b.spooled())
	}
}

// A profile can be made again: one that cannot be delivered is not kept on the machine.
func TestAProfileThatCannotBeDeliveredIsMadeAgain(t *testing.T) {
	b := setup(t)
	key := b.profileJob("one")
	b.gate.refuse(uploadsProfiles)
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeInfrastructure, false, "uploading the profile")
	require.Empty(t, b.profiles(key))
	require.Empty(t, b.spooled())
	b.gate.refuse(nil)
	out, err := b.run(key, 2)
	require.NoError(t, err)
	stored := b.profiles(key)
	require.Len(t, stored, 1)
	require.Equal(t, out.Run, stored[0].Run)
	require.Equal(t, []bench.RunOutcome{bench.RunLost, bench.RunSuccess}, []bench.RunOutcome{b.runs(key)[0].Outcome, b.runs(key)[1].Outcome})
}

func TestAProfilerThatFailsFailsItsRun(t *testing.T) {
	b := setup(t)
	key := b.profileJob("bad")
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypePermanent, false, "not a profile: line 1")
	require.Empty(t, b.profiles(key))

	key = b.profileJob("crashes")
	_, err = b.run(key, 1)
	b.fails(err, protocol.ErrTypeJobFailure, true, "under crashes")
	log, _, err := b.store.ReadLog(t.Context(), b.runs(key)[0].ID, 0, 1<<20)
	require.NoError(t, err)
	require.Contains(t, string(log), "so sad")
}
