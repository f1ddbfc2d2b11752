package pages

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// Of a comparison, one reads what matters most, sorts and narrows it, opens a row down to its
// values, and takes it along as text and as a link. Each look has an address.
func aComparisonIsRead(t *testing.T, _ scene, b *tab) {
	project := sharedGateway(t)
	compare := "/projects/" + project + "/compare"
	b.visit("/projects/" + project)
	b.follow(`main a[href="` + compare + `"]`)
	b.follow(`#pairs a[href="` + compare + `?a=1.1.0&b=1.2.0"]`)
	require.Equal(t, compare+"?a=1.1.0&b=1.2.0", b.where())
	require.Contains(t, b.text(".sentence"), "3 changed")
	b.follow(`#rows nav[aria-label="Metrics"] a[href*="metric=allocs"]`)
	chosen := compare + "?a=1.1.0&b=1.2.0&metric=allocs%2Fop"
	require.Equal(t, chosen, b.where())
	require.Equal(t, []string{"route", "render", "compress"}, b.compared(), "the largest change first")

	// Sort.
	b.follow(`#rows th a[href*="sort=change"]`)
	require.Equal(t, chosen+"&sort=change", b.where())
	require.Equal(t, []string{"compress", "render", "route"}, b.compared())
	require.Contains(t, b.text(`#rows [aria-sort="ascending"]`), "Change")
	b.follow(`#rows th a[href*="sort=-change"]`)
	require.Equal(t, []string{"route", "render", "compress"}, b.compared())
	b.back()
	require.Equal(t, []string{"compress", "render", "route"}, b.compared())

	// Narrow, by kind, words and properties.
	b.follow(`#rows .filters a[href*="only=improvement"]`)
	require.Equal(t, []string{"compress"}, b.compared())
	b.back()
	require.Equal(t, chosen+"&sort=change", b.where())
	b.search("#q", "-route")
	require.Equal(t, "-route", b.parameter("q"))
	require.Equal(t, []string{"compress", "render"}, b.compared())
	b.unfold("#rows .facets")
	b.follow(`#rows .facet a[href*="benchmark%3Arender"]`)
	require.Equal(t, "-route benchmark:render", b.parameter("q"))
	require.Equal(t, []string{"render"}, b.compared())
	b.back()
	require.Equal(t, []string{"compress", "render"}, b.compared())
	b.back()
	b.follow(`#rows a[href*="show=all"]`)
	require.Equal(t, []string{"compress", "parse", "render", "route"}, b.compared())
	b.follow(`nav[aria-label="Group rows by"] a[href*="group=category"]`)
	require.Equal(t, []string{"compress", "parse", "route", "render"}, b.compared())
	require.Contains(t, b.texts("#rows tr.group")[1], "secondary 1 series")
	b.back()

	// More columns.
	b.tick("#col-spread")
	b.tick("#col-threshold")
	b.follow("form.columns button")
	require.Subset(t, b.texts("#rows thead th"), []string{"Spread of A, B", "Least relevant"})
	require.Equal(t, "all", b.parameter("show"), "the rest stays as it was")
	b.back()

	// A row has an address.
	b.follow(`#rows .changes a[href*="open=render%2F"]`)
	require.True(t, strings.HasPrefix(b.parameter("open"), "render/"), b.where())
	require.Contains(t, b.text("#h-row"), "allocs/op of render")
	require.Contains(t, b.text("#row .sentence"), "regression")
	require.Len(t, b.texts("#row tbody tr"), 10, "five values of each side")
	b.follow(`#row a[href^="/runs/"]`)
	require.True(t, strings.HasPrefix(b.where(), "/runs/"), b.where())
	b.back()
	b.follow(`#row a[href*="/history?"]`)
	require.Len(t, b.texts("figure"), 1)
	b.back()
	b.follow(`#row > p:last-child a`)
	require.Equal(t, chosen+"&show=all&sort=change", b.where())
	require.Empty(t, b.text("#row"))

	// Copy.
	b.follow(`#copy a[href*="open=markdown"]`)
	markdown := b.copied("#text")
	require.Contains(t, markdown, "### allocs/op")
	require.Regexp(t, `\| route \|.*\| \+33.33 % \|`, markdown)
	require.Contains(t, markdown, compare+"?")
	b.follow(`#copy a[href*="digest="]`)
	require.Contains(t, b.text("main"), "the results are those for which this link was copied")
}

// compared lists the test cases of the table, in its order.
func (b *tab) compared() []string {
	b.t.Helper()
	return b.texts("#rows .changes tbody td:first-child a")
}

// parameter returns a parameter of the page's address.
func (b *tab) parameter(name string) string {
	b.t.Helper()
	at, err := url.Parse(b.where())
	require.NoError(b.t, err)
	return at.Query().Get(name)
}

// What looks odd is measured again, for a cost that is known before. The comparison shows the
// new verdict as soon as it is there, and whoever has a link to the old results is told.
func aComparisonFollowsNewResults(t *testing.T, s scene, b *tab) {
	project := s.name("again")
	artifacts := s.gateway(t, project, measuredOnce)
	for _, tag := range []string{"1.1.0", "1.2.0"} {
		require.Equal(t, bench.Success, s.ended(t, s.release(t, project, tag)))
	}
	b.signIn(s.token)
	b.visit("/projects/" + project + "/compare?b=1.2.0")
	require.Equal(t, "1.1.0", b.parameter("a"), "the baseline is the release before")
	copied := ask[string](b, `document.querySelector('#copy a[href*="digest="]').getAttribute("href")`)
	b.follow(`#rows .changes a[href*="allocs"][href*="open=route%2F"]`)
	require.Contains(t, b.text("#row .sentence"), "regression")
	opened := b.where()

	b.follow(`#row a[href*="/again?benchmark=route"]`)
	require.Contains(t, b.text("#preview"), "1 job, 1 test case")
	require.Contains(t, b.text("#preview"), "of machine time")
	needing(t, artifacts, "1.2.0", "route", "316 3")
	b.enter("#reason-again", "it looks odd")
	b.follow("main form button")
	require.Contains(t, b.text("#audit"), "it looks odd")
	request := strings.TrimPrefix(b.where(), "/requests/")
	b.back()
	b.back()
	require.Equal(t, opened, b.where())
	b.mark()
	require.Equal(t, bench.Success, s.ended(t, bench.RequestID(request)))
	b.awaitText("#row .sentence", "no difference")
	b.stays()

	b.visit(copied)
	require.Contains(t, b.text("#since"), "Results have changed since this link was copied.")
	require.Contains(t, b.text("#since"), "of route")
	b.follow(`#since > p:last-child a`)
	require.Empty(t, b.text("#since"))

	// Whoever doubts the verdict has both sides measured in turns, from the row.
	b.visit(opened)
	require.NotContains(t, b.text("#row"), "Change in turns")
	b.unfold("#act-turns")
	require.Regexp(t, `takes \d+ to \d+ pairs of iterations, in \d+ looks at most; about .+ of machine time`, b.text("#act-turns"))
	b.enter("#reason-turns", "to be sure")
	b.follow("#act-turns button")
	require.Contains(t, b.text("#audit"), "to be sure")
	turns := strings.TrimPrefix(b.where(), "/requests/")
	b.back()
	require.Equal(t, opened, b.where())
	require.Equal(t, bench.Success, s.ended(t, bench.RequestID(turns)))
	b.awaitText("#row", "Change in turns")
	b.awaitText("#row .sentence", "no difference")
	require.Contains(t, b.text("#row tbody"), "in turns")
}

// In a history one finds a chart, reads its points, zooms by an address, and pins a point to
// compare others with it. Without scripts, links and tables lead to the same.
func aHistoryIsFollowed(t *testing.T, s scene, b *tab) {
	project := sharedGateway(t)
	history := "/projects/" + project + "/history"
	b.visit("/projects/" + project)
	b.follow(`main a[href="` + history + `"]`)
	b.follow(`nav[aria-label="Metrics"] a[href*="metric=allocs"]`)
	chosen := history + "?metric=allocs%2Fop"
	require.Equal(t, chosen, b.where())
	require.Len(t, b.texts("figure"), 4)
	require.Contains(t, b.text(".sentence"), "8 artifacts, 4 series")
	require.Contains(t, b.text("#table"), "failed 1 time, last at 0.7.0", "in words as well")

	// Read points.
	const chart = `figure:has(a[aria-label="Values of compress"])`
	if !b.scriptless {
		b.point(chart, 4)
		b.awaitText(chart+" .tip", "0.9.0")
		require.Contains(t, b.text(chart+" .tip"), "90")
		require.Contains(t, b.text(chart+" .tip"), "(-6.25 %), n 5")
		b.point(chart, 2)
		b.awaitText(chart+" .tip", "0.7.0")
		require.Contains(t, b.text(chart+" .tip"), "failed")
	}
	if b.hand == keyboard && !b.scriptless { // what a click does not lead to
		b.choose(chart + ` .tip a[href$="/again"]`)
		require.Regexp(t, "^/requests/[^/]+/again$", b.where())
		b.back()
	}

	// Zoom.
	if b.scriptless {
		b.follow(`nav[aria-label="Parts of the history"] a[href*="from=0.7.0"]`)
	} else {
		b.zoom(chart, 2, 5)
	}
	require.Equal(t, "0.7.0", b.parameter("from"))
	require.Equal(t, "1.0.0", b.parameter("to"))
	require.Equal(t, "allocs/op", b.parameter("metric"))
	require.Contains(t, b.text(".sentence"), "4 artifacts of 8")
	b.follow(`nav[aria-label="Parts of the history"] a[href*="to=0.6.0"]`)
	require.Contains(t, b.text("main"), "From 0.5.0 to 0.6.0.")
	b.back()
	require.Equal(t, "0.7.0", b.parameter("from"))
	b.back()
	require.Equal(t, chosen, b.where())

	// Filter, and look otherwise.
	b.search("#q", "route")
	require.Equal(t, "route", b.parameter("q"))
	require.Len(t, b.texts("figure"), 1)
	b.back()
	require.Len(t, b.texts("figure"), 4)
	for _, choice := range []string{"y=change", "x=date", "band=quartile", "split=target", "type=release"} {
		b.unfold("#view")
		b.follow(`#view a[href*="` + choice + `"]`)
		name, value, _ := strings.Cut(choice, "=")
		require.Equal(t, value, b.parameter(name))
	}
	require.Equal(t, "change", b.parameter("y"), "the rest stays as it was")
	require.Len(t, b.texts("figure"), 1)
	require.Len(t, b.texts(".legend li"), 4)

	// Pin a point, and compare with it.
	b.visit(chosen)
	if !b.scriptless {
		b.pin(chart, 3)
		require.Equal(t, "0.8.0", b.parameter("pin"))
		b.pin(chart, 3) // again, which releases it
		require.Equal(t, chosen, b.where())
	}
	b.follow(chart + ` a[aria-label="Values of compress"]`)
	require.Equal(t, history+"?metric=allocs%2Fop&open=compress", b.where())
	rows := b.texts("#values tbody tr")
	require.Len(t, rows, 8)
	require.True(t, strings.HasPrefix(rows[0], "1.2.0"), "the newest first: %q", rows)
	require.Contains(t, rows[5], "failed: ")
	b.follow(`#values a[href*="pin=0.6.0"]`)
	require.Contains(t, b.text("main"), "compared with 0.6.0, which is pinned")
	if b.scriptless {
		b.follow(`#values a[href$="a=0.6.0&b=1.2.0"]`)
	} else {
		b.choosePoint("figure", 7)
	}
	require.Equal(t, "/projects/"+project+"/compare?a=0.6.0&b=1.2.0", b.where())
	require.Contains(t, b.text("h1"), "1.2.0 compared with 0.6.0")
	b.back()
	require.Equal(t, "0.6.0", b.parameter("pin"))
	b.follow(`main > p.small > a[href]`)
	require.Empty(t, b.parameter("pin"))
	b.follow(`#values a[href$="#charts"]`)
	require.Equal(t, chosen, b.where())

	// Take along what is shown.
	for _, of := range []string{`a[href*="format=csv"]`, `main > p.small:last-child a:last-child`, `figure a[aria-label^="Picture"]`} {
		body := s.read(t, ask[string](b, "document.querySelector("+quoted(of)+").getAttribute('href')"))
		require.True(t, slices.ContainsFunc(gatewayBenchmarks, func(name string) bool { return strings.Contains(body, name) }), "%s: %s", of, body)
	}
}

// read reads an address of the service, as whoever is not signed in.
func (s service) read(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", path, body)
	return string(body)
}
