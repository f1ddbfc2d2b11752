package apiclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// streams answers with parts of a stream, and ends it.
func streams(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range parts {
			_, _ = w.Write([]byte(part))
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func samplesEvent(next int) string {
	return fmt.Sprintf("id: %d\nevent: samples\ndata: {\"state\":\"recording\",\"batches\":[],\"next\":%d}\n\n", next, next)
}

func TestAFollowedRunEndsOnlyWithItsLastEvent(t *testing.T) {
	t.Parallel()
	var read []int
	each := func(p apiclient.ProfileMetrics) error {
		read = append(read, p.Next)
		return nil
	}
	whole := serve(t, streams(samplesEvent(0), ": still here\n\n", samplesEvent(2), "id: 2\nevent: end\ndata: {}\n\n", samplesEvent(3)))
	next, err := whole.FollowProfile(t.Context(), someRun, 0, each)
	require.NoError(t, err)
	require.Equal(t, 2, next)
	require.Equal(t, []int{0, 2}, read)

	// A stream that breaks off is no end: the same call goes on where it was.
	var asked []string
	broken := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		if len(asked) == 1 {
			streams(samplesEvent(1), samplesEvent(4), "id: 5\nevent: end\n")(w, r)
			return
		}
		streams(samplesEvent(5), "id: 5\nevent: end\ndata: {}\n\n")(w, r)
	})
	read = nil
	next, err = broken.FollowProfile(t.Context(), someRun, 0, each, "cpu_used")
	require.True(t, apiclient.IsTransient(err), err)
	require.Equal(t, 4, next)
	next, err = broken.FollowProfile(t.Context(), someRun, next, each, "cpu_used")
	require.NoError(t, err)
	require.Equal(t, 5, next)
	require.Equal(t, []int{1, 4, 5}, read)
	require.Equal(t, []string{"follow=true&series=cpu_used", "follow=true&from=4&series=cpu_used"}, asked)
}

func TestAFollowedRunFailsForGoodOrForNow(t *testing.T) {
	t.Parallel()
	nothing := func(apiclient.ProfileMetrics) error { return nil }
	full := errors.New("the disk is full")
	next, err := serve(t, streams(samplesEvent(1), samplesEvent(2))).FollowProfile(t.Context(), someRun, 0, func(p apiclient.ProfileMetrics) error {
		if p.Next == 2 {
			return full
		}
		return nil
	})
	require.ErrorIs(t, err, full)
	require.False(t, apiclient.IsTransient(err))
	require.Equal(t, 1, next, "the page that was not taken is asked for again")
	_, err = serve(t, streams("event: samples\ndata: []\n\n")).FollowProfile(t.Context(), someRun, 0, nothing)
	require.ErrorContains(t, err, "of a similar version")
	_, err = serve(t, problem(http.StatusServiceUnavailable, "urn:benchloom:busy", nil)).FollowProfile(t.Context(), someRun, 0, nothing)
	require.True(t, apiclient.IsTransient(err), "too many follow")
	_, err = serve(t, problem(http.StatusNotFound, "urn:benchloom:unknown-run", nil)).FollowProfile(t.Context(), someRun, 0, nothing)
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	_, err = behind(t, streams(samplesEvent(1))).FollowProfile(t.Context(), someRun, 0, nothing)
	require.ErrorContains(t, err, "not an answer of the Benchloom API")

	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = serve(t, func(w http.ResponseWriter, r *http.Request) {
		streams(samplesEvent(1))(w, r)
		<-r.Context().Done()
	}).FollowProfile(ctx, someRun, 0, func(apiclient.ProfileMetrics) error {
		cancel(errors.New("enough"))
		return nil
	})
	require.ErrorContains(t, err, "enough")
	require.False(t, apiclient.IsTransient(err))
}

// silent answers with the beginning of a stream and says nothing more.
type silent struct{ ended chan struct{} }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{apiclient.HeaderAPI: {"1"}}, Body: silentBody{r.Context(), s.ended}}, nil
}

type silentBody struct {
	ctx   context.Context
	ended chan struct{}
}

func (b silentBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (b silentBody) Close() error {
	close(b.ended)
	return nil
}

// A connection may break without a word: whoever follows notices that no sign of life comes.
func TestAStreamThatFallsSilentIsBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := silent{make(chan struct{})}
		c, err := apiclient.New("http://bench.example.org", "", &http.Client{Transport: s})
		require.NoError(t, err)
		next, err := c.FollowProfile(t.Context(), someRun, 3, func(apiclient.ProfileMetrics) error { return nil })
		require.True(t, apiclient.IsTransient(err), err)
		require.ErrorContains(t, err, "says nothing any more")
		require.Equal(t, 3, next)
		<-s.ended
	})
}
