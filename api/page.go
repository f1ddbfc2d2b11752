package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/benchloom/benchloom/api/pages"
	"github.com/benchloom/benchloom/internal/apiclient"
)

// servePages adds the web pages. They are a client of this API: what they read and do goes
// through the same handlers, with the visitor's token.
func (s *base) servePages() error {
	shown, err := pages.New(pages.Config{
		API: func(token string) (pages.API, error) {
			client, err := apiclient.New("http://localhost", token, &http.Client{Transport: within{s}})
			return ownClient{client}, err
		},
		Now: s.Now, Log: s.Log, Random: s.Random, Stopping: stopping,
	})
	if err != nil {
		return err
	}
	s.pages = shown
	for pattern, page := range shown.Handlers() {
		s.mux.HandleFunc(pattern, asOneCall(page))
	}
	return nil
}

// ownClient is the client of the pages. Answers with very many numbers are handed over instead of being encoded and
// read again, which would take longer than everything else.
type ownClient struct{ *apiclient.Client }

func (c ownClient) History(ctx context.Context, project string, q apiclient.HistoryQuery) (apiclient.History, error) {
	lent := &lentDrawings{q.Drawings}
	defer func() { lent.Drawings = nil }()
	ctx = context.WithValue(ctx, drawingsKey{}, lent)
	return take(ctx, func(ctx context.Context) (apiclient.History, error) { return c.Client.History(ctx, project, q) })
}

func (c ownClient) Compare(ctx context.Context, q apiclient.CompareQuery) (apiclient.Comparison, error) {
	return take(ctx, func(ctx context.Context) (apiclient.Comparison, error) { return c.Client.Compare(ctx, q) })
}

type drawingsKey struct{}

// lentDrawings holds the drawings that a page has, until its call is answered. A connection to the database keeps the context of
// its last statement, and all that the context refers to, which must not be large.
type lentDrawings struct{ apiclient.Drawings }

// drawings returns a function that reports whether the caller has a chart's drawing; nil: it has none.
func drawings(ctx context.Context) func(digest string) bool {
	if lent, there := ctx.Value(drawingsKey{}).(*lentDrawings); there && lent.Drawings != nil {
		return lent.Has
	}
	return nil
}

type takerKey struct{}

// taker marks a call from this process, which takes the handler's answer as it is.
type taker[T any] struct{ taken *T }

// take makes a call, and takes the answer that is handed over.
func take[T any](ctx context.Context, call func(ctx context.Context) (T, error)) (T, error) {
	var t taker[T]
	answered, err := call(context.WithValue(ctx, takerKey{}, &t))
	if t.taken != nil {
		answered, t.taken = *t.taken, nil // the context may live on
	}
	return answered, err
}

// handedOver is the body of an answer that was handed over.
const handedOver = "{}"

// handOver reports whether the caller takes an answer as it is; then the answer need not be encoded, and belongs to the caller.
func handOver[T any](ctx context.Context, answer *T) bool {
	t, there := ctx.Value(takerKey{}).(*taker[T])
	if there {
		t.taken = answer
	}
	return there
}

// within carries calls of pages to the handlers of this process, without a connection.
type within struct{ *base }

// RoundTrip returns the API's answer to a call. The context is the one of the request for the
// page, so the caller's address counts, and logs name that exchange.
func (t within) RoundTrip(r *http.Request) (*http.Response, error) {
	call := r.Clone(r.Context())
	if call.Body == nil {
		call.Body = http.NoBody
	}
	out := &recorded{header: http.Header{apiclient.HeaderAPI: {"1"}, apiclient.HeaderRequestID: {requestID(r.Context())}}}
	t.mux.ServeHTTP(out, call)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	status := out.status
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: out.header, Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()), Request: r,
	}, nil
}

// recorded keeps an answer in memory.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorded) Header() http.Header { return w.header }

func (w *recorded) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *recorded) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

type oneCallKey struct{}

// onePage is a page or a form that is being answered.
type onePage struct {
	counted atomic.Bool
	mu      sync.Mutex
	leave   func() // gives its place among the computations back; nil: it has none
	// reads is set while a page that changes nothing is being made: known then has what was read once for all of its calls.
	reads atomic.Bool
	known sync.Map
}

// pageOf returns the page that a call belongs to; nil: it comes from elsewhere.
func pageOf(ctx context.Context) *onePage {
	page, _ := ctx.Value(oneCallKey{}).(*onePage)
	return page
}

// computes reports whether a page has a place among the computations.
func (p *onePage) computes() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leave != nil
}

// keep keeps a place until the page is written.
func (p *onePage) keep(leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave = leave
}

// written gives the page's place back, if it has one. What follows, as in a stream of events, is read anew.
func (p *onePage) written() {
	p.reads.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leave != nil {
		p.leave()
		p.leave = nil
	}
}

// asOneCall makes all calls of the API that a page needs count as one for the rate limits, and as one computation.
func asOneCall(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page := new(onePage)
		page.reads.Store(r.Method == http.MethodGet || r.Method == http.MethodHead)
		defer page.written()
		next(pageWriter{w, page}, r.WithContext(context.WithValue(r.Context(), oneCallKey{}, page)))
	}
}

// pageWriter gives a page's place back when its writing begins: a slow reader keeps nobody waiting.
type pageWriter struct {
	http.ResponseWriter
	page *onePage
}

func (w pageWriter) WriteHeader(status int) {
	w.page.written()
	w.ResponseWriter.WriteHeader(status)
}

func (w pageWriter) Write(b []byte) (int, error) {
	w.page.written()
	return w.ResponseWriter.Write(b)
}

func (w pageWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// counted reports whether a call belongs to a page that was counted already. The first call of a
// page counts it.
func counted(ctx context.Context) bool {
	page := pageOf(ctx)
	return page != nil && page.counted.Swap(true)
}

// wantsPage reports whether a request comes from a person with a browser.
func wantsPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/api/")
}
