package pages

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// axe is the accessibility checker. 'make axe' fetches it.
func axe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash("axe/node_modules/axe-core/axe.min.js"))
	require.NoError(t, err, "'make axe' fetches the accessibility checker")
	return string(text)
}

// finding is a fault that the checker reports, with its places.
type finding struct {
	Rule   string   `json:"rule"`
	Help   string   `json:"help"`
	Places []string `json:"places"`
}

func (f finding) String() string {
	return f.Rule + ": " + f.Help + "\n    " + strings.Join(f.Places, "\n    ")
}

// runAxe runs the checker on the page, with all rules or with some. What it cannot decide,
// such as the contrast of text on a drawing, is left to other tests.
const runAxe = `axe.run(document, Object.assign({ resultTypes: ['violations'] }, %s)).then(r => r.violations.map(v => ({
	rule: v.id, help: v.help, places: v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + n.failureSummary) })))`

const (
	allRules = `{}`
	// rulesOfColours are those whose findings depend on colours.
	rulesOfColours = `{ runOnly: ['color-contrast', 'link-in-text-block'] }`
)

// findings checks the page.
func (b *tab) findings(checker string) []finding {
	b.t.Helper()
	return b.findingsOf(checker, allRules)
}

func (b *tab) findingsOf(checker, rules string) []finding {
	b.t.Helper()
	if !ask[bool](b, "'axe' in window") {
		ask[bool](b, checker+"\n;true")
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]finding](fmt.Sprintf(runAxe, rules), chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return found
}

// world is a service with something to show on each page.
type world struct {
	service
	// paths lists the pages with their names.
	paths map[string]string
}

// emptyWorld has pages on which there is nothing yet.
func emptyWorld(s service) world {
	return world{s, map[string]string{
		"overview": "/", "collectors": "/collectors", "collector": "/collectors/local-1", "sizeclasses": "/sizeclasses", "queues": "/queues", "waits": "/stats/wait", "audit": "/audit",
		"help": "/help", "sign-in": "/sign-in", "not-found": "/nothing", "project": "/projects/adhoc", "compare": "/projects/adhoc/compare", "history": "/projects/adhoc/history",
	}}
}

// full lets the service do some work: a success, a failure, and a command that goes on while
// the pages are looked at, behind which another waits.
func full(t *testing.T, s service) world {
	t.Helper()
	w := emptyWorld(s)
	s.releasedGateway(t, "gateway")
	compare, history := "/projects/gateway/compare?a=1.1.0&b=1.2.0", "/projects/gateway/history"
	maps.Copy(w.paths, map[string]string{
		"compare-choose": "/projects/gateway/compare", "compare": compare, "compare-row": compare + "&open=" + s.row(t, "gateway", "render"),
		"compare-all": compare + "&show=all&group=category&cols=spread&cols=p&q=-parse", "compare-nothing": compare + "&q=nothing", "compare-markdown": compare + "&open=markdown",
		"compare-machine": "/projects/gateway/compare/machine?a=1.1.0&b=1.2.0&row=" + s.row(t, "gateway", "render"),
		"compare-failing": "/projects/gateway/compare?a=0.6.0&b=0.7.0", "compare-unknown": "/projects/gateway/compare?a=1.2.0&b=9.9.9",
		"history": history, "history-lines": history + "?split=target&y=change&band=minmax&x=date", "history-nothing": history + "?q=nothing", "history-facets": history + "?q=category%3Aprimary",
		"graph": "/graphs/gateway:1.2.0", "graph-nothing": "/graphs/gateway:1.2.0?show=skipped",
		"history-values": history + "?metric=ns%2Fop&open=compress&pin=0.6.0", "history-part": history + "?from=0.7.0&to=1.0.0&y=geomean",
	})
	done := s.command(t, "sh", "-c", "for i in 1 2 3; do echo a line of output; done")
	failed := s.command(t, "sh", "-c", "echo it goes wrong; exit 3")
	for _, id := range []bench.RequestID{done.ID, failed.ID} {
		require.Eventually(t, func() bool {
			r, err := s.API.Request(t.Context(), string(id))
			require.NoError(t, err)
			return r.Status == bench.Completed
		}, 2*patience, 200*time.Millisecond)
	}
	running := s.small(t, "sleep", "600")
	beside := s.small(t, "sleep", "601")
	for name, id := range map[string]bench.RequestID{"done": done.ID, "failed": failed.ID, "running": running.ID, "beside": beside.ID} {
		key := s.jobOf(t, id)
		if name != "beside" {
			w.paths["request-"+name], w.paths["job-"+name] = "/requests/"+string(id), "/jobs/"+string(key)
		}
		require.Eventually(t, func() bool {
			j, err := s.API.Job(t.Context(), key)
			require.NoError(t, err)
			if len(j.Runs) == 0 {
				return false
			}
			if name != "beside" {
				w.paths["run-"+name] = "/runs/" + string(j.Runs[len(j.Runs)-1].ID)
			}
			return true
		}, 2*patience, 200*time.Millisecond)
	}
	waiting := s.small(t, "sleep", "602") // once both machines have a job: of several, a later one may begin first
	w.paths["request-waiting"], w.paths["job-waiting"] = "/requests/"+string(waiting.ID), "/jobs/"+string(s.jobOf(t, waiting.ID))
	shapes, err := s.API.Shapes(t.Context(), "")
	require.NoError(t, err)
	if len(shapes.Shapes) > 0 {
		w.paths["sizeclass"] = "/sizeclasses/" + shapes.Shapes[0].Shape
	}
	return w
}

// Nobody is kept from reading a page: in any look the checker finds nothing, and nothing
// scrolls sideways, also where a page has nothing to show.
func TestLongEveryPageCanBeReadByAll(t *testing.T) {
	t.Parallel()
	checker := axe(t)
	s := ownService(t)
	b := s.open(t)
	b.visit("/help")
	ask[bool](b, "document.querySelector('main').setAttribute('role', 'nonsense') || true")
	require.NotEmpty(t, b.findings(checker), "the checker finds what is wrong")
	check := func(state string, w world) {
		for name, path := range w.paths {
			var width int64
			for _, l := range looks() {
				b.appear(l)
				// Colours change while the page is shown; one of another width is loaded anew.
				rules := rulesOfColours
				if l.width != width {
					b.visit(path)
					ask[bool](b, unfoldAll)
					width, rules = l.width, allRules
				}
				what := fmt.Sprintf("%s, %s, %s", state, name, l.name)
				for _, f := range b.findingsOf(checker, rules) {
					t.Errorf("%s: %s", what, f)
				}
				if name == "history" && ask[bool](b, "document.querySelector('svg.chart') !== null") {
					b.readPart()
					for _, f := range b.findingsOf(checker, rules) {
						t.Errorf("%s, with a part of a chart marked: %s", what, f)
					}
				}
			}
			b.appear(look{width: 320})
			b.visit(path)
			if wide := ask[int](b, "document.documentElement.scrollWidth"); wide > 320 {
				t.Errorf("%s, %s: at 320 pixels the page is %d wide: %s", state, name, wide, ask[string](b, widest))
			}
			for _, cell := range ask[[]string](b, overflowing) {
				t.Errorf("%s, %s: at 320 pixels this is higher than its place, so that it covers what is below: %s", state, name, cell)
			}
		}
	}
	check("empty", emptyWorld(s))
	b.signIn(s.token)
	check("signed in", full(t, s))
}

// unfoldAll opens what is folded.
const unfoldAll = `[...document.querySelectorAll('details')].forEach(e => { e.open = true; }) || true`

// readPart marks a part of the first chart by keys, so that its values and what leads from it
// are shown.
func (b *tab) readPart() {
	b.t.Helper()
	b.focus("svg.chart")
	b.press(kb.End)
	b.do(chromedp.KeyEvent(kb.ArrowLeft, chromedp.KeyModifiers(chromedp.ModifierShift)))
	b.awaitText("figure .tip", "2 artifacts are marked")
	b.awaitText("figure .tip", "Measure again")
}

// widest names what sticks out of the page.
const widest = `[...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > 321).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join('\n')`

// overflowing names the cells of which something, such as their label, sticks out below.
const overflowing = `[...document.querySelectorAll('table.cards td')].filter(e => e.scrollHeight > e.clientHeight + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 160))`
