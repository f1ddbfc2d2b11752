package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/chart"
)

// pictureSize is the size of a chart alone.
var pictureSize = chart.Chart{Width: 2 * chart.DefaultWidth, Height: 2 * chart.DefaultHeight}

// chartPicture answers with one chart as a document of its own.
func (p *Pages) chartPicture(w http.ResponseWriter, r *http.Request) {
	asked := func(h *historyView, q apiclient.HistoryQuery) apiclient.HistoryQuery { return h.drawn(q, pictureSize) }
	p.answerChart(w, r, "image/svg+xml; charset=utf-8", asked, func(h *historyView) ([]byte, error) {
		drawn, _ := h.draw(h.History.Charts[0])
		drawn.Width, drawn.Height = pictureSize.Width, pictureSize.Height
		var err error
		drawn.StyleSheet, err = p.assets.path("benchloom.css")
		return []byte(drawn.SVG()), err
	})
}

// chartValues answers with the values of one chart, as the API does: browsers have a cookie
// for pages, which the API does not take.
func (p *Pages) chartValues(w http.ResponseWriter, r *http.Request) {
	all := func(_ *historyView, q apiclient.HistoryQuery) apiclient.HistoryQuery { return q }
	p.answerChart(w, r, "application/json", all, func(h *historyView) ([]byte, error) { return json.Marshal(h.History) })
}

// asking says what of a chart is asked for.
type asking func(h *historyView, q apiclient.HistoryQuery) apiclient.HistoryQuery

// answerChart answers with one chart in a form other than a page.
func (p *Pages) answerChart(w http.ResponseWriter, r *http.Request, contentType string, asked asking, write func(h *historyView) ([]byte, error)) {
	v, err := p.visit(r, append(slices.Clone(historyParameters), chartParameter))
	if err == nil {
		err = v.checkParameters()
	}
	var h historyView
	if err == nil {
		h, err = readChart(v, asked)
	}
	var body []byte
	if err == nil {
		body, err = write(&h)
	}
	if err != nil {
		p.fail(w, v, err)
		return
	}
	protect(w.Header())
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body) // fails only if the client is gone
}

// readChart reads the one chart that the address asks for.
func readChart(v *visit, asked asking) (historyView, error) {
	out, q, err := readHistory(v)
	if err != nil {
		return out, err
	}
	project := v.PathValue("project")
	q.OneChart, q.Chart = true, v.get(chartParameter)
	if out.History, err = v.api.History(v.Context(), project, asked(&out, q)); err != nil {
		return out, err
	}
	if len(out.History.Charts) == 0 {
		return out, &apiclient.Problem{
			Type: apiclient.ProblemPrefix + "not-found", Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound,
			Detail: fmt.Sprintf("the history of project %s has no chart %.80q; its page lists the charts", project, q.Chart),
		}
	}
	return out, nil
}
