package store

import (
	"testing"

	"github.com/jellydator/ttlcache/v3"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// What a process keeps of artifacts is bounded in bytes, whatever their number and size.
func TestWhatIsKeptOfArtifactsIsBounded(t *testing.T) {
	t.Parallel()
	samples, origins := newKeptSamples(), newKeptOrigins()
	const series, values = 5600, 5
	one := make([]bench.Samples, series)
	for i := range one {
		one[i].Values = make([]float64, values)
	}
	bytes := series * (bytesPerSamples + values*bytesPerValue)
	for artifact := range int64(100) {
		samples.Set(artifact, versionedSamples{"1", one}, ttlcache.NoTTL)
		origins.Set(artifact, versionedOrigins{"1", make([]Origin, 700)}, ttlcache.NoTTL)
	}
	require.Equal(t, keptSamplesBytes/bytes, samples.Len())
	require.Equal(t, keptOriginsBytes/(700*bytesPerOrigin), origins.Len())
	require.True(t, samples.Has(99), "the newest")
	require.False(t, samples.Has(1))

	stale, sheet := newKeptStale(), make([]byte, 300_000)
	for artifact := range int64(100) {
		stale.Set(artifact, staleSheets{version: "1", sheets: map[sheetKey][]byte{{Metric: bench.WallTime}: sheet}}, ttlcache.NoTTL)
	}
	require.Equal(t, keptStaleBytes/len(sheet), stale.Len())

	samples.Set(100, versionedSamples{"1", make([]bench.Samples, keptSamplesBytes/bytesPerSamples+1)}, ttlcache.NoTTL)
	require.LessOrEqual(t, samples.Len(), 1, "an artifact that is larger than all that may be kept")
	samples.Set(101, versionedSamples{"1", one}, ttlcache.NoTTL)
	require.True(t, samples.Has(101))
}
