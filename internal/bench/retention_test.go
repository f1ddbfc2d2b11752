package bench_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestEveryKindHasADefaultRetention(t *testing.T) {
	t.Parallel()
	kinds := bench.RetentionKinds()
	require.ElementsMatch(t, kinds, slices.Collect(maps.Keys(bench.DefaultRetention())))
	require.Equal(t, bench.Forever, bench.DefaultRetention()[bench.KeepTry], "results of tracked requests are never removed")
	for kind, kept := range bench.DefaultRetention() {
		texts := map[string]string{string(kind): bench.KeptText(kept)}
		read, err := bench.ParseRetention(texts)
		require.NoError(t, err)
		require.Equal(t, bench.Retention{kind: kept}, read, "%v", texts)
	}
}

func TestRetentionsAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"1d": 24 * time.Hour, "36500d": 36500 * 24 * time.Hour, "36h": 36 * time.Hour, "forever": bench.Forever} {
		kept, err := bench.ParseRetention(map[string]string{"try": text})
		require.NoError(t, err, text)
		require.Equal(t, want, kept[bench.KeepTry], text)
	}
	for _, text := range []string{"", "0d", "0", "-1d", "23h", "36501d", "9999999999999999999d", "d", "1y", "90", "never"} {
		_, err := bench.ParseRetention(map[string]string{"try": text})
		require.ErrorIs(t, err, bench.ErrInvalid, text)
		require.ErrorContains(t, err, "such as 90d, or forever")
	}
	_, err := bench.ParseRetention(map[string]string{"results": "1d"})
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.ErrorContains(t, err, "use one of output, samples, commands,")
}

func TestAProjectConfiguresItsOwnKindsOnly(t *testing.T) {
	t.Parallel()
	c := bench.ProjectConfig{Keep: map[string]string{"try": "90d", "output": "forever"}}
	require.NoError(t, c.Check())
	require.Equal(t, bench.Retention{bench.KeepTry: 90 * 24 * time.Hour, bench.KeepOutput: bench.Forever}, c.Retention())
	for _, keep := range []map[string]string{{"audit": "90d"}, {"try": "soon"}, {"tries": "90d"}} {
		require.ErrorIs(t, bench.ProjectConfig{Keep: keep}.Check(), bench.ErrInvalid, "%v", keep)
	}
}
