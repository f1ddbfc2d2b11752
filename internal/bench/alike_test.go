package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestFailuresOfTwoArtifactsAreAlike(t *testing.T) {
	t.Parallel()
	job := func(message string) bench.RunError { return bench.RunError{Kind: bench.FailJob, Message: message} }
	for name, want := range map[string]struct {
		a, b  bench.RunError
		alike bool
	}{
		"the same words":     {job("gin 1/5: no unit MB/s"), job("gin 1/5: no unit MB/s"), true},
		"other iterations":   {job("gin 1/5: exit status 1"), job("gin 12/50: exit status 1"), true},
		"paths of artifacts": {job("/c/build-1.9.0-0a1b2c3d4e/x: not found"), job("/c/build-1.10.0-ffffffffff/x: not found"), true},
		"other words":        {job("gin 1/5: no unit MB/s"), job("gin 1/5: no unit B/op"), false},
		"other kinds":        {job("killed"), bench.RunError{Kind: bench.FailTimeout, Message: "killed"}, false},
		"the machine": {
			bench.RunError{Kind: bench.FailInfrastructure, Message: "the disk is full"}, bench.RunError{Kind: bench.FailInfrastructure, Message: "the disk is full"}, false,
		},
	} {
		require.Equal(t, want.alike, bench.FailedAlike("1.9.0", want.a, "1.10.0", want.b), name)
		require.Equal(t, want.alike, bench.FailedAlike("1.10.0", want.b, "1.9.0", want.a), name)
	}
}
