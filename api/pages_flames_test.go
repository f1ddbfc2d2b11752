package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// frames returns the boxes of a flame graph by the names of their functions: what their titles say, and their classes.
func (p shownPage) frames() (titles, classes map[string]string) {
	titles, classes = make(map[string]string), make(map[string]string)
	p.each("svg", func(n *html.Node) {
		if n.FirstChild == nil || n.FirstChild.Data != "title" || n.Parent == nil || attribute(n, "class") == "flame" {
			return
		}
		name, rest, _ := strings.Cut(textOf(n.FirstChild), ": ")
		titles[name], classes[name] = rest, attribute(n, "class")
	})
	return titles, classes
}

func TestProfilesAreShownAsFlameGraphs(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t, withFiles(t))
	require.Contains(t, w.sound(t, "/projects/go/profiles").text(), "Nothing was profiled yet")
	run, key := w.profileRun()
	r, err := w.nobody.Run(t.Context(), run)
	require.NoError(t, err)
	require.Contains(t, w.sound(t, "/runs/"+string(run)).section("profiles"), "It makes a profile when it ends")
	require.Contains(t, w.sound(t, "/jobs/"+string(key)).section("profiles"), "It has made no profile yet")
	before := w.deliver(t, run, 2)
	require.NoError(t, w.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	slower, _ := w.profileRun()
	after := w.deliver(t, slower, 7)

	// What has made a profile leads to it, and so does the list.
	at := "/profiles/" + string(before.ID)
	for _, page := range []string{"/runs/" + string(run), "/jobs/" + string(key), "/projects/go/profiles?benchmark=gin&tag=" + r.Tag} {
		require.Contains(t, w.sound(t, page).links(), at, page)
	}
	require.Contains(t, w.sound(t, "/projects/go").links(), "/projects/go/profiles")
	require.Contains(t, w.sound(t, "/projects/go/profiles?benchmark=kit").text(), "No profile is like that")

	// A profile: frames with their shares, the functions, and all downloads.
	p := w.sound(t, at)
	titles, _ := p.frames()
	require.Equal(t, map[string]string{"all": "10.0 ms, 100.0 % of all", "main.main": "10.0 ms, 100.0 % of all", "main.hot": "2.0 ms, 20.0 % of all; itself 20.0 %", "main.cold": "8.0 ms, 80.0 % of all; itself 80.0 %"}, titles)
	require.Contains(t, p.section("functions"), "main.cold main.go 8.0 ms 80.0 % 8.0 ms 80.0 %")
	for _, form := range []string{"pprof", "folded", "speedscope", "html", "raw"} {
		file := w.send(t, "", http.MethodGet, p.linkWith("form="+form), "")
		require.Equal(t, http.StatusOK, file.status, form)
		require.Contains(t, file.header.Get("Content-Disposition"), "attachment", form)
	}

	// A frame leads to the page that zooms in on it; a search marks what it finds.
	zoomed := w.sound(t, at+strings.TrimSuffix(p.linkOf(t, "main.hot"), "#flames"))
	require.Contains(t, zoomed.section("zoomed"), "main.hot")
	titles, _ = zoomed.frames()
	require.NotContains(t, titles, "main.cold", "what is beside it is out of sight")
	found := w.sound(t, at+"?q=COLD&type=samples")
	require.Contains(t, found.section("found"), "80.0 % of all samples")
	_, classes := found.frames()
	require.Contains(t, classes["main.cold"], "found")
	require.Contains(t, classes["main.hot"], "passed")
	require.Contains(t, w.sound(t, at+"?at=nothing").text(), "is not in this profile")

	// The difference of two.
	difference := "/profiles/diff?a=" + string(before.ID) + "&b=" + string(after.ID)
	d := w.sound(t, difference)
	titles, classes = d.frames()
	require.Contains(t, titles["main.hot"], "70.0 % of all; before: 2.0 ms, 20.0 %")
	require.Equal(t, []string{"more-4", "less-4"}, []string{classes["main.hot"], classes["main.cold"]})
	require.Contains(t, d.section("functions"), "main.hot main.go +50.0 20.0 % 70.0 % +50.0")
	require.Contains(t, d.links(), "/profiles/diff?a="+string(after.ID)+"&b="+string(before.ID))
	require.Equal(t, http.StatusOK, w.send(t, "", http.MethodGet, d.linkWith("form=html"), "").status)
	require.Equal(t, http.StatusOK, w.page(t, "", "/profiles/diff"+strings.TrimSuffix(d.linkOf(t, "main.hot"), "#flames")).status)

	for address, status := range map[string]int{
		"/profiles/paaaaaaaaaa": http.StatusNotFound, "/profiles/none": http.StatusBadRequest, "/profiles/diff": http.StatusBadRequest,
		"/profiles/diff?a=" + string(before.ID) + "&b=paaaaaaaaaa": http.StatusNotFound, at + "?type=heap": http.StatusUnprocessableEntity, at + "?zoom=1": http.StatusBadRequest,
		"/projects/none/profiles": http.StatusNotFound,
	} {
		require.Equal(t, status, w.page(t, "", address).status, address)
	}
}

// linkOf is the address to which the frame of a function leads.
func (p shownPage) linkOf(t *testing.T, function string) (address string) {
	t.Helper()
	p.each("svg", func(n *html.Node) {
		if n.FirstChild != nil && n.FirstChild.Data == "title" && strings.HasPrefix(textOf(n.FirstChild), function+":") {
			address = attribute(n.Parent, "href")
		}
	})
	require.NotEmpty(t, address, function)
	return address
}

// Whoever wants to know why a row differs asks for profiles of both sides from there.
func TestARowIsProfiledOnBothSides(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	withPerf := registration("c1")
	withPerf.Devices = []string{"program:perf"}
	_, err := b.collector.RegisterCollector(t.Context(), withPerf)
	require.NoError(t, err)
	compare := compareGo + "?a=1.25.0&b=1.26.0"
	to := compare + "&open=" + url.QueryEscape(fullWallTime)
	leads := false
	for _, address := range b.sound(t, compare).links() {
		leads = leads || strings.HasSuffix(address, "#act-profile") && strings.Contains(address, url.QueryEscape(fullWallTime))
	}
	require.True(t, leads, "each row leads to the form")
	require.Contains(t, b.sound(t, to).section("act-profile"), "benchloom profile go 1.26.0 gin/build/full/gc/x86_64-unknown-linux-gnu --with")
	const form = "/projects/go/profiles"
	signed := b.page(t, api.RoleWriter, to)
	signed.requireSound(t, to)
	var offered []string
	signed.each("option", func(n *html.Node) { offered = append(offered, textOf(n)) })
	require.Subset(t, offered, []string{"callgrind", "perf"})
	fields := signed.fields(form)
	fields.Set("profiler", "perf")
	fields.Set("reason", "why?")
	made := b.form(t, b.cookieOf(t, api.RoleWriter), form, fields)
	require.Equal(t, http.StatusSeeOther, made.status, made.body)
	require.Equal(t, made.header.Get("Location"), b.form(t, b.cookieOf(t, api.RoleWriter), form, fields).header.Get("Location"), "a form that is sent twice acts once")
	id, _, _ := strings.Cut(strings.TrimPrefix(made.header.Get("Location"), "/requests/"), "#")
	r, err := b.nobody.Request(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []any{bench.AdHoc, "1.26.0", "1.25.0", "perf"}, []any{r.Type, r.Tag, r.Versus, r.Profiler})
	shown := b.sound(t, "/requests/"+id)
	require.Contains(t, shown.section("profiles"), "none has yet")
	require.Contains(t, shown.section("about"), "Profiler perf And of 1.25.0")

	// A profiler that exists nowhere is refused with what to install; one that is unknown with those that are known.
	fields.Del("key")
	fields.Set("profiler", "callgrind")
	refused := b.form(t, b.cookieOf(t, api.RoleWriter), form, fields)
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.body, "install the package valgrind")
	for _, wrong := range []string{"", "vtune"} {
		fields.Set("profiler", wrong)
		require.GreaterOrEqual(t, b.form(t, b.cookieOf(t, api.RoleWriter), form, fields).status, http.StatusBadRequest, wrong)
	}
	fields.Set("profiler", "perf")
	require.Equal(t, http.StatusForbidden, b.form(t, b.cookieOf(t, api.RoleReader), form, fields).status)
}
