package pages

import (
	"reflect"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// scripts switches the scripts of pages on or off, from the next page on. What a test asks
// for is answered anyway.
func (b *tab) scripts(on bool) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
	require.NoError(b.t, err)
	b.scriptless = !on
}

// said holds the text of a page, and where one gets from it.
type said struct {
	Text            string
	Links, Controls []string
}

// saying reads a page: its visible text with everything opened, but without times, which go
// on, and what can be followed, filled in and pressed.
var saying = laidOut(`(() => {
	for (const e of document.querySelectorAll('time')) e.textContent = 'time';
	for (const e of document.querySelectorAll('details')) e.open = true;
	const parts = [...document.querySelectorAll('body > header, body > nav, body > main')];
	const all = selector => [...document.querySelectorAll(selector)].filter(e => e.checkVisibility() || e.type === 'hidden');
	return {
		Text: parts.map(e => e.innerText).join('\n').replace(/\s+/g, ' '),
		Links: all('a[href]').map(e => e.getAttribute('href') + ' ' + e.innerText).sort(),
		Controls: all('input, select, textarea, button, summary').map(e => [e.localName, e.form?.method ?? '', e.form?.getAttribute('action') ?? '', e.type ?? '', e.name ?? '',
			e.name === 'key' ? 'drawn' : e.value ?? '', e.innerText].join(' ')).sort(),
	};
})()`)

// settled lets the service do something that stays as it is: a command that succeeds and one
// that fails. It returns the pages that show them, and the job that has failed.
func (s service) settled(t *testing.T) (paths []string, failed bench.JobKey) {
	t.Helper()
	for _, script := range []string{"echo it goes well", "echo it goes wrong; exit 3"} {
		r := s.command(t, "sh", "-c", script)
		s.ended(t, r.ID)
		d, err := s.API.Request(t.Context(), string(r.ID))
		require.NoError(t, err)
		require.NotEmpty(t, d.Runs)
		failed = d.Jobs[0].Key
		request := "/requests/" + string(r.ID)
		paths = append(paths, request, request+"?show=all&sort=-took", request+"/again", "/jobs/"+string(failed), "/runs/"+string(d.Runs[0].ID))
	}
	return paths, failed
}

// With scripts off, every page says the same and leads to the same: each filter and order is a
// link, each search and action a form.
func TestLongEveryPageSaysTheSameWithoutScripts(t *testing.T) {
	t.Parallel()
	s := sharedService(t)
	paths, failed := s.settled(t)
	b := s.open(t)
	b.scripts(false)
	b.do(chromedp.Navigate("data:text/html,<p>off</p><script>document.querySelector('p').textContent = 'on'</script>"))
	require.Equal(t, "off", b.text("p"), "scripts are off")

	// Signing in, a search, an order, a filter and an action, from the first page on.
	b.visit("/sign-in?next=/collectors")
	b.fill("#token", s.token)
	require.Equal(t, "/collectors", b.where())
	b.activate(`th a[href="/collectors?sort=-name"]`)
	require.Contains(t, b.texts("tbody tr td:first-child")[0], "local-2")
	b.activate(`.filters a[href*="only=offline"]`)
	require.Equal(t, "/collectors?only=offline&sort=-name", b.where())
	b.fill("#q", "no such collector")
	require.Equal(t, "/collectors?q=no+such+collector&only=offline&sort=-name", b.where())
	require.Contains(t, b.text(".empty"), "No collector is like this")
	b.visit("/jobs/" + string(failed))
	b.focus("#act-retry summary")
	b.press("\r")
	b.await(`document.querySelector('#act-retry').open`)
	b.fill("#reason-retry", "without scripts")
	require.Contains(t, b.where(), "/requests/", "its effect")
	b.visit("/audit?subject=" + string(failed))
	require.Contains(t, b.text("tbody tr"), "without scripts")
	require.Eventually(t, func() bool {
		d, err := s.API.Job(t.Context(), failed)
		return err == nil && !d.Status.Open()
	}, 2*patience, lookEvery, "the job is retried")

	shapes, err := s.API.Shapes(t.Context(), "")
	require.NoError(t, err)
	for _, shape := range shapes.Shapes[:min(1, len(shapes.Shapes))] {
		paths = append(paths, "/sizeclasses/"+shape.Shape)
	}
	paths = append(paths, resultPaths(sharedGateway(t))[:2]...)
	for _, path := range append(paths,
		"/", "/queues", "/queues?by=user&sort=-waiting", "/stats/wait", "/stats/wait?block=2h&queue=user%3Aadmin&sort=-longest", "/collectors", "/collectors?only=waiting&sort=version", "/collectors/local-1", "/collectors/local-1?only=success",
		"/sizeclasses", "/audit", "/audit?who=admin", "/help", "/help?q=escalation", "/sign-in", "/projects/adhoc", "/projects/adhoc?show=completed", "/projects/adhoc/queue", "/nothing", "/?colour=red",
	) {
		b.saysTheSame(path)
	}
}

// resultPaths are pages of the results of a project like [sharedGateway], in all their
// orders, parts and kinds; the first two are typical.
func resultPaths(project string) []string {
	compare, history := "/projects/"+project+"/compare", "/projects/"+project+"/history"
	paths := []string{compare + "?a=1.1.0&b=1.2.0", history, compare, "/graphs/" + project + ":1.2.0"}
	for _, query := range []string{
		"&metric=ns%2Fop&show=all&sort=-change", "&q=-route&only=regression&group=benchmark&cols=spread&cols=p", "&q=nothing", "&open=markdown", "&open=nothing%2F%2F%2F%2F%2Fns%252Fop",
	} {
		paths = append(paths, compare+"?a=1.1.0&b=1.2.0"+query)
	}
	paths = append(paths, compare+"?a=0.6.0&b=0.7.0", compare+"?b=1.2.0&q=render", compare+"?a=1.1.0&b=9.9.9")
	for _, query := range []string{
		"metric=ns%2Fop&q=-route", "metric=ns%2Fop&q=category%3Aprimary", "from=0.7.0&to=1.0.0&y=change&x=date&band=minmax", "y=geomean&line=all&split=target&scale=log", "open=compress&pin=0.6.0", "q=nothing", "from=1.0.0&to=0.7.0", "type=try",
	} {
		paths = append(paths, history+"?"+query)
	}
	return paths
}

// With scripts off, comparisons and histories say the same in all their orders, parts and
// kinds.
func TestLongResultsSayTheSameWithoutScripts(t *testing.T) {
	t.Parallel()
	paths := resultPaths(sharedGateway(t))
	b := sharedService(t).open(t)
	for _, path := range paths {
		b.saysTheSame(path)
	}
}

// Whoever has no scripts reads comparisons and histories as others do, by keyboard alone:
// each filter, order and part is a link or a form.
func TestLongStoriesOfResultsWithoutScripts(t *testing.T) {
	t.Parallel()
	s := scene{sharedService(t), keyboard}
	for name, tell := range map[string]func(*testing.T, scene, *tab){"compare": aComparisonIsRead, "history": aHistoryIsFollowed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := s.open(t)
			b.hand = keyboard
			b.scripts(false)
			tell(t, s, b)
		})
	}
}

// focus moves the focus, as Tab would.
func (b *tab) focus(selector string) {
	b.t.Helper()
	b.await("document.querySelector(" + quoted(selector) + ") !== null")
	require.True(b.t, ask[bool](b, "(e => (e.focus(), e === document.activeElement))(document.querySelector("+quoted(selector)+"))"), "%s takes no focus", selector)
}

// activate follows a link by its focus and the key Enter.
func (b *tab) activate(selector string) {
	b.t.Helper()
	b.focus(selector)
	b.mark()
	b.press("\r")
	b.awaitPage()
}

// fill writes into a field and sends its form by the key Enter.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.focus(selector)
	b.mark()
	b.press(text + "\r")
	b.awaitPage()
}

// saysTheSame compares a page with scripts and without. Something may happen between the two
// looks, so they are repeated until they are of one moment.
func (b *tab) saysTheSame(path string) {
	b.t.Helper()
	look := func(scripts bool) said {
		b.scripts(scripts)
		b.visit(path)
		return ask[said](b, saying)
	}
	for end := time.Now().Add(patience); ; {
		without, with := look(false), look(true)
		if reflect.DeepEqual(without, with) {
			require.NotEmpty(b.t, without.Text, path)
			require.Greater(b.t, len(without.Links), 6, path)
			return
		}
		if time.Now().After(end) {
			require.Equal(b.t, with, without, path)
		}
	}
}
