package protocol_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/protocol"
)

// What was dispatched before has a fairness key of its own, and no key is longer than
// Temporal takes.
func TestFairnessKeys(t *testing.T) {
	t.Parallel()
	long := "user:" + strings.Repeat("é", 29) + "a" // 64 bytes
	other := long[:63] + "b"
	for _, c := range []struct {
		priority protocol.Priority
		want     string
	}{
		{protocol.Priority{Queue: "vip"}, "vip"},
		{protocol.Priority{Queue: "user:ada", Turn: 4}, "user:ada#4"},
		{protocol.Priority{Queue: "user:ada", Again: true}, "user:ada#again"},
		{protocol.Priority{Queue: "user:ada", Turn: 4, Again: true}, "user:ada#4#again"},
		{protocol.Priority{Queue: long}, long},
	} {
		require.Equal(t, c.want, c.priority.FairnessKey())
	}
	require.Equal(t, "user:ada#again", protocol.FairnessKeyAgain("user:ada#again"), "again and again")

	keys := make(map[string]bool)
	for _, queue := range []string{long, other} {
		for _, p := range []protocol.Priority{{Queue: queue, Turn: 1}, {Queue: queue, Turn: 12}, {Queue: queue, Again: true}, {Queue: queue, Turn: 1, Again: true}} {
			key := p.FairnessKey()
			require.LessOrEqual(t, len(key), 64)
			require.True(t, utf8.ValidString(key))
			require.Equal(t, p.Again, strings.HasSuffix(key, "#again"))
			keys[key] = true
		}
	}
	require.Len(t, keys, 8)
}
