package pages

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// problemView is the content of a page that says why there is no other.
type problemView struct {
	*apiclient.Problem
	// Nearest lists pages that may have been meant.
	Nearest []link
	// Again is the time after which the browser asks for the page again; empty: it does not.
	Again string
}

// titles of problems, by status.
var titles = map[int]string{
	http.StatusBadRequest: "This address is not understood", http.StatusForbidden: "Not allowed", http.StatusNotFound: "Not found",
	http.StatusConflict: "Not possible now", http.StatusUnprocessableEntity: "Not possible", http.StatusTooManyRequests: "Too many requests",
	http.StatusServiceUnavailable: "Not available now",
}

// problemOf returns the problem of an error of the API, or a general one.
func problemOf(err error) *apiclient.Problem {
	var problem *apiclient.Problem
	if errors.As(err, &problem) {
		return problem
	}
	return &apiclient.Problem{Status: http.StatusInternalServerError, Detail: "this page failed; the log of the API says why"}
}

// problemIf returns the problem of an error if it has one of the statuses; else nil.
func problemIf(err error, statuses ...int) *apiclient.Problem {
	var problem *apiclient.Problem
	if errors.As(err, &problem) && slices.Contains(statuses, problem.Status) {
		return problem
	}
	return nil
}

// fail shows why a page cannot be shown or an action was not carried out.
func (p *Pages) fail(w http.ResponseWriter, v *visit, err error) {
	if errors.Is(err, context.Canceled) && v.Context().Err() != nil {
		return // nobody waits for the answer
	}
	var to *movedTo
	if errors.As(err, &to) {
		to.lead(w, v)
		return
	}
	problem := problemOf(err)
	if problem.Type == "" && problem.Status >= http.StatusInternalServerError {
		p.Log.ErrorContext(v.Context(), "showing a page failed", "path", v.URL.Path, "error", err)
	}
	if problem.Status == http.StatusUnauthorized {
		p.unauthorized(w, v, problem)
		return
	}
	content := problemView{Problem: problem, Nearest: nearest(problem, err)}
	title := titles[problem.Status]
	if title == "" {
		title = "This did not work"
	}
	if problem.RetryAfter > 0 {
		seconds := strconv.Itoa(int(problem.RetryAfter.Seconds()))
		w.Header().Set("Retry-After", seconds)
		if problem.Status == http.StatusServiceUnavailable && v.Method == http.MethodGet {
			w.Header().Set("Refresh", seconds) // browsers do what it asks for, also without scripts
			content.Again = plural(int(problem.RetryAfter.Seconds()), "second")
		}
	}
	p.render(w, v, max(problem.Status, http.StatusBadRequest), &view{template: "problem", Title: title, Content: content})
}

// unauthorized asks for a token. It forgets a token that is no longer valid, so that pages that
// need none can be read again.
func (p *Pages) unauthorized(w http.ResponseWriter, v *visit, problem *apiclient.Problem) {
	shown := signInView{Next: "/", Closed: true}
	if v.Method == http.MethodGet {
		shown.Next = local(v.here())
	}
	if tokenOf(v.Request) != "" {
		shown.Problem, shown.Closed = problem, false
		forget(w, v.Request)
	} else if v.Header.Get("Sec-Fetch-Site") == "cross-site" && v.Method == http.MethodGet {
		// After a link on another site, the browser has kept the cookie back. Asked again from
		// here, it sends the cookie.
		w.Header().Set("Refresh", "0")
	}
	p.render(w, v, http.StatusUnauthorized, &view{template: "sign-in", Title: "Sign in", Content: shown})
}

// nearest leads to what a problem offers instead of an unknown name: requests, unless the page
// says otherwise.
func nearest(problem *apiclient.Problem, err error) []link {
	to := func(name string) link { return link{"/requests/" + segments(name), name} }
	var offers *offering
	if errors.As(err, &offers) {
		to = func(name string) link {
			_, tag, _ := strings.Cut(name, ":")
			return offers.to(tag)
		}
	}
	var links []link
	for _, e := range problem.Errors {
		if e.Location == apiclient.LocationNearest {
			links = append(links, to(e.Message))
		}
	}
	return links
}

// NotFound answers with a page that says that nothing is at an address.
func (p *Pages) NotFound(w http.ResponseWriter, r *http.Request) {
	v, err := p.visit(r, nil)
	if err == nil {
		err = &apiclient.Problem{Status: http.StatusNotFound, Detail: "there is nothing at this address; the overview leads to everything that there is"}
	}
	p.fail(w, v, err)
}
