package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/e2e/browser"
)

func TestABrowserShowsAPageOfAnInventedHost(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>" + r.Host + "</title><p id=text>before</p><script>document.getElementById('text').textContent = 'after'</script>"))
	}))
	t.Cleanup(server.Close)
	ctx := browser.Open(t, browser.Resolve("invented.example", "127.0.0.1"))
	url := strings.Replace(server.URL, "127.0.0.1", "invented.example", 1)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(url)))
	title, err := chromedp.Run(ctx, chromedp.Title())
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(url, "http://"), title)
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("#text")))
	require.NoError(t, err)
	require.Equal(t, "after", text)
	require.Error(t, chromedp.Do(ctx, chromedp.Navigate("http://unknown.example")))
}
