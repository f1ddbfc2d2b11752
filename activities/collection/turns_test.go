//go:build linux

package collection_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// second creates an artifact beside v1.
func (b *bundle) second(tag string) {
	b.t.Helper()
	require.NoError(b.t, os.MkdirAll(filepath.Join(b.root, "artifacts", tag), 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join(b.root, "artifacts", tag, "file"), []byte(tag), 0o644))
}

func (b *bundle) inTurns(benchmarks ...string) bench.JobKey {
	b.t.Helper()
	return b.request(bench.Job{Work: bench.Work{Tag: "v2", Versus: "v1", Kind: bench.KindRuntime, SuiteHash: b.hash}}, benchmarks...)
}

func TestAJobMeasuresTwoArtifactsInTurns(t *testing.T) {
	b := setup(t)
	b.second("v2")
	key := b.inTurns("which", "fails")
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeJobFailure, true, "2 of 4 test cases failed")
	require.Equal(t, []string{"which-v1", "which-v2", "which-v2", "which-v1"}, b.journal()[:4], "in the order ABBA")
	require.Equal(t, 2, b.done(key), "one test case of each")
	ofA, ofB, err := b.store.SamplesInTurns(t.Context(), "go", "v1", "v2")
	require.NoError(t, err)
	require.NotEmpty(t, ofA)
	require.Len(t, ofB, len(ofA))
	require.Len(t, ofA[0].Values, 2)

	// The next attempt measures what failed, on both.
	_, err = b.run(key, 2)
	b.fails(err, protocol.ErrTypeJobFailure, true, "2 of 2 test cases failed")
	require.Len(t, b.journal(), 4+2+2)
	log, _, err := b.store.ReadLog(t.Context(), b.runs(key)[1].ID, 0, 1<<20)
	require.NoError(t, err)
	require.Contains(t, string(log), "[v1]")
	require.Contains(t, string(log), "[v2]")
}

func TestBothArtifactsOfAPairMustBeThere(t *testing.T) {
	b := setup(t)
	key := b.inTurns("which")
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypePermanent, false, "v2")
	require.Empty(t, b.journal())
	require.Zero(t, b.done(key))
}

// Both sides of a canary are one artifact; the second tag only names where its results
// belong.
func TestACanaryMeasuresOneArtifactOnBothSides(t *testing.T) {
	b := setup(t)
	key := b.request(bench.Job{
		Work:     bench.Work{Tag: "v1", Versus: bench.CanaryTag("v1"), Kind: bench.KindRuntime, SuiteHash: b.hash},
		Location: bench.Location{Constraints: &bench.Constraints{Machines: []string{"c1"}, Canary: true}},
	}, "which")
	_, err := b.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"which-v1", "which-v1", "which-v1", "which-v1"}, b.journal())
	one, other, err := b.store.SamplesInTurns(t.Context(), "go", bench.CanaryTag("v1"), "v1")
	require.NoError(t, err)
	require.NotEmpty(t, one)
	require.Len(t, one[0].Values, 2)
	require.Len(t, other, len(one))
	alone, err := b.store.SamplesOf(t.Context(), "go", "v1")
	require.NoError(t, err)
	require.Empty(t, alone, "nothing of it is a result of the artifact")
}
