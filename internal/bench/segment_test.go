package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestASegmentEndsWithAChangeOfTheMachinesSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b bench.Segment
		want string
	}{
		{"6.1|performance|0x2|none|false|off", "6.1|performance|0x2|none|false|off", ""},
		{"6.1|performance|0x2|none|false|off", "6.8|performance|0x2|none|false|off", "another kernel: 6.1 and 6.8"},
		{"6.1|powersave|0x2|none|true|on", "6.1|performance|0x3|isolcpus=2-3|false|off",
			"another governor: powersave and performance; another microcode: 0x2 and 0x3; other boot options: none and isolcpus=2-3; another turbo: true and false; another SMT: on and off"},
		{"6.1|||||off|none", "6.1|||||off|account,network", "another isolation: none and account,network"},
		{"6.1|||||off", "6.1|||||off|account,network", ""},     // not known
		{"6.1|||||", "6.1|performance|0x2|none|false|off", ""}, // not known
		{"6.1", "6.8|performance|0x2|none|false|off", "another kernel: 6.1 and 6.8"},
		{"", "6.1|performance|0x2|none|false|off", ""},
		{"", "", ""},
	} {
		require.Equal(t, c.want, c.a.Change(c.b))
		require.Equal(t, c.want != "", c.a.Differs(c.b))
		require.Equal(t, c.a.Differs(c.b), c.b.Differs(c.a))
	}
}

func TestASessionIsDisturbedAboveAFifth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		disturbed, all int
		want           bool
	}{{0, 0, false}, {0, 5, false}, {1, 5, false}, {2, 5, true}, {1, 4, true}, {1, 1, true}, {4, 20, false}, {5, 20, true}} {
		require.Equal(t, c.want, bench.SessionDisturbed(c.disturbed, c.all), "%d of %d", c.disturbed, c.all)
		samples := bench.Samples{Disturbed: make([]bool, c.all)}
		for i := range c.disturbed {
			samples.Disturbed[i] = true
		}
		require.Equal(t, c.want, samples.SessionDisturbed())
	}
}
