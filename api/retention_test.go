package api_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestTheRetentionIsShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	none, err := b.reader.Retention(t.Context())
	require.NoError(t, err)
	require.Empty(t, none.Kinds)

	require.NoError(t, b.store.PutSuite(t.Context(), "0123", "old", []byte("files")))
	b.past(t, `update suite_bundle set created_at = now() - interval '1 year' where hash = '0123'`)
	const day = 24 * time.Hour
	require.NoError(t, b.store.RecordRetention(t.Context(), store.Keep{Kind: bench.KeepSuites, For: 30 * day}, store.Removed{Rows: 3, Bytes: 4000}))
	require.NoError(t, b.store.RecordRetention(t.Context(), store.Keep{Kind: bench.KeepTry, Projects: map[string]time.Duration{"go": 90 * day}}, store.Removed{}))
	list, err := b.reader.Retention(t.Context())
	require.NoError(t, err)
	require.Len(t, list.Kinds, 2)
	try, suites := list.Kinds[0], list.Kinds[1]
	require.Equal(t, bench.KeepTry, try.Kind)
	require.Equal(t, "forever", try.Keep)
	require.Equal(t, map[string]string{"go": "90d"}, try.Projects)
	require.Equal(t, "30d", suites.Keep)
	require.Equal(t, apiclient.Amount{Rows: 3, Bytes: 4000}, suites.Removed)
	require.Equal(t, int64(1), suites.Due.Rows)
	require.Positive(t, suites.Due.Bytes)
	require.WithinDuration(t, time.Now(), suites.LastPassAt, time.Hour)
}

func TestAnAdministratorBeginsAPass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.ErrorIs(t, b.writer.RunRetention(t.Context()), apiclient.ErrForbidden)
	require.Zero(t, b.workflows.retained)
	require.NoError(t, b.admin.RunRetention(t.Context()))
	require.Equal(t, 1, b.workflows.retained)

	b.workflows.err = errors.New("no Temporal")
	require.ErrorContains(t, b.admin.RunRetention(t.Context()), "it begins by itself within an hour")
}
