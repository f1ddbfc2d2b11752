package pages

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecondsAreLabelledRound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from, to float64
		want     []string
	}{
		"twenty seconds":    {0, 20, []string{"0 s", "5 s", "10 s", "15 s", "20 s"}},
		"five minutes":      {0, 300, []string{"0 s", "100 s", "200 s", "300 s"}},
		"a part":            {4, 8, []string{"4 s", "5 s", "6 s", "7 s", "8 s"}},
		"a tenth":           {1.23, 1.33, []string{"1.24 s", "1.26 s", "1.28 s", "1.30 s", "1.32 s"}},
		"longer than a day": {1e5, 1e9, []string{"200000000 s", "400000000 s", "600000000 s", "800000000 s", "1000000000 s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var labels []string
			for _, tick := range secondTicks(tt.from, tt.to) {
				require.GreaterOrEqual(t, tick.X, tt.from)
				require.LessOrEqual(t, tick.X, tt.to)
				labels = append(labels, tick.Label)
			}
			require.Equal(t, tt.want, labels)
		})
	}
}
