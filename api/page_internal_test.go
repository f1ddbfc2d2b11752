package api

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

type allDrawn struct{}

func (allDrawn) Has(string) bool { return true }

// An idle connection to the database keeps the context of its last statement, which must not keep the answer.
func TestContextsDoNotKeepAnswers(t *testing.T) {
	t.Parallel()
	var kept context.Context
	answered, err := take(t.Context(), func(ctx context.Context) (string, error) {
		kept = ctx //nolint:fatcontext // as the driver of the database keeps it
		answer := "large"
		require.True(t, handOver(ctx, &answer))
		return "not taken", nil
	})
	require.NoError(t, err)
	require.Equal(t, "large", answered)
	held, there := kept.Value(takerKey{}).(*taker[string])
	require.True(t, there)
	require.Nil(t, held.taken)

	lent := &lentDrawings{allDrawn{}}
	ctx := context.WithValue(t.Context(), drawingsKey{}, lent)
	require.True(t, drawings(ctx)("digest"))
	lent.Drawings = nil
	require.Nil(t, drawings(ctx))
	require.Nil(t, drawings(t.Context()))
}
