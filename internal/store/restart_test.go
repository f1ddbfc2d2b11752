package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A call right after Postgres has been restarted does not fail because its connection is gone.
func TestConnectionsThatAreGoneAreReplaced(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for range 3 {
		_, err := r.Sheets(t.Context(), project, nil, nil) // by one of the connections for reports
		require.NoError(t, err)
		require.NoError(t, r.Ping(t.Context()))
		ended := r.count(`
			select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
			where datname = current_database() and application_name <> $1`, aside)
		require.Positive(t, ended)
		time.Sleep(150 * time.Millisecond) // sooner, no Postgres is back
		require.NoError(t, r.Ping(t.Context()))
		_, err = r.Sheets(t.Context(), project, nil, nil)
		require.NoError(t, err)
	}
}
