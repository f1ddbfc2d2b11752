package pages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/spare"
)

// Config of the pages. API, Now, Log and Random must be set.
type Config struct {
	// API returns the API as seen with a token; empty: without one.
	API func(token string) (API, error)
	// Now is the clock.
	Now func() time.Time
	Log *slog.Logger
	// Random draws the keys that tell one form sent twice from two forms.
	Random io.Reader
	// Stopping returns a channel that is closed when the server of a request stops; nil:
	// it never does.
	Stopping func(ctx context.Context) <-chan struct{}
}

func (c Config) stopping(ctx context.Context) <-chan struct{} {
	if c.Stopping == nil {
		return nil
	}
	return c.Stopping(ctx)
}

// Pages are the web pages.
type Pages struct {
	Config
	assets    assets
	templates *template.Template
	live      *live
	charts    keptCharts
	samples   keptSamples
	// written holds the memory of sent pages, for reuse.
	written spare.Memory[bytes.Buffer]
}

// New returns the pages.
func New(c Config) (*Pages, error) {
	if c.API == nil || c.Now == nil || c.Log == nil || c.Random == nil {
		return nil, errors.New("building the pages: API, Now, Log and Random must be set")
	}
	kept, err := files()
	if err != nil {
		return nil, fmt.Errorf("building the pages: %w", err)
	}
	return &Pages{Config: c, assets: kept.assets, templates: kept.templates, live: newLive(), charts: newKeptCharts(maxKeptCharts), samples: newKeptSamples(maxKeptSamples)}, nil
}

// built holds the parts of pages.
type built struct {
	assets    assets
	templates *template.Template
}

// files reads assets and templates. They are part of the program, so once is enough.
var files = sync.OnceValues(func() (b built, err error) {
	if b.assets, err = loadAssets(); err == nil {
		b.templates, err = parse(words(b.assets))
	}
	return b, err
})

// page is one kind of page.
type page struct {
	// pattern is its address, such as /requests/{request}.
	pattern string
	// parameters lists the names that its query may have.
	parameters []string
	show       func(v *visit) (*view, error)
}

// action carries out a form of a page.
type action struct {
	// pattern is the address to which the form is sent.
	pattern string
	// do carries it out and returns the address of the page that shows the effect.
	do func(v *visit) (string, error)
}

// pages lists all pages. Each file with pages adds its own.
func (p *Pages) pages() []page {
	return slices.Concat(
		p.overviewPages(), p.projectPages(), p.comparePages(), p.historyPages(), p.requestPages(), p.graphPages(), p.queuePages(), p.waitPages(), p.collectorPages(), p.sizeClassPages(), p.jobPages(), p.flamePages(), p.helpPages(),
	)
}

// actions lists all actions.
func (p *Pages) actions() []action {
	return slices.Concat(p.projectActions(), p.compareActions(), p.requestActions(), p.graphActions(), p.queueActions(), p.collectorActions(), p.jobActions(), p.flameActions())
}

// areas are the entries of the navigation.
var areas = []link{
	{"/", "Overview"},
	{"/queues", "Queues"},
	{"/collectors", "Collectors"},
	{"/sizeclasses", "Size classes"},
	{"/audit", "Audit"},
	{"/help", "Help"},
}

// Handlers returns the handlers of all pages by their patterns, which are those of
// [http.ServeMux].
func (p *Pages) Handlers() map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{
		"GET " + signInAddress:      p.signInPage,
		"POST " + signInAddress:     p.signIn,
		"POST /sign-out":            p.signOut,
		"GET /assets/{hash}/{file}": p.assets.serve,
		"GET /live":                 p.follow,

		"GET /projects/{project}/history/chart.svg":  p.chartPicture,
		"GET /projects/{project}/history/chart.json": p.chartValues,
	}
	for _, one := range p.pages() {
		pattern := one.pattern
		if pattern == "/" {
			pattern = "/{$}"
		}
		all["GET "+pattern] = p.answer(one)
	}
	for _, one := range p.actions() {
		all["POST "+one.pattern] = p.act(one)
	}
	return all
}

// visit is one request for a page, or one form that was sent.
type visit struct {
	*http.Request
	api API
	// who describes the visitor, and the service.
	who apiclient.Info
	now time.Time
	log *slog.Logger
	// known lists the parameters of the page.
	known []string
}

// visit begins to answer a request: it finds out who asks.
func (p *Pages) visit(r *http.Request, known []string) (*visit, error) {
	v := &visit{Request: r, now: p.Now(), log: p.Log, known: known}
	api, err := p.API(tokenOf(r))
	if err != nil {
		return v, err
	}
	v.api = api
	v.who, err = api.Info(r.Context())
	return v, err
}

// answer shows a page, or why it cannot be shown.
func (p *Pages) answer(one page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := p.visit(r, one.parameters)
		if err != nil {
			p.fail(w, v, err)
			return
		}
		if err := v.checkParameters(); err != nil {
			p.fail(w, v, err)
			return
		}
		shown, err := one.show(v)
		if err != nil {
			p.fail(w, v, err)
			return
		}
		p.render(w, v, http.StatusOK, shown)
	}
}

// maxForm bounds a form, in bytes.
const maxForm = 64 << 10

// act carries out an action and shows its effect. It redirects to an ordinary page, so that a
// reload repeats nothing.
func (p *Pages) act(one action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			p.fail(w, &visit{Request: r, now: p.Now()}, &apiclient.Problem{Status: http.StatusBadRequest, Detail: "the form could not be read; go back and send it again"})
			return
		}
		v, err := p.visit(r, nil)
		if err != nil {
			p.fail(w, v, err)
			return
		}
		to, err := one.do(v)
		if err != nil {
			p.fail(w, v, err)
			return
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// checkParameters refuses parameters that the page does not have: an address that is
// misspelt must not look like one that finds nothing.
func (v *visit) checkParameters() error {
	var unknown []string
	for name := range v.URL.Query() {
		if !slices.Contains(v.known, name) {
			unknown = append(unknown, fmt.Sprintf("%.40q", name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	knows := "it has none"
	if len(v.known) > 0 {
		knows = "it knows " + strings.Join(v.known, ", ")
	}
	noun := "parameter"
	if len(unknown) > 1 {
		noun = "parameters"
	}
	return &apiclient.Problem{
		Type: apiclient.ProblemPrefix + "unknown-parameter", Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest,
		Detail: fmt.Sprintf("this page has no %s %s; %s", noun, strings.Join(unknown[:min(len(unknown), 5)], ", "), knows),
	}
}

// get returns a parameter of the page.
func (v *visit) get(name string) string { return v.URL.Query().Get(name) }

// here returns the page's own address with the parameters that it has. Others are left out:
// what somebody has pasted into an address by mistake, such as a token, is shown nowhere.
func (v *visit) here() string {
	query := v.URL.Query()
	for name := range query {
		if !slices.Contains(v.known, name) {
			query.Del(name)
		}
	}
	if len(query) == 0 {
		return v.URL.EscapedPath()
	}
	return v.URL.EscapedPath() + "?" + query.Encode()
}

// link is an address with its words.
type link struct{ Href, Text string }
