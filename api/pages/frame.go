package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
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
	// Area is the address of the entry of the navigation to which it belongs; empty: none.
	Area string
	// Crumbs lead to the page, without the overview and the page itself.
	Crumbs []link
	// Live is the subject of its live updates; empty: there are none. Revision is what the
	// page shows of it, and must be read before everything else.
	Live, Revision string
	// Ended is set for a page that has had live updates, and of which nothing changes any more.
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

// parse reads the templates: each page is the frame, the parts, and its own file.
func parse(words template.FuncMap) (map[string]*template.Template, error) {
	base, err := template.New("frame").Funcs(words).ParseFS(templateFiles, "templates/frame.html", "templates/parts*.html")
	if err != nil {
		return nil, fmt.Errorf("reading the frame of pages: %w", err)
	}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("listing the templates: %w", err)
	}
	pages := make(map[string]*template.Template)
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "frame" || strings.HasPrefix(name, "parts") {
			continue
		}
		one, err := base.Clone()
		if err == nil {
			pages[name], err = one.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the template %s: %w", file, err)
		}
	}
	return pages, nil
}

// policy allows nothing but what this server itself sends, and nothing within the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// render writes a page.
func (p *Pages) render(w http.ResponseWriter, v *visit, status int, shown *view) {
	page, known := p.templates[shown.template]
	if !known {
		panic("pages: there is no template " + shown.template)
	}
	data := frame{view: shown, Now: v.now, Who: v.who, Areas: areas, Here: v.here(), url: v.URL}
	if v.Method == http.MethodPost {
		data.Here = "/"
	}
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, "frame", data); err != nil {
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

// protect adds the headers of every page. Its address goes to no other site, but stays
// known here: without it, a browser would hide the origin of forms.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-store")
}
