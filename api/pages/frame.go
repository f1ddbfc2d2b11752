package pages

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
)

//go:embed templates
var templateFiles embed.FS

// view is the content of a page, inside the frame.
type view struct {
	// template is the name of a file in templates, without its ending.
	template string
	// Title of the page, without the name of the service.
	Title string
	// Area is the address of the page's entry in the navigation; empty: none.
	Area string
	// Crumbs lead to the page, without the overview and the page itself.
	Crumbs []link
	// Live is the subject of live updates; empty: there are none. Revision is the shown revision of
	// the subject, and must be read before everything else.
	Live, Revision string
	// Ended is set for a page that had live updates and no longer changes.
	Ended bool
	// APIPath is the address of the API that answers what the page shows, Command the
	// command line that prints it; both may be empty.
	APIPath, Command string
	// Content is the data of the template.
	Content any
}

// frame is a view with what surrounds it: the data of all templates.
type frame struct {
	*view
	Now   time.Time
	Who   apiclient.Info
	Areas []link
	// Here is the page's own address, to return to.
	Here string
	url  *url.URL
}

// SignedIn reports whether the visitor has given a token.
func (f frame) SignedIn() bool { return f.Who.Role != "" }

// parse reads the templates: each page is a file of its own name, between the head and the foot of the frame. All are in one
// set, so that pages share the parts: copies for each page took several megabytes, which the garbage collector scanned.
func parse(words template.FuncMap) (*template.Template, error) {
	set, err := template.New("pages").Funcs(words).ParseFS(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("reading the templates of pages: %w", err)
	}
	return set, nil
}

// policy allows only what this server itself sends, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// keptPage bounds the memory of a page that is reused, in bytes: few pages are larger.
const keptPage = 1 << 20

// render writes a page.
func (p *Pages) render(w http.ResponseWriter, v *visit, status int, shown *view) {
	page := p.templates.Lookup(shown.template + ".html")
	if page == nil {
		panic("pages: there is no template " + shown.template)
	}
	data := frame{view: shown, Now: v.now, Who: v.who, Areas: areas, Here: v.here(), url: v.URL}
	if v.Method == http.MethodPost {
		data.Here = "/"
	}
	out := p.written.Get()
	defer func() {
		if out.Cap() <= keptPage {
			out.Reset()
			p.written.Put(out)
		}
	}()
	if err := page.Execute(out, data); err != nil {
		p.Log.ErrorContext(v.Context(), "writing a page failed", "page", shown.template, "error", err)
		protect(w.Header())
		http.Error(w, "This page could not be written; the log of the API says why.", http.StatusInternalServerError)
		return
	}
	protect(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // fails only if the client is gone
}

// protect adds the headers of every page. The page's address goes to no other site, but to this
// one: without it, a browser would hide the origin of forms.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-store")
}
