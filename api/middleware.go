package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/webguard"
)

type requestIDKey struct{}

// requestID identifies the exchange in logs.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// observe wraps all handlers: it gives each exchange an ID, counts and logs it, refuses
// requests made by the pages of others, and answers panics.
func (s *base) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := s.Now()
		id := acceptedRequestID(r.Header.Get(apiclient.HeaderRequestID))
		w.Header().Set(apiclient.HeaderRequestID, id)
		w.Header().Set(apiclient.HeaderAPI, "1")
		webguard.Protect(w.Header())
		ctx := context.WithValue(r.Context(), requestIDKey{}, id)
		ctx = context.WithValue(ctx, reachedKey{}, reached(r, s.TrustedProxies))
		r = r.WithContext(context.WithValue(ctx, clientKey{}, origin(r, s.TrustedProxies)))
		out := newStatusWriter(w, r, s.StallBound)
		defer func() {
			aborted := s.recovered(out, r, recover())
			out.end()
			s.account(out, r, s.Now().Sub(begun))
			if aborted {
				panic(http.ErrAbortHandler) // closes the connection: the client must not take a part for the whole
			}
		}()
		if refused := s.guard.Check(r); refused != nil {
			writeProblem(out, &huma.ErrorModel{Type: refused.Type, Title: http.StatusText(refused.Status), Status: refused.Status, Detail: refused.Detail})
			return
		}
		if !readable(r.URL) {
			writeProblem(out, problemf(http.StatusBadRequest, "malformed", "the address holds bytes that are no text (UTF-8 without zero bytes); no name has them, correct it"))
			return
		}
		next.ServeHTTP(out, r)
	})
}

// readable reports whether an address is text throughout.
func readable(u *url.URL) bool {
	text := func(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
	query, err := url.QueryUnescape(u.RawQuery)
	return err == nil && text(u.Path) && text(query)
}

// recovered answers a panic with a problem, or reports that the answer has begun and must
// be broken off.
func (s *base) recovered(w *statusWriter, r *http.Request, cause any) (aborted bool) {
	if cause == nil {
		return false
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // the value itself is what net/http compares
		return true
	}
	s.Log.ErrorContext(r.Context(), "panic while answering", "panic", cause, "method", r.Method, "path", r.URL.Path, "request_id", requestID(r.Context()), "stack", string(debug.Stack()))
	if w.status != 0 {
		return true
	}
	writeProblem(w, internalProblem(r.Context()))
	return false
}

// Labels for values outside the fixed sets.
const (
	otherMethod    = "other"
	unmatchedRoute = "unmatched"
)

// methods lists the methods that metrics name.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions, http.MethodConnect, http.MethodTrace,
}

// labels returns the labels of an exchange in metrics, each from a fixed set: a series is never
// forgotten, so a client must not be able to make new ones.
func labels(r *http.Request, status int) (method, route, class string) {
	method = r.Method
	if !slices.Contains(methods, method) {
		method = otherMethod
	}
	_, route, _ = strings.Cut(r.Pattern, " ")
	if route == "" {
		route = unmatchedRoute
	}
	return method, route, strconv.Itoa(status/100) + "xx"
}

// shownInLog bounds what a log shows of a client's own text, in bytes.
const shownInLog = 300

// account counts and logs an exchange.
func (s *base) account(w *statusWriter, r *http.Request, took time.Duration) {
	status := w.status
	if status == 0 {
		status = http.StatusOK
	}
	method, route, class := labels(r, status)
	s.Scope.Tagged(map[string]string{"method": method, "route": route}).Timer("api_latency").Record(took)
	s.Scope.Tagged(map[string]string{"method": method, "route": route, "status": class}).Counter("api_requests").Inc(1)
	log := s.Log.DebugContext
	if changes(method, route, status) {
		log = s.Log.InfoContext
	}
	log(r.Context(), "request", "method", method, "path", r.URL.Path[:min(len(r.URL.Path), shownInLog)], "status", status, "took", took,
		"client", client(r.Context()), "request_id", requestID(r.Context()))
}

// changes reports whether an exchange may have changed something that is worth a line in
// the log. An exchange that was refused without a look at it has not.
func changes(method, route string, status int) bool {
	switch {
	case method == http.MethodGet, method == http.MethodHead, route == unmatchedRoute, status == http.StatusTooManyRequests:
		return false
	}
	return !strings.HasSuffix(route, "/heartbeat") && !strings.HasSuffix(route, "/log") && !strings.HasSuffix(route, "/profile/batches")
}

// acceptedRequestID returns the caller's own ID when it is harmless, else a new one.
func acceptedRequestID(given string) string {
	harmless := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if given != "" && len(given) <= 64 && strings.IndexFunc(given, func(r rune) bool { return !harmless(r) }) < 0 {
		return given
	}
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// unzip unpacks a body with Content-Encoding gzip, up to a bound, and leaves others as
// they are. It runs after authorize, so that nothing is unpacked for strangers.
func (s *base) unzip(limit int64) func(ctx huma.Context, next func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		switch encoding := ctx.Header("Content-Encoding"); encoding {
		case "", "identity":
			next(ctx)
			return
		case "gzip":
		default:
			s.refuse(ctx, problemf(http.StatusUnsupportedMediaType, "unsupported-media-type", "the body has the encoding %.40q; use gzip, or none", encoding))
			return
		}
		// Deadlines follow the real clock; a writer without deadlines has no
		// connection.
		_ = ctx.SetReadDeadline(time.Now().Add(bodyBound))
		// One byte more than the bound, to notice a body that is too large.
		body, err := readZipped(io.LimitReader(ctx.BodyReader(), limit+1), limit+1)
		if err != nil {
			s.refuse(ctx, problemf(http.StatusBadRequest, "malformed", "the body is not valid gzip: %s; send it again", err))
			return
		}
		next(&unzipped{exchange: ctx, body: bytes.NewReader(body)})
	}
}

func readZipped(r io.Reader, limit int64) ([]byte, error) {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(zipped, limit))
	if err != nil {
		return nil, err
	}
	return body, zipped.Close()
}

// exchange is huma's context under a name that does not hide its method
// Context where it is embedded.
type exchange = huma.Context

type unzipped struct {
	exchange
	body io.Reader
}

func (u *unzipped) BodyReader() io.Reader { return u.body }
func (u *unzipped) Unwrap() huma.Context  { return u.exchange }
