package pages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALineOfALogHasOneAddress(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("x\n", 1200))
	part := func(line int) [4]int {
		w := window(text, line)
		return [4]int{w.Lines[0].Number, w.Lines[len(w.Lines)-1].Number, w.Earlier, w.Later}
	}
	require.Equal(t, [4]int{1, 500, 0, 501}, part(1))
	require.Equal(t, [4]int{1, 500, 0, 501}, part(500))
	require.Equal(t, [4]int{501, 1000, 500, 1001}, part(501))
	require.Equal(t, [4]int{1001, 1200, 1000, 0}, part(0), "the end")
	require.Equal(t, [4]int{1001, 1200, 1000, 0}, part(9999), "not there any more")

	require.Empty(t, window(nil, 0).Lines)
	open := window([]byte("a\r\n\nno end"), 0)
	require.Equal(t, []logLine{{1, "a"}, {2, ""}, {3, "no end"}}, open.Lines)
	require.Equal(t, 3, open.Total)
}
