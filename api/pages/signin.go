package pages

import (
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// signInAddress is the page on which a visitor gives a token.
const signInAddress = "/sign-in"

// Names of the cookie with the token. Browsers send cookies to every port of a host, so
// the port is part of the name; over TLS the prefix keeps others from setting it.
const (
	cookiePrefix       = "benchloom_"
	secureCookiePrefix = "__Host-benchloom_"
)

func cookieNames(r *http.Request) (plain, secure string) {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "0"
	}
	return cookiePrefix + port, secureCookiePrefix + port
}

// tokenOf returns the visitor's token; empty: there is none.
func tokenOf(r *http.Request) string {
	plain, secure := cookieNames(r)
	for _, name := range []string{secure, plain} {
		if c, err := r.Cookie(name); err == nil && c.Value != "" {
			return c.Value
		}
	}
	return ""
}

// remember returns the cookie with a token; an empty token ends it. The cookie lasts as long as
// the browser; no script can read it, and no other site makes the browser send it.
func remember(r *http.Request, token string) *http.Cookie {
	plain, secure := cookieNames(r)
	c := &http.Cookie{Name: plain, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	// Behind a proxy for TLS, only the browser knows that the connection is encrypted.
	if r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://") {
		c.Name, c.Secure = secure, true
	}
	if token == "" {
		c.MaxAge = -1
	}
	return c
}

// forget ends all cookies with tokens.
func forget(w http.ResponseWriter, r *http.Request) {
	plain, secure := cookieNames(r)
	for _, name := range []string{plain, secure} {
		if _, err := r.Cookie(name); err == nil {
			c := remember(r, "")
			c.Name, c.Secure = name, name == secure
			http.SetCookie(w, c)
		}
	}
}

// local returns the address on this server to go to next; an address elsewhere becomes the
// overview.
func local(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") || strings.HasPrefix(to, signInAddress) {
		return "/"
	}
	return to
}

// signInView is the content of the page on which a token is given.
type signInView struct {
	// Next is the page that the visitor wanted.
	Next string
	// Problem says why a token was refused; nil: none was given.
	Problem *apiclient.Problem
	// Closed is set when nothing can be read without a token.
	Closed bool
}

// signInPage shows the form for a token.
func (p *Pages) signInPage(w http.ResponseWriter, r *http.Request) {
	v, err := p.visit(r, []string{"next"})
	if err != nil { // the visitor may be here because a token is no longer valid
		v.who = apiclient.Info{}
	}
	if err := v.checkParameters(); err != nil {
		p.fail(w, v, err)
		return
	}
	p.render(w, v, http.StatusOK, &view{template: "sign-in", Title: "Sign in", Content: signInView{Next: local(v.get("next"))}})
}

// signIn checks a token and remembers it.
func (p *Pages) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	v := &visit{Request: r, now: p.Now()}
	next := local(r.PostFormValue("next"))
	token := strings.TrimSpace(r.PostFormValue("token"))
	refuse := func(status int, why *apiclient.Problem) {
		p.render(w, v, status, &view{template: "sign-in", Title: "Sign in", Content: signInView{Next: next, Problem: why}})
	}
	if token == "" {
		refuse(http.StatusUnprocessableEntity, &apiclient.Problem{Detail: "no token was given; paste one"})
		return
	}
	api, err := p.API(token)
	if err != nil {
		refuse(http.StatusUnprocessableEntity, &apiclient.Problem{Detail: err.Error()})
		return
	}
	who, err := api.Info(r.Context())
	var problem *apiclient.Problem
	switch {
	case errors.As(err, &problem):
		refuse(problem.Status, problem)
		return
	case err != nil:
		p.fail(w, v, err)
		return
	case who.Role == "collector":
		refuse(http.StatusForbidden, &apiclient.Problem{Detail: "this is the token of a collector; pages need that of a person, with the role reader, writer or admin"})
		return
	}
	http.SetCookie(w, remember(r, token))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// signOut forgets the token.
func (p *Pages) signOut(w http.ResponseWriter, r *http.Request) {
	forget(w, r)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
