package api

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/store"
)

// roleHeader tells the Web UI behind its socket what a visitor may do: admin, or anything
// else to look.
const roleHeader = "Benchloom-Role"

// signInPath of the Web UI asks for a token where none is needed to look.
const signInPath = "/benchloom/sign-in"

// TemporalUI serves Temporal's Web UI at an address of its own, with the hosts, the sign-in
// and the roles of the API: whoever may read here may look at workflows there, and admins of all
// projects may act on them. A token comes from the cookie of the API's own pages, which browsers send to
// every port of a host, or as the password when the browser asks for one. Page is the API's
// own address as browsers write it, whose port names the cookie.
func (h *Handler) TemporalUI(page string) http.Handler {
	_, port, _ := net.SplitHostPort(page)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "temporal-ui"})
			for _, name := range []string{"Authorization", "Cookie", roleHeader, "Origin", "Sec-Fetch-Site"} {
				r.Out.Header.Del(name)
			}
			who := caller(r.In.Context())
			if who.Project != "" {
				who.Role = RoleReader // workflows are of all projects
			}
			r.Out.Header.Set(roleHeader, who.Role)
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", h.base.TemporalUISocket)
			},
			MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, DisableCompression: true,
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			h.base.Log.WarnContext(r.Context(), "Temporal's Web UI does not answer", "error", err)
			writeProblem(w, problemf(http.StatusBadGateway, "unreachable", "Temporal's Web UI does not answer; is Temporal running?"))
		},
	}
	return h.base.observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := h.base.identify(r.Context(), visitorToken(r, port))
		if err == nil {
			err = h.base.mayVisit(who, r.URL.Path)
		}
		if err != nil {
			// A browser asks for the token, and sends it as the password.
			w.Header().Set("WWW-Authenticate", `Basic realm="Benchloom: any name, and a token as the password", charset="UTF-8"`)
			h.base.writeError(w, r, err)
			return
		}
		if r.URL.Path == signInPath {
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		// The Web UI shows Markdown in its own frames.
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, who)))
	}))
}

// mayVisit refuses those who may not read, and strangers who want to sign in.
func (s *base) mayVisit(who store.Principal, path string) error {
	switch {
	case who == (store.Principal{}) && (!s.OpenRead || path == signInPath):
		return problemf(http.StatusUnauthorized, "unauthorized", "give a token of Benchloom as the password, with any name, or sign in at the pages of the API; 'benchloom up' keeps one in tokens/admin below its state directory")
	case who != (store.Principal{}) && !toRead.permits(who):
		return problemf(http.StatusUnauthorized, "unauthorized", "the token of %s has the role %s, but this needs the role %s", who.Owner, who.Role, toRead)
	}
	return nil
}

// visitorToken returns the token of a visitor's browser as an Authorization header; empty:
// there is none. The port is the API's.
func visitorToken(r *http.Request, port string) string {
	if _, password, ok := r.BasicAuth(); ok {
		return "Bearer " + password
	}
	if header := r.Header.Get("Authorization"); header != "" {
		return header
	}
	for _, name := range []string{"__Host-benchloom_" + port, "benchloom_" + port} {
		if c, err := r.Cookie(name); err == nil && strings.HasPrefix(c.Value, TokenPrefix) {
			return "Bearer " + c.Value
		}
	}
	return ""
}
