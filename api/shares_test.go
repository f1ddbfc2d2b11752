package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
)

func TestSharesOfQueuesUsersHostsAndPools(t *testing.T) {
	t.Parallel()
	b := setup(t)
	none, err := b.reader.Shares(t.Context(), "", "")
	require.NoError(t, err)
	require.Equal(t, apiclient.Shares{By: "queue", WindowSeconds: 3600, Shares: []apiclient.Share{}}, none)

	b.past(t, `insert into queue_config (name, class, weight, level, updated_by) values ('vip', 'strict', 1, 1, 'ada'), ('user:ada', 'weighted', 0.3, 3, 'ada')`)
	queues, err := b.reader.Shares(t.Context(), "queue", "")
	require.NoError(t, err)
	require.Equal(t, []apiclient.Share{
		{Name: "user:ada", Class: "weighted", Weight: 0.3, Level: 3}, {Name: "vip", Class: "strict", Weight: 1, Level: 1},
	}, queues.Shares, "configured, and without any work")
	one, err := b.reader.Shares(t.Context(), "queue", "vip")
	require.NoError(t, err)
	require.Len(t, one.Shares, 1)
	_, err = b.reader.Shares(t.Context(), "queue", "idle")
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	require.ErrorContains(t, err, "known are user:ada, vip")
	_, err = b.reader.Shares(t.Context(), "host", "m1")
	require.ErrorContains(t, err, "nor has any other host")
	r := b.send(t, "", http.MethodGet, "/api/v1/shares?by=moon", "")
	require.Equal(t, http.StatusUnprocessableEntity, r.status, r.body)
}
