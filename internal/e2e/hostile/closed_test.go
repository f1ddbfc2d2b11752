package hostile_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/browser"
)

// Where reading is closed, a browser shows nothing of any page, of the API or of Temporal's
// Web UI until its user signs in, and nothing once more when he has signed out.
func TestClosedReadingInABrowser(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	word := "telltale" + randomWord(t)
	id := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"echo", word}}})
	d := s.await(t, id)
	require.Equal(t, bench.Success, d.Outcome, d.Message)
	require.Len(t, d.Runs, 1)
	reader, err := s.API.CreateToken(t.Context(), apiclient.NewToken{Owner: "rita", Role: "reader", Reason: word})
	require.NoError(t, err)

	page, ui := s.closedAPI(t)
	job, workflow := string(d.Jobs[0].Key), d.WorkflowID
	shown := []struct{ address, word string }{ // each with something that it says
		{page + "/", "Newest requests"}, {page + "/collectors", "local-2"}, {page + "/audit", word}, {page + "/projects/adhoc", word},
		{page + "/requests/" + string(id), word}, {page + "/jobs/" + job, word}, {page + "/runs/" + string(d.Runs[0].ID), word},
		{page + "/api/v1/requests/" + string(id), word}, {page + "/metrics", "benchloom_"},
		{ui + "/api/v1/namespaces/benchloom/workflows/" + url.PathEscape(workflow), workflow},
	}
	ctx := browser.Open(t)
	look := func(says bool) {
		t.Helper()
		for _, at := range shown {
			if !says && strings.HasPrefix(at.address, ui) {
				// The browser would ask for a password, and go on asking.
				requireClosed(t, at.address)
				continue
			}
			status, text := show(t, ctx, at.address)
			// Only pages and the Web UI take a cookie; the API and its metrics want a header.
			if says && (at.word == "benchloom_" || at.address == page+"/api/v1/requests/"+string(id)) {
				require.Equal(t, http.StatusUnauthorized, status, at.address)
				continue
			}
			if says {
				require.Equal(t, http.StatusOK, status, at.address)
				require.Contains(t, text, at.word, at.address)
				continue
			}
			require.Equal(t, http.StatusUnauthorized, status, at.address)
			require.NotContains(t, text, at.word, at.address)
		}
	}
	look(false)
	signIn(t, ctx, page, reader.Secret)
	look(true)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(page+"/audit")))
	answer, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(`form[action="/sign-out"] button`)))
	require.NoError(t, err)
	require.EqualValues(t, http.StatusUnauthorized, answer.Status)
	require.Contains(t, visible(t, ctx), "Nothing can be read here without a token.")
	// The button of the browser brings nothing back.
	_, err = chromedp.Run(ctx, chromedp.Evaluate[bool]("history.back() || true"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		back, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("location.pathname === '/audit' && document.readyState === 'complete'"))
		return err == nil && back
	}, patience, 50*time.Millisecond)
	require.Contains(t, visible(t, ctx), "Nothing can be read here without a token.")
	require.NotContains(t, visible(t, ctx), word)
	look(false)
}

// show opens an address. It returns the status and the document.
func show(t *testing.T, tab context.Context, address string) (status int, document string) {
	t.Helper()
	answer, err := chromedp.Run(tab, chromedp.NavigateResponse(address))
	require.NoError(t, err, address)
	require.NotNil(t, answer, address)
	document, err = chromedp.Run(tab, chromedp.Evaluate[string]("document.documentElement.outerHTML"))
	require.NoError(t, err, address)
	return int(answer.Status), document
}

// requireClosed checks that a stranger is asked for a password, and told nothing else.
func requireClosed(t *testing.T, address string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, address)
	require.Contains(t, response.Header.Get("WWW-Authenticate"), "Basic", address)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NotContains(t, string(text), "request/", address)
}
