package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One process at a time does what has a name; who waits goes on when it has ended, also
// in failure or by losing its connection, or gives up with its context.
func TestWhatIsDoneAlone(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	begun, end := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	refused := errors.New("refused")
	go func() {
		first <- r.Alone(t.Context(), "a pass", func(context.Context) error {
			close(begun)
			<-end
			return refused
		})
	}()
	<-begun

	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := r.Alone(short, "a pass", func(context.Context) error { panic("two at once") })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, r.Alone(t.Context(), "another", func(context.Context) error { return nil }), "a name of its own waits for nobody")

	ran := false
	wait := r.whileWaiting(func() error {
		return r.Alone(t.Context(), "a pass", func(context.Context) error {
			ran = true
			return nil
		})
	})
	close(end)
	wait()
	require.True(t, ran)
	require.ErrorIs(t, <-first, refused)

	// Whose connection breaks holds nobody up.
	require.NoError(t, r.Alone(t.Context(), "a pass", func(context.Context) error {
		r.execute(`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())`)
		return nil
	}))
	require.NoError(t, r.Alone(t.Context(), "a pass", func(context.Context) error { return nil }))
}
