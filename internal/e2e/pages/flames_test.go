package pages

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// Of a row that differs, one asks for profiles of both sides with a form, waits on the page of the request, and looks at what
// differs, in the dark, on a phone: zooms in and out, searches, goes back, and does the same without scripts.
func TestLongARowIsExplainedByFlameGraphs(t *testing.T) {
	t.Parallel()
	checker := axe(t)
	s := sharedService(t)
	project := sharedGateway(t)
	b := s.open(t)
	b.signIn(s.token)
	b.appear(look{width: 390, features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	faults := b.faults()
	sound := func() {
		t.Helper()
		for _, f := range b.findings(checker) {
			t.Errorf("%s: %s", b.where(), f)
		}
		require.LessOrEqual(t, ask[int](b, "document.documentElement.scrollWidth"), 390, "%s", ask[string](b, widest))
	}
	b.visit("/projects/" + project + "/compare?a=1.1.0&b=1.2.0&open=" + s.row(t, project, "render") + "#row")
	b.unfold("#act-profile")
	ask[string](b, `document.querySelector('#profiler-profile').value = 'stacks'`)
	sound()
	b.follow("#act-profile button")
	b.awaitText("#profiles", "What differs between both")
	id := strings.TrimPrefix(strings.SplitN(b.where(), "?", 2)[0], "/requests/")
	s.ended(t, bench.RequestID(id))
	sound()

	b.follow("#profiles p a")
	difference := b.where()
	const frames = `[...document.querySelectorAll('svg.flame svg')].filter(e => e.checkVisibility()).map(e => e.querySelector('title').textContent.split(': ')[0])`
	require.Contains(t, ask[[]string](b, frames), "gateway.render")
	require.Contains(t, ask[string](b, `[...document.querySelectorAll('svg.flame svg')].find(e => e.textContent.startsWith('gateway.render')).getAttribute('class')`), "more-")
	require.Contains(t, b.text("#functions"), "gateway.render")
	sound()

	// With scripts, a frame zooms in without another page, and its address is that of the zoomed graph.
	b.mark()
	const match = `[...document.querySelectorAll('svg.flame a')].find(e => e.textContent.startsWith('gateway.match'))`
	require.Empty(t, ask[string](b, match+`.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 })), ''`))
	b.awaitText("#flames", "Zoomed in on gateway.match")
	b.stays()
	zoomed := b.where()
	require.Contains(t, zoomed, "at=")
	require.NotContains(t, ask[[]string](b, frames), "gateway.render", "what is beside it is out of sight")
	require.Contains(t, ask[[]string](b, frames), "net/http.(*Server).Serve", "its callers are not")
	sound()

	// Marks appear while one types; sending the form tells the share.
	ask[bool](b, `(() => { const q = document.querySelector('#q'); q.value = 'STEP3'; q.dispatchEvent(new Event('input', { bubbles: true })); return true; })()`)
	require.Equal(t, []string{"regexp.step3"}, ask[[]string](b, `[...document.querySelectorAll('svg.flame .found title')].map(e => e.textContent.split(': ')[0])`))
	ask[bool](b, `document.querySelector('#flames form').requestSubmit() || true`)
	b.awaitText("#flames", "of all samples are in functions with")
	b.stays()
	require.Equal(t, "STEP3", b.parameter("q"))
	require.Equal(t, 1, ask[int](b, `document.querySelectorAll('svg.flame .found').length`))
	sound()

	// Back, and back again, to where it began; an address shows the same when it is loaded anew.
	ask[bool](b, "history.back() || true")
	b.await("!document.querySelector('#found') && document.querySelector('#zoomed') !== null")
	require.Equal(t, zoomed, b.where())
	ask[bool](b, "history.back() || true")
	b.await("document.querySelector('#zoomed') === null")
	require.Equal(t, difference, b.where())
	b.stays()
	b.visit(zoomed)
	require.Contains(t, b.text("#zoomed"), "gateway.match")
	require.Empty(t, faults(), "on the console")

	// Without scripts, links and the form do it; names are as large as on a wide page.
	b.scripts(false)
	b.visit(difference)
	b.mark()
	ask[bool](b, match+`.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true })) || true`)
	b.awaitPage()
	require.Contains(t, b.text("#zoomed"), "gateway.match")
	b.fill("#q", "step3")
	require.Contains(t, b.text("#found"), "of all samples")
	require.InDelta(t, 12, ask[float64](b, `parseFloat(getComputedStyle(document.querySelector('svg.flame text')).fontSize)`), .1)

	// One profile alone, from the list.
	b.scripts(true)
	b.visit("/projects/" + project + "/profiles?benchmark=render")
	sound()
	b.follow(`td[data-label="Profile"] a`)
	require.Contains(t, b.text("#about"), "speedscope")
	sound()
	require.Empty(t, faults(), "on the console")
}
