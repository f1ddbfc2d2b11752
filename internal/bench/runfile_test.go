package bench_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestPathsOfRunFilesStayWithinTheJob(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"report.html", "out/a b.txt", "out/ä.txt", "..a"} {
		require.NoError(t, bench.CheckRunFilePath(path))
	}
	for _, path := range []string{"", ".", "..", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "a\\b", "a\nb", "a\x00b", strings.Repeat("x", 501)} {
		require.ErrorIs(t, bench.CheckRunFilePath(path), bench.ErrInvalid, "%q", path)
	}
}
