package hostile_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/e2e/browser"
	"github.com/benchloom/benchloom/internal/up"
)

//go:embed testdata/foreign.js
var foreignScript string

// sight records something that a foreign page could see.
type sight struct {
	How, URL, Text string
	Status         int
}

// write is a request of a foreign page that would change something: a body of JSON, or the
// fields of a form.
type write struct {
	Method string            `json:"method"`
	URL    string            `json:"url"`
	Body   string            `json:"body"`
	Form   map[string]string `json:"form,omitempty"`
}

// prey lists the targets of foreign pages, to read and to change.
type prey struct {
	// listeners are all ports of the stack.
	listeners []listener
	// Readable are addresses on all of them, Windows those that are opened in windows, and
	// Control one that every page may read.
	Readable []string `json:"readable"`
	Windows  []string `json:"windows"`
	Writable []write  `json:"writable"`
	Control  string   `json:"control"`
	// request waits, collector is drained, and workflow runs in Temporal.
	request, collector, workflow string
	temporal                     client.Client
}

// A page that somebody visits, in a real browser that is signed in at the service, reads
// nothing of any port of the service and changes nothing, wherever it comes from: neither as
// a page of another site nor of another port of this host, nor when its own name leads to the
// service (DNS rebinding).
func TestLongAForeignPageInABrowser(t *testing.T) {
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
	prey.Control = evil.URL + "/readable"
	ctx := browser.Open(t, browser.Resolve("evil.example", "127.0.0.1", "evil.localhost", "127.0.0.1"),
		// Browsers of this year also keep foreign pages from loopback addresses by themselves.
		chromedp.Flag("disable-features", "LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights"))
	for _, host := range []string{"127.0.0.1", "localhost"} {
		signIn(t, ctx, strings.Replace(s.url, "127.0.0.1", host, 1), s.token(t, up.TokenUser))
	}
	before := s.changeable(t, prey)

	t.Run("pages", func(t *testing.T) {
		for _, host := range []string{"evil.example", "evil.localhost", "localhost", "127.0.0.1"} {
			t.Run("of "+host, func(t *testing.T) {
				t.Parallel()
				tab := newTab(t, ctx)
				base := "http://" + host + ":" + port
				require.NoError(t, chromedp.Do(tab, chromedp.Navigate(base+"/page")))
				target := "127.0.0.1"
				if host == "localhost" {
					target = host // to its browser, ports of one host are one site
				}
				attacked := prey.absolute(target)
				seen := seenBy(t, tab, attacked, func(s sight) bool { return s.URL == prey.Control && strings.Contains(s.Text, "readable") })
				for _, at := range seen {
					require.Equal(t, prey.Control, at.URL, "a page of %s sees %+v", base, at)
				}
				ledAway(t, tab, attacked)
			})
		}
		for _, l := range prey.listeners {
			if !l.http && l.address.String() != s.Up.Addresses[up.AddressTemporal] {
				continue // Temporal's inner ports are no other than its outer one to a browser
			}
			t.Run(fmt.Sprintf("rebound to %s of %s", l.address, l.process), func(t *testing.T) {
				t.Parallel()
				const host = "evil.example"
				tab := newTab(t, ctx)
				base := fmt.Sprintf("http://%s:%d", host, l.address.Port())
				firstFromElsewhere(t, tab, base+"/page")
				// The other ports are other origins, as they are to the pages above.
				attacked := prey.absolute(host).below(base)
				attacked.Control = base + "/nothing"
				if !l.http {
					require.Empty(t, runForeign(t, tab, attacked))
					return
				}
				seen := seenBy(t, tab, attacked, func(sight) bool { return true })
				for _, at := range seen {
					// It may see that it is refused, of its own origin, and nothing else.
					require.True(t, strings.HasPrefix(at.URL, base), "a page of %s sees %+v", base, at)
					refused := at.Status == http.StatusMisdirectedRequest || at.Status == 0 && strings.Contains(at.Text, apiclient.ProblemForeignHost)
					require.True(t, refused, "a page of %s sees %+v", base, at)
				}
			})
		}
	})
	require.Equal(t, before, s.changeable(t, prey))
	s.ownPageMay(t, newTab(t, ctx), prey)
}

// signIn signs in at the pages of a service, as whoever has the token does.
func signIn(t *testing.T, tab context.Context, url, token string) {
	t.Helper()
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(url+"/sign-in")))
	answer, err := chromedp.RunResponse(tab, chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
	require.NoError(t, err)
	require.EqualValues(t, http.StatusOK, answer.Status)
	require.Contains(t, visible(t, tab), "Sign out")
}

// visible is the text that a tab shows.
func visible(t *testing.T, tab context.Context) string {
	t.Helper()
	text, err := chromedp.Run(tab, chromedp.Evaluate[string]("document.body.innerText"))
	require.NoError(t, err)
	return text
}

// ledAway lets a page send its visitor away with a form that would let the collector take jobs.
func ledAway(t *testing.T, tab context.Context, p prey) {
	t.Helper()
	i := slices.IndexFunc(p.Writable, func(w write) bool { return strings.HasSuffix(w.URL, "/activate") && w.Form != nil })
	require.GreaterOrEqual(t, i, 0)
	fields, err := json.Marshal(p.Writable[i].Form)
	require.NoError(t, err)
	answer, err := chromedp.RunResponse(tab, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[bool](fmt.Sprintf("submit(%q, %s, 'application/x-www-form-urlencoded') || true", p.Writable[i].URL, fields))(ctx, target)
		return err
	}))
	require.NoError(t, err)
	require.EqualValues(t, http.StatusForbidden, answer.Status)
	require.Contains(t, visible(t, tab), apiclient.ProblemForeignOrigin)
}

// ownPageMay shows that the browser that was attacked is still signed in, and that what the
// foreign pages tried is what its own pages can do.
func (s service) ownPageMay(t *testing.T, tab context.Context, p prey) {
	t.Helper()
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(s.url+"/collectors/"+p.collector)))
	require.Contains(t, visible(t, tab), "Sign out")
	ui := s.Up.Addresses[up.AddressTemporalUI]
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(ui+"/api/v1/namespaces")))
	require.Contains(t, visible(t, tab), "benchloom")
	for _, w := range p.Writable {
		if !strings.HasPrefix(w.URL, ui) {
			continue
		}
		status, err := chromedp.Run(tab, chromedp.Evaluate[int](fmt.Sprintf("fetch(%q, {method: %q, body: %q}).then(r => r.status)", w.URL, w.Method, w.Body), chromedp.EvalAwaitPromise))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status, w.URL)
	}
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

// seenBy runs the attack in a page until it sees at least what shows that the page works: on a
// busy machine, that may not come within the seconds that each try has.
func seenBy(t *testing.T, tab context.Context, p prey, works func(sight) bool) (seen []sight) {
	t.Helper()
	for range 10 {
		if seen = runForeign(t, tab, p); slices.ContainsFunc(seen, works) {
			return seen
		}
	}
	require.FailNow(t, "the page does not work", "%+v", seen)
	return nil
}

// runForeign runs the attack in a page. It returns what that could see.
func runForeign(t *testing.T, tab context.Context, p prey) []sight {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	seen, err := chromedp.Run(tab, chromedp.Evaluate[[]sight](foreignScript+"\nattack("+string(text)+")", chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return seen
}

// absolute returns the same with a host that leads to the ports.
func (p prey) absolute(host string) prey {
	at := func(address string) string { return strings.Replace(address, "127.0.0.1", host, 1) }
	out := p
	out.Readable, out.Windows, out.Writable = nil, nil, nil
	for _, address := range p.Readable {
		out.Readable = append(out.Readable, at(address))
	}
	for _, address := range p.Windows {
		out.Windows = append(out.Windows, at(address))
	}
	for _, w := range p.Writable {
		w.URL = at(w.URL)
		out.Writable = append(out.Writable, w)
	}
	return out
}

// below returns the same without what is not below an address.
func (p prey) below(base string) prey {
	elsewhere := func(address string) bool { return !strings.HasPrefix(address, base+"/") }
	p.Readable, p.Windows = slices.DeleteFunc(p.Readable, elsewhere), slices.DeleteFunc(p.Windows, elsewhere)
	p.Writable = slices.DeleteFunc(p.Writable, func(w write) bool { return elsewhere(w.URL) })
	return p
}

// prey collects what the stack has for foreign pages: all of its ports, a request that waits
// for its only collector, which is drained, and what a click of its owner would change.
func (s service) prey(t *testing.T) prey {
	t.Helper()
	collectors, err := s.API.Collectors(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, collectors)
	p := prey{listeners: s.listeners(t), collector: collectors[0].Name, temporal: s.temporal(t)}
	_, err = s.API.DrainCollector(t.Context(), p.collector, "so that the request waits")
	require.NoError(t, err)
	created, err := s.API.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	require.NoError(t, err)
	p.request, p.workflow = string(created.ID), created.WorkflowID
	require.Eventually(t, func() bool { return p.running(t) }, patience, 50*time.Millisecond)

	for _, l := range p.listeners {
		base := "http://" + l.address.String()
		p.Readable = append(p.Readable, base+"/")
		if l.http {
			p.Windows = append(p.Windows, base+"/")
			p.Readable = append(p.Readable, base+"/metrics", base+"/readyz")
		}
	}
	ui := s.Up.Addresses[up.AddressTemporalUI]
	for _, path := range []string{"/api/v1/collectors", "/api/v1/requests", "/requests/" + p.request, "/live?subject=service"} {
		p.Readable = append(p.Readable, s.url+path)
	}
	p.Readable = append(p.Readable, ui+"/api/v1/namespaces/benchloom/workflows")
	form := map[string]string{"reason": "evil", "key": "evil"}
	p.Writable = []write{
		{Method: http.MethodPost, URL: s.url + "/api/v1/requests", Body: `{"command":{"argv":["true"]}}`},
		{Method: http.MethodPost, URL: s.url + "/api/v1/collectors/" + p.collector + "/activate", Body: `{}`},
		{Method: http.MethodPost, URL: s.url + "/api/v1/tokens", Body: `{"owner":"evil","role":"admin"}`},
		{Method: http.MethodDelete, URL: s.url + "/api/v1/collectors/" + p.collector + "?force=true", Body: `{}`},
		{Method: http.MethodPut, URL: s.url + "/api/v1/projects/evil", Body: `{"name":"evil","config":{}}`},
		{Method: http.MethodPost, URL: s.url + "/collectors/" + p.collector + "/activate", Form: form},
		{Method: http.MethodPost, URL: s.url + "/requests/" + p.request + "/cancel", Form: form},
		{Method: http.MethodPost, URL: s.url + "/projects/adhoc/queue/pause", Form: form},
		{Method: http.MethodPost, URL: s.url + "/sign-out", Form: form},
		{Method: http.MethodPost, URL: ui + "/api/v1/namespaces/benchloom/workflows/" + url.PathEscape(p.workflow) + "/terminate", Body: `{"reason":"evil"}`},
	}
	return p
}

// running reports whether the workflow runs. It does not exist before it was started.
func (p prey) running(t *testing.T) bool {
	t.Helper()
	d, err := p.temporal.DescribeWorkflowExecution(t.Context(), p.workflow, "")
	return err == nil && d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// changeable describes the state that a foreign page might have changed.
func (s service) changeable(t *testing.T, p prey) string {
	t.Helper()
	requests, err := s.API.Requests(t.Context(), apiclient.RequestQuery{})
	require.NoError(t, err)
	require.Len(t, requests.Requests, 1)
	collectors, err := s.API.Collectors(t.Context())
	require.NoError(t, err)
	states := []string{string(requests.Requests[0].Status), fmt.Sprint("runs: ", p.running(t))}
	for _, c := range collectors {
		states = append(states, c.Name+" "+string(c.State))
	}
	queue, err := s.API.Queue(t.Context(), apiclient.AdHocProject)
	require.NoError(t, err)
	projects, err := s.API.Projects(t.Context())
	require.NoError(t, err)
	audit, err := s.API.Audit(t.Context(), apiclient.AuditQuery{})
	require.NoError(t, err)
	tokens := s.call(t, s.token(t, up.TokenUser), http.MethodGet, "/api/v1/tokens", nil)
	return fmt.Sprint(states, queue.Paused, len(projects), len(audit.Operations), strings.Count(tokens.body, `"owner"`))
}
