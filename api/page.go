package api

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"net/http"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// latest bounds the number of requests on the page.
const latest = 25

type pageData struct {
	Version, TemporalUI string
	// Closed is set when reading needs a token: the page then shows nothing.
	Closed   bool
	Projects []store.Project
	Requests []apiclient.Request
}

// PageRecord reads the contents of the page.
type PageRecord interface {
	Projects(ctx context.Context) ([]store.Project, error)
	// Requests lists the newest first.
	Requests(ctx context.Context, filter store.RequestFilter) ([]bench.Request, error)
}

type pageHandlers struct {
	*base
	record PageRecord
}

// page shows projects and their latest requests in a browser.
func (s *pageHandlers) page(w http.ResponseWriter, r *http.Request) {
	data := pageData{Version: s.Version, TemporalUI: s.TemporalUI, Closed: !s.OpenRead}
	if s.OpenRead {
		var requests []bench.Request
		var err error
		if data.Projects, err = s.record.Projects(r.Context()); err == nil {
			requests, err = s.record.Requests(r.Context(), store.RequestFilter{Limit: latest})
		}
		if err != nil {
			s.writeError(w, r, err)
			return
		}
		for _, stored := range requests {
			data.Requests = append(data.Requests, requestOf(stored))
		}
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, data); err != nil {
		s.writeError(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	static("text/html; charset=utf-8", out.Bytes())(w, r)
}
