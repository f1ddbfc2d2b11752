package hostile_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/e2e/browser"
	"github.com/benchloom/benchloom/internal/up"
)

//go:embed testdata/foreign.js
var foreignScript string

// sight is what a foreign page could see.
type sight struct {
	How, URL, Text string
	Status         int
}

// write is a request of a foreign page that would change something.
type write struct {
	Method string `json:"method"`
	URL    string `json:"url"`
	Body   string `json:"body"`
}

// prey is what foreign pages try to read and to change.
type prey struct {
	// ports are HOST:PORT of all servers of the stack that speak HTTP.
	ports []string
	// readable are paths of all of them.
	readable []string
	writable []write
}

// A page that somebody visits, in a real browser, reads nothing of any port of the service
// and changes nothing, wherever it comes from: neither as a page of another site nor of
// another port of this host, nor when its own name leads to the service (DNS rebinding).
func TestAForeignPageInABrowser(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	prey := s.prey(t)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
		case "/readable": // so that the page is known to work
			w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
			w.Header().Set("Access-Control-Allow-Credentials", "true")
		}
		fmt.Fprint(w, "<title>evil</title><body>readable")
	}))
	t.Cleanup(evil.Close)
	port := strings.TrimPrefix(evil.URL, "http://127.0.0.1:")
	ctx := browser.Open(t, browser.Resolve("evil.example", "127.0.0.1", "evil.localhost", "127.0.0.1"),
		// Browsers of this year also keep foreign pages from loopback addresses by themselves.
		chromedp.Flag("disable-features", "LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights"))
	before := s.changeable(t)

	t.Run("pages", func(t *testing.T) {
		for _, host := range []string{"evil.example", "evil.localhost", "localhost", "127.0.0.1"} {
			t.Run("of "+host, func(t *testing.T) {
				t.Parallel()
				tab := newTab(t, ctx)
				base := "http://" + host + ":" + port
				require.NoError(t, chromedp.Do(tab, chromedp.Navigate(base+"/page")))
				seen := runForeign(t, tab, prey.absolute("127.0.0.1"), evil.URL+"/readable")
				require.True(t, slices.ContainsFunc(seen, func(s sight) bool { return s.URL == evil.URL+"/readable" && strings.Contains(s.Text, "readable") }), "the page does not work: %+v", seen)
				for _, at := range seen {
					require.Equal(t, evil.URL+"/readable", at.URL, "a page of %s sees %+v", base, at)
				}
			})
		}
		for _, server := range prey.ports {
			t.Run("rebound to "+server, func(t *testing.T) {
				t.Parallel()
				const host = "evil.example"
				tab := newTab(t, ctx)
				base := "http://" + host + server[strings.LastIndex(server, ":"):]
				firstFromElsewhere(t, tab, base+"/page")
				seen := runForeign(t, tab, prey.absolute(host), base+"/nothing")
				require.NotEmpty(t, seen, "the page does not work")
				for _, at := range seen {
					// It may see that it is refused, of its own origin, and nothing else.
					require.True(t, strings.HasPrefix(at.URL, base), "a page of %s sees %+v", base, at)
					refused := at.Status == http.StatusMisdirectedRequest || at.Status == 0 && strings.Contains(at.Text, apiclient.ProblemForeignHost)
					require.True(t, refused, "a page of %s sees %+v", base, at)
				}
			})
		}
	})
	require.Equal(t, before, s.changeable(t))
}

func newTab(t *testing.T, browser context.Context) context.Context {
	t.Helper()
	tab, end := chromedp.NewContext(browser)
	t.Cleanup(end)
	return tab
}

// firstFromElsewhere opens a page that comes from the attacker's server, as long as its name
// leads there; all else that it asks for comes from where the name leads now.
func firstFromElsewhere(t *testing.T, tab context.Context, page string) {
	t.Helper()
	_, err := chromedp.Call(tab, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: page}}})
	require.NoError(t, err)
	paused := chromedp.Events(tab, fetch.RequestPaused)
	answered := make(chan error, 1)
	go func() {
		for e, err := range paused {
			if err == nil {
				_, err = chromedp.Call(tab, fetch.FulfillRequest, fetch.FulfillRequestParams{
					RequestID: e.RequestID, ResponseCode: http.StatusOK, Body: []byte("<title>evil</title><body>"),
					ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}},
				})
			}
			answered <- err
			return
		}
	}()
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(page)))
	require.NoError(t, <-answered)
	_, err = chromedp.Call(tab, fetch.Disable, cdp.Empty{})
	require.NoError(t, err)
}

// runForeign runs the attack in a page. It returns what that could see.
func runForeign(t *testing.T, tab context.Context, p prey, control string) []sight {
	t.Helper()
	var events, sockets []string
	for _, url := range p.readable {
		events = append(events, url)
		sockets = append(sockets, strings.Replace(url, "http://", "ws://", 1))
	}
	var arguments []string
	for _, argument := range []any{append(slices.Clone(p.readable), control), p.writable, events, sockets} {
		text, err := json.Marshal(argument)
		require.NoError(t, err)
		arguments = append(arguments, string(text))
	}
	seen, err := chromedp.Run(tab, chromedp.Evaluate[[]sight](foreignScript+"\nattack("+strings.Join(arguments, ", ")+")", chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return seen
}

// absolute makes addresses of the paths, with a host that leads to the ports.
func (p prey) absolute(host string) prey {
	var out prey
	for _, port := range p.ports {
		base := "http://" + host + port[strings.LastIndex(port, ":"):]
		for _, path := range p.readable {
			out.readable = append(out.readable, base+path)
		}
	}
	for _, w := range p.writable {
		u, _ := url.Parse(w.URL)
		u.Host = host + ":" + u.Port()
		out.writable = append(out.writable, write{w.Method, u.String(), w.Body})
	}
	return out
}

// prey collects what the stack has for foreign pages.
func (s service) prey(t *testing.T) prey {
	t.Helper()
	api := strings.TrimPrefix(s.url, "http://")
	p := prey{ports: append([]string{api}, s.metricsAddresses(t)...), readable: []string{"/", "/metrics", "/readyz", "/api/v1/collectors"}}
	collectors, err := s.API.Collectors(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, collectors)
	p.writable = []write{
		{http.MethodPost, s.url + "/api/v1/requests", `{"command":{"argv":["true"]}}`},
		{http.MethodPost, s.url + "/api/v1/collectors/" + collectors[0].Name + "/drain", `{}`},
		{http.MethodPost, s.url + "/api/v1/tokens", `{"owner":"evil","role":"admin"}`},
		{http.MethodDelete, s.url + "/api/v1/collectors/" + collectors[0].Name + "?force=true", `{}`},
		{http.MethodPut, s.url + "/api/v1/projects/evil", `{"name":"evil","config":{}}`},
	}
	return p
}

// metricsFlag is the address of a process's metrics on its command line.
var metricsFlag = regexp.MustCompile(`--metrics\x00([^\x00]+)\x00`)

// metricsAddresses are those of the processes' metrics, by their command lines.
func (s service) metricsAddresses(t *testing.T) []string {
	t.Helper()
	pids, err := s.Processes()
	require.NoError(t, err)
	var addresses []string
	for _, pid := range pids {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		require.NoError(t, err)
		if found := metricsFlag.FindSubmatch(line); found != nil {
			addresses = append(addresses, string(found[1]))
		}
	}
	require.NotEmpty(t, addresses)
	slices.Sort(addresses)
	return addresses
}

// changeable is what a foreign page might have changed.
func (s service) changeable(t *testing.T) string {
	t.Helper()
	requests, err := s.API.Requests(t.Context(), apiclient.RequestQuery{})
	require.NoError(t, err)
	collectors, err := s.API.Collectors(t.Context())
	require.NoError(t, err)
	var states []string
	for _, c := range collectors {
		states = append(states, c.Name+" "+string(c.State))
	}
	tokens := s.call(t, s.token(t, up.TokenUser), http.MethodGet, "/api/v1/tokens", nil)
	return fmt.Sprint(len(requests.Requests), states, strings.Count(tokens.body, `"owner"`))
}
