package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestADispatchIsOnlyItself(t *testing.T) {
	t.Parallel()
	const one = bench.Dispatch("0a1b2c")
	require.True(t, one.Is("0a1b2c"))
	for _, other := range []bench.Dispatch{"", "0a1b2d", "0a1b2", "0a1b2cc", "0A1B2C"} {
		require.False(t, one.Is(other))
		require.False(t, other.Is(one))
	}
	require.False(t, bench.Dispatch("").Is(""), "no dispatch is not the same as no dispatch")
}

func TestADispatchTravelsAndIsNotPrinted(t *testing.T) {
	t.Parallel()
	const secret = "0a1b2c3d"
	in := struct{ Dispatch bench.Dispatch }{secret}
	text, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"Dispatch":"0a1b2c3d"}`, string(text))

	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("dispatched", "dispatch", in.Dispatch)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&log, verb, in)
		fmt.Fprintf(&log, verb, in.Dispatch)
	}
	require.NotContains(t, log.String(), secret)
}
