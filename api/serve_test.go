package api_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
)

func TestListenRefusesReachableAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:7480"} {
		_, err := api.Listen(t.Context(), address, false)
		require.ErrorContains(t, err, "can be reached from other machines", address)
	}
	for _, address := range []string{"", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000"} {
		_, err := api.Listen(t.Context(), address, false)
		require.Error(t, err, address)
	}
	for address, remote := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, ":0": true} {
		listener, err := api.Listen(t.Context(), address, remote)
		require.NoError(t, err)
		_, err = api.Listen(t.Context(), listener.Addr().String(), remote)
		_, port, splitErr := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, splitErr)
		require.ErrorContains(t, err, "port "+port)
		require.ErrorContains(t, err, "taken by another process")
		require.NoError(t, listener.Close())
	}
}

// serving runs the server until stop is called, which gives its error.
func serving(t *testing.T, handler http.Handler) (base string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := api.Listen(ctx, "127.0.0.1:0", false)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- api.Serve(ctx, listener, handler, discard) }()
	stop = func() error {
		cancel()
		return <-ended
	}
	return "http://" + listener.Addr().String(), stop
}

func TestServeLetsAnswersFinish(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	base, stop := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		if r.Context().Err() == nil {
			_, _ = io.WriteString(w, "finished")
		}
	}))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answers := make(chan string, 1)
	go func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil)
		if err != nil {
			answers <- err.Error()
			return
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		answers <- string(text)
	}()
	<-asked
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	// Nobody is let in any more, while the answer is under way.
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", base[len("http://"):], time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 2*time.Minute, 5*time.Millisecond)
	close(release)
	require.Equal(t, "finished", <-answers)
	require.NoError(t, <-stopped)
}

func TestServeDoesNotWaitForLogFollowers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	waiting := make(chan struct{}, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waiting <- struct{}{}
		b.server.Config.Handler.ServeHTTP(w, r)
	})
	base, stop := serving(t, handler)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := apiclient.New(base, "", &http.Client{Transport: transport})
	require.NoError(t, err)
	answers := make(chan error, 1)
	go func() {
		_, err := client.RunLog(t.Context(), plan.Run.ID, apiclient.LogQuery{Wait: 20 * time.Second})
		answers <- err
	}()
	<-waiting
	require.NoError(t, stop(), "whoever still waits after ten seconds is cut off")
	require.NoError(t, <-answers)
}

func TestServeReportsItsFailure(t *testing.T) {
	t.Parallel()
	listener, err := api.Listen(t.Context(), "127.0.0.1:0", false)
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.ErrorContains(t, api.Serve(t.Context(), listener, http.NotFoundHandler(), discard), "serving the API on 127.0.0.1")
}
