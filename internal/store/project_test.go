package store_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestProjectsAreAppliedOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	p := store.Project{Name: "rustc", Config: json.RawMessage(`{"a": 1, "b": [2]}`)}

	changed, err := r.ApplyProject(t.Context(), p)
	require.NoError(t, err)
	require.True(t, changed)

	// The same configuration, formatted differently, changes nothing.
	p.Config = json.RawMessage(`{"b":[2],"a":1}`)
	changed, err = r.ApplyProject(t.Context(), p)
	require.NoError(t, err)
	require.False(t, changed)

	// The suite must be stored first.
	p.SuiteHash = "beef"
	_, err = r.ApplyProject(t.Context(), p)
	require.ErrorIs(t, err, store.ErrNotFound)
	twice(t, func() error { return r.PutSuite(t.Context(), "beef", "rustc", []byte{0, 1, 2}) })
	changed, err = r.ApplyProject(t.Context(), p)
	require.NoError(t, err)
	require.True(t, changed)

	stored, err := r.Project(t.Context(), "rustc")
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1,"b":[2]}`, string(stored.Config))
	require.Equal(t, "beef", stored.SuiteHash)
	require.NotZero(t, stored.CreatedAt)

	all, err := r.Projects(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, stored, all[1])
	require.Equal(t, project, all[0].Name)

	_, err = r.Project(t.Context(), "nobody")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestSuitesStayAsTheyWerePut(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	require.NoError(t, r.PutSuite(t.Context(), suiteHash, "other", []byte("other")))
	name, archive, err := r.SuiteArchive(t.Context(), suiteHash)
	require.NoError(t, err)
	require.Equal(t, "go", name)
	require.Equal(t, "files", string(archive))
	_, _, err = r.SuiteArchive(t.Context(), "nothing")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestTransientErrors(t *testing.T) {
	t.Parallel()
	// Nothing listens there.
	away, err := store.Open(t.Context(), "postgres://127.0.0.1:1/x?connect_timeout=1")
	require.NoError(t, err)
	t.Cleanup(away.Close)
	require.True(t, store.IsTransient(away.Ping(t.Context())))

	// An administrator ends all sessions; the next call finds a new connection.
	r := newRecord(t)
	err = func() error {
		_, err := r.Admit(t.Context(), project, 1, admitNone(func() {
			r.execute(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'benchloom' and datname = current_database()`)
		}))
		return err
	}()
	require.Error(t, err)
	require.True(t, store.IsTransient(err), err)
	require.NoError(t, r.Ping(t.Context()))

	// These errors are permanent.
	require.False(t, store.IsTransient(nil))
	require.False(t, store.IsTransient(store.ErrNotFound))
	require.False(t, store.IsTransient(errors.New("anything")))
	_, _, err = r.CreateRequest(t.Context(), bench.Request{ID: "bad", Project: project, Type: "nonsense", Submission: bench.Submission{Submitter: "ada"}})
	require.Error(t, err)
	require.False(t, store.IsTransient(err))
	_, err = store.Open(t.Context(), "postgres://%zz")
	require.ErrorContains(t, err, "database URL")
}
