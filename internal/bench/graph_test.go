package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestGraphIDs(t *testing.T) {
	t.Parallel()
	id, err := bench.ParseGraphID("r7k2m4q9xt2-12")
	require.NoError(t, err)
	require.Equal(t, bench.GraphID{Request: "r7k2m4q9xt2", Number: 12}, id)
	require.Equal(t, "r7k2m4q9xt2-12", id.String())
	for _, bad := range []string{"", "-1", "r7k2m4q9xt2", "r7k2m4q9xt2-", "r7k2m4q9xt2-0", "r7k2m4q9xt2-01", "r7k2m4q9xt2--1", "r7k2m4q9xt2-+1", "r7k2m4q9xt2-1-1", "go:1.26-1", "r7k2m4q9xt2-99999999999999999999"} {
		_, err := bench.ParseGraphID(bad)
		require.ErrorIs(t, err, bench.ErrInvalid, bad)
	}
}
