package apiclient_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
)

var (
	away      = &apiclient.Problem{Type: "urn:benchloom:unavailable", Status: 503, Detail: "the database does not answer"}
	proxy     = &apiclient.Problem{Status: 404, Detail: "nginx"}
	forbidden = &apiclient.Problem{Type: "urn:benchloom:forbidden", Status: 403, Detail: "not yours"}
)

// attempts is a call that fails with one error after the other, then succeeds.
type attempts struct {
	errs []error
	n    int
}

func (a *attempts) try(context.Context) error {
	a.n++
	if a.n <= len(a.errs) {
		return a.errs[a.n-1]
	}
	return nil
}

// recorded is a policy whose clock and pauses are the test's.
func recorded(p apiclient.RetryPolicy, pauses *[]time.Duration) apiclient.RetryPolicy {
	now := time.Unix(0, 0)
	p.Now = func() time.Time { return now }
	p.Random = func() float64 { return 0.5 }
	p.Sleep = func(_ context.Context, pause time.Duration) error {
		*pauses = append(*pauses, pause)
		now = now.Add(pause)
		return nil
	}
	return p
}

func TestRetryUntilSuccess(t *testing.T) {
	t.Parallel()
	var pauses []time.Duration
	a := &attempts{errs: []error{away, away, away, away}}
	policy := recorded(apiclient.RetryPolicy{First: 4 * time.Second, Longest: 10 * time.Second}, &pauses)
	require.NoError(t, apiclient.Retry(t.Context(), policy, a.try))
	require.Equal(t, 5, a.n)
	// 4, 8, 10 and 10 seconds; with the middle draw three quarters of each.
	require.Equal(t, []time.Duration{3 * time.Second, 6 * time.Second, 7500 * time.Millisecond, 7500 * time.Millisecond}, pauses)
}

func TestRetryStopsAtOtherErrors(t *testing.T) {
	t.Parallel()
	var pauses []time.Duration
	a := &attempts{errs: []error{away, proxy, forbidden, away}}
	require.ErrorIs(t, apiclient.Retry(t.Context(), recorded(apiclient.RetryPolicy{}, &pauses), a.try), apiclient.ErrForbidden)
	require.Equal(t, 3, a.n)
}

func TestRetryTellsOnceWhatFails(t *testing.T) {
	t.Parallel()
	var pauses []time.Duration
	var told []error
	policy := recorded(apiclient.RetryPolicy{Failing: func(err error) { told = append(told, err) }}, &pauses)
	a := &attempts{errs: []error{away, away, proxy, proxy, away}}
	require.NoError(t, apiclient.Retry(t.Context(), policy, a.try))
	require.Equal(t, []error{away, proxy, away}, told)
}

func TestRetryIsBounded(t *testing.T) {
	t.Parallel()
	forEver := make([]error, 100)
	for i := range forEver {
		forEver[i] = away
	}
	var pauses []time.Duration
	byNumber := apiclient.RetryPolicy{Attempts: 3}
	a := &attempts{errs: forEver}
	err := apiclient.Retry(t.Context(), recorded(byNumber, &pauses), a.try)
	require.EqualError(t, err, "tried 3 times: the database does not answer")
	require.True(t, apiclient.IsTransient(err))
	require.Equal(t, 3, a.n)

	pauses = nil
	byTime := apiclient.RetryPolicy{First: time.Second, Longest: time.Second, For: 3 * time.Second}
	a = &attempts{errs: forEver}
	require.ErrorContains(t, apiclient.Retry(t.Context(), recorded(byTime, &pauses), a.try), "tried for 3s")
	require.Len(t, pauses, 4) // of 0.75 s each

	a = &attempts{errs: forEver}
	require.NoError(t, apiclient.Retry(t.Context(), recorded(byTime.Forever(), &pauses), a.try))
	require.Equal(t, len(forEver)+1, a.n)
}

func TestRetryHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	var pauses []time.Duration
	a := &attempts{errs: []error{&apiclient.Problem{Status: 503, RetryAfter: 5 * time.Second}, &apiclient.Problem{Status: 503, RetryAfter: time.Hour}}}
	require.NoError(t, apiclient.Retry(t.Context(), recorded(apiclient.RetryPolicy{}, &pauses), a.try))
	require.Equal(t, []time.Duration{5 * time.Second, 15 * time.Second}, pauses)
}

func TestRetryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		begun := time.Now()
		err := apiclient.Retry(ctx, apiclient.RetryPolicy{}, func(context.Context) error { return away })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var p *apiclient.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, time.Minute, time.Since(begun))
	})
}
