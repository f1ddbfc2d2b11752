package lately_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/lately"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world holds the data to read, with a clock.
type world struct {
	mu    sync.Mutex
	now   time.Time
	count int
	err   error
	reads int
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) read(context.Context, string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	return w.count, w.err
}

// after lets time pass and the count become another.
func (w *world) after(d time.Duration, count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.count = w.now.Add(d), count
}

func cache() (*world, *lately.Cache[string, int]) {
	w := &world{now: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)}
	return w, lately.New(w.clock, w.read, func(n int) bool { return n >= 1000 })
}

func TestALittleIsReadEachTime(t *testing.T) {
	t.Parallel()
	w, c := cache()
	for n := range 3 {
		w.after(0, n)
		got, err := c.Get(t.Context(), "jobs")
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
}

func TestMuchIsGivenAtOnceAndReadAgainBehind(t *testing.T) {
	t.Parallel()
	w, c := cache()
	get := func() int {
		t.Helper()
		got, err := c.Get(t.Context(), "jobs")
		require.NoError(t, err)
		return got
	}
	w.after(0, 5000)
	require.Equal(t, 5000, get())
	w.after(lately.Fresh-1, 5001)
	require.Equal(t, 5000, get())
	c.Wait()
	require.Equal(t, 1, w.reads)
	w.after(1, 5002)
	require.Equal(t, 5000, get(), "nobody waits")
	c.Wait()
	require.Equal(t, 2, w.reads)
	require.Equal(t, 5002, get())
	w.after(lately.Usable, 5003)
	require.Equal(t, 5003, get(), "what is too old is given to nobody")
	w.after(lately.Fresh, 7)
	require.Equal(t, 5003, get())
	c.Wait()
	w.after(0, 8)
	require.Equal(t, 8, get(), "what has become little is read each time")
}

func TestAFailureIsToldOnceTheAnswerIsTooOld(t *testing.T) {
	t.Parallel()
	w, c := cache()
	w.after(0, 5000)
	_, err := c.Get(t.Context(), "jobs")
	require.NoError(t, err)
	w.err = errors.New("the record does not answer")
	for range 2 {
		w.after(lately.Fresh, 5000)
		got, err := c.Get(t.Context(), "jobs")
		require.NoError(t, err)
		require.Equal(t, 5000, got)
		c.Wait()
	}
	require.Equal(t, 3, w.reads, "each of them tried")
	w.after(lately.Usable, 5000)
	_, err = c.Get(t.Context(), "jobs")
	require.ErrorIs(t, err, w.err)
	w.err = nil
	_, err = c.Get(t.Context(), "jobs")
	require.NoError(t, err)
}
