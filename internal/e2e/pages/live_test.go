package pages

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// gate stands between a browser and the service, and does what networks and busy servers do.
type gate struct {
	*httptest.Server
	mu sync.Mutex
	// refuse lists the paths that are answered with 503, with the number of calls that were
	// refused.
	refuse map[string]int
	// held is not nil while answers to scripts are kept back, until it is closed.
	held chan struct{}
	// waiting counts the answers that were kept back, told the changes that streams told.
	waiting, told int
	// cut ends the streams when it is closed.
	cut chan struct{}
}

const livePath = "/live"

// newGate opens a gate to a service.
func newGate(t *testing.T, s service) *gate {
	t.Helper()
	to, err := url.Parse(s.url)
	require.NoError(t, err)
	g := &gate{refuse: make(map[string]int), cut: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Header.Del("Accept-Encoding") },
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) {}, // the stream was cut before it began
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, proxy) }))
	t.Cleanup(g.Close)
	t.Cleanup(g.CloseClientConnections)
	return g
}

func (g *gate) serve(w http.ResponseWriter, r *http.Request, to http.Handler) {
	g.mu.Lock()
	_, refused := g.refuse[r.URL.Path]
	if refused {
		g.refuse[r.URL.Path]++
	}
	held, cut := g.held, g.cut
	g.mu.Unlock()
	switch {
	case refused:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == livePath:
		g.stream(w, r, cut, to)
	case held != nil && r.Header.Get("Sec-Fetch-Dest") == "empty":
		answer := httptest.NewRecorder()
		to.ServeHTTP(answer, r)
		g.mu.Lock()
		g.waiting++
		g.mu.Unlock()
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w) // fails only if the client is gone
	default:
		to.ServeHTTP(w, r)
	}
}

// stream passes a stream on until it is cut, and counts the changes that it tells.
func (g *gate) stream(w http.ResponseWriter, r *http.Request, cut <-chan struct{}, to http.Handler) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	go func() {
		defer stop()
		select {
		case <-cut:
		case <-ctx.Done():
		}
	}()
	to.ServeHTTP(counter{w, g}, r.WithContext(ctx))
}

// counter counts the events of a stream.
type counter struct {
	http.ResponseWriter
	gate *gate
}

func (c counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c counter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "event: revision") {
		c.gate.mu.Lock()
		c.gate.told++
		c.gate.mu.Unlock()
	}
	return c.ResponseWriter.Write(p)
}

// set changes what the gate does.
func (g *gate) set(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// await waits until something is true of the gate.
func (g *gate) await(t *testing.T, is func() bool, what string) {
	t.Helper()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return is()
	}, patience, lookEvery, what)
}

// A page that is followed shows the last change, whatever became of the stream and of the
// answers meanwhile: it does not wait for the next change, which may never come, nor for the
// moment at which all pages are read again for their times.
func TestThePageShowsTheLastChange(t *testing.T) {
	t.Parallel()
	s := scene{sharedService(t), mouse}
	for name, trouble := range map[string]func(t *testing.T, g *gate, path string, change func()){
		// The change is told while the page before it is on its way.
		"told while the page is read": func(t *testing.T, g *gate, _ string, change func()) {
			held := make(chan struct{})
			told := 0
			g.set(func() { g.held = held })
			change()
			g.await(t, func() bool { told = g.told; return g.waiting > 0 }, "the page is not read")
			change()
			g.await(t, func() bool { return g.told > told }, "the second change is not told")
			g.set(func() { g.held = nil })
			close(held)
		},
		"the page cannot be read": func(t *testing.T, g *gate, path string, change func()) {
			g.set(func() { g.refuse[path] = 0 })
			change()
			g.await(t, func() bool { return g.refuse[path] > 0 }, "the page is not read")
			g.set(func() { delete(g.refuse, path) })
		},
		"the stream breaks off and is refused": func(t *testing.T, g *gate, _ string, change func()) {
			g.set(func() { g.refuse[livePath] = 0; close(g.cut); g.cut = make(chan struct{}) })
			g.await(t, func() bool { return g.refuse[livePath] > 0 }, "the stream is not taken up again")
			change()
			g.set(func() { delete(g.refuse, livePath) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			project := s.printing(t, strings.ReplaceAll(name, " ", "-"))
			s.pause(t, project, "reason 0")
			path := "/requests/" + string(s.try(t, project, 7))
			g := newGate(t, s.service)
			behind := s.service
			behind.url = g.URL
			b := behind.open(t)
			_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: "window.setInterval = () => 0"})
			require.NoError(t, err)
			b.visit(path)
			require.Contains(t, b.text("main"), "reason 0")
			b.mark()
			changes := 0
			trouble(t, g, path, func() { // the project is resumed and paused in turns
				if changes++; changes%2 == 1 {
					s.resume(t, project, "")
				} else {
					s.pause(t, project, fmt.Sprintf("reason %d", changes))
				}
			})
			if changes%2 == 1 {
				b.await(fmt.Sprintf("!document.querySelector('main').innerText.includes('reason %d')", changes-1))
			} else {
				b.awaitText("main", fmt.Sprintf("reason %d", changes))
			}
			b.await("document.getElementById('stale').hidden")
			b.stays()
		})
	}
}
