package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"
)

// computingCounted returns a limit, and what it counts.
func computingCounted(most, line int) (*computing, map[string]int) {
	counts := make(map[string]int)
	return newComputing(most, 0, line, func(reason string) { counts[reason]++ }, func(time.Duration) { counts["entered"]++ },
		func(busy bool) { counts[fmt.Sprint("busy ", busy)]++ }), counts
}

// requireBusy requires the problem that asks to come back.
func requireBusy(t *testing.T, err error) {
	t.Helper()
	var p *huma.ErrorModel
	require.ErrorAs(t, err, &p)
	require.Equal(t, http.StatusServiceUnavailable, p.Status)
	var headers huma.HeadersError
	require.ErrorAs(t, err, &headers)
	require.NotEmpty(t, headers.GetHeaders().Get("Retry-After"))
}

func TestComputationsWaitInALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, counts := computingCounted(1, 4)
		leave, err := c.enter(t.Context(), "a", true)
		require.NoError(t, err)
		type entered struct {
			by    string
			leave func()
			err   error
		}
		in := make(chan entered, 10)
		enter := func(ctx context.Context, caller string, stranger bool) {
			go func() {
				leave, err := c.enter(ctx, caller, stranger)
				in <- entered{caller, leave, err}
			}()
			synctest.Wait() // it waits
		}
		gone, goes := context.WithCancel(t.Context())
		enter(gone, "a", true)
		enter(t.Context(), "a", true)
		enter(t.Context(), "b", true)
		enter(t.Context(), "c", true)
		begun := time.Now()
		_, err = c.enter(t.Context(), "a", true)
		requireBusy(t, err)
		_, err = c.enter(t.Context(), "d", true)
		requireBusy(t, err)
		require.Zero(t, time.Since(begun), "whoever finds no room is told at once")
		require.Equal(t, 2, counts[refusedAtOnce])
		enter(t.Context(), "with a token", false)

		goes()
		left := <-in
		require.ErrorIs(t, left.err, context.Canceled)
		leave()
		leave() // once is enough
		var order []string
		for range 4 {
			next := <-in
			require.NoError(t, next.err)
			order = append(order, next.by)
			require.Equal(t, 1, c.under)
			next.leave()
		}
		require.Equal(t, []string{"a", "b", "c", "with a token"}, order, "by arrival, where nobody has a place")
		require.Empty(t, c.of)
		require.Zero(t, c.under)
		require.Equal(t, 5, counts["entered"])
		require.Equal(t, [2]int{1, 1}, [2]int{counts["busy true"], counts["busy false"]}, "one follows the other")
	})
}

func TestAFreePlaceGoesToWhoHasTheFewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := computingCounted(2, 8)
		first, err := c.enter(t.Context(), "a", false)
		require.NoError(t, err)
		second, err := c.enter(t.Context(), "a", false)
		require.NoError(t, err, "one caller alone may have all places")
		order := make(chan string, 2)
		for _, caller := range []string{"a", "b"} {
			go func() {
				leave, err := c.enter(t.Context(), caller, false)
				if err == nil {
					order <- caller
					leave()
				}
			}()
			synctest.Wait()
		}
		first()
		require.Equal(t, "b", <-order)
		require.Equal(t, "a", <-order)
		second()
	})
}

func TestWhoWaitsTooLongIsAskedToComeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, counts := computingCounted(1, 4)
		leave, err := c.enter(t.Context(), "a", false)
		require.NoError(t, err)
		begun := time.Now()
		_, err = c.enter(t.Context(), "b", false)
		requireBusy(t, err)
		require.Equal(t, computingWait, time.Since(begun))
		require.Equal(t, 1, counts[refusedWaiting])
		require.Empty(t, c.waiting)
		leave()
		again, err := c.enter(t.Context(), "b", false)
		require.NoError(t, err)
		again()
	})
}

// On a single processor, one computation that takes long lets another one begin beside it; a third waits.
func TestALongComputationDoesNotKeepOthersWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := computingCounted(1, 4)
		c.spare = 1
		long, err := c.enter(t.Context(), "a", false)
		require.NoError(t, err)
		begun := time.Now()
		second, err := c.enter(t.Context(), "b", false)
		require.NoError(t, err)
		require.Equal(t, computingPatience, time.Since(begun))
		_, err = c.enter(t.Context(), "c", false)
		requireBusy(t, err)
		require.Equal(t, 2, c.under, "the second takes long as well by now: there is one spare place")

		long()
		begun = time.Now()
		third, err := c.enter(t.Context(), "c", false)
		require.NoError(t, err)
		require.Zero(t, time.Since(begun), "beside the second")
		second()
		third()
		time.Sleep(time.Minute)
		require.Zero(t, c.long, "the third has ended in time")
	})
}

func TestAPageComputesUntilItIsWritten(t *testing.T) {
	t.Parallel()
	c, _ := computingCounted(1, 1)
	s := &base{computing: c}
	var under []int
	shown := asOneCall(func(w http.ResponseWriter, r *http.Request) {
		for range 2 { // the second call has the place of the first
			leave, err := s.compute(context.WithValue(r.Context(), clientKey{}, netip.MustParseAddr("192.0.2.1")))
			if err != nil {
				t.Error(err)
				return
			}
			leave()
			under = append(under, c.under)
		}
		_, err := w.Write([]byte("page"))
		under = append(under, c.under)
		if err != nil {
			t.Error(err)
		}
	})
	shown(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	require.Equal(t, []int{1, 1, 0}, under)
}
