package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// tab is a tab of a browser with a page of the service.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string // of the service
	// hand works the pages.
	hand hand
	// scriptless is set while the scripts of pages are off.
	scriptless bool
	// marks counts the marks that were set; see mark.
	marks int
}

// open opens a tab for the pages of a service. It shares no cookies with others.
func (s service) open(t *testing.T) *tab {
	t.Helper()
	return &tab{t: t, ctx: sharedBrowser(t).Tab(t), url: s.url, hand: mouse}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// visit opens a page by its path.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
}

// where returns the path and query of the page.
func (b *tab) where() string {
	b.t.Helper()
	at, err := chromedp.Run(b.ctx, chromedp.Location())
	require.NoError(b.t, err)
	parsed, err := url.Parse(at)
	require.NoError(b.t, err)
	return parsed.RequestURI()
}

// ask returns the value of an expression of JavaScript, as the console would.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

// laidOut wraps an expression of JavaScript that reads texts of a page: all of the page is laid
// out meanwhile, as for somebody who scrolls through it. What is far from the screen has no
// text otherwise.
func laidOut(expression string) string {
	return `(() => {
	const all = new CSSStyleSheet();
	all.replaceSync('* { content-visibility: visible !important }');
	document.adoptedStyleSheets.push(all);
	try {
		return ` + expression + `;
	} finally {
		document.adoptedStyleSheets = document.adoptedStyleSheets.filter(sheet => sheet !== all);
	}
})()`
}

// quoted writes a text as JavaScript.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text is always JSON
	}
	return string(out)
}

// text returns the visible text of what a selector matches first; empty: nothing is there.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return ask[string](b, laidOut("(document.querySelector("+quoted(selector)+")?.innerText ?? '').replace(/\\s+/g, ' ').trim()"))
}

// texts returns the visible texts of all that a selector matches.
func (b *tab) texts(selector string) []string {
	b.t.Helper()
	return ask[[]string](b, laidOut("[...document.querySelectorAll("+quoted(selector)+")].map(e => e.innerText.replace(/\\s+/g, ' ').trim())"))
}

// patience bounds the time in which a page has to show something.
const patience = 5 * time.Minute

// await waits until an expression of JavaScript is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && is {
			return
		}
		if time.Now().After(end) {
			require.NoError(b.t, err)
			require.Fail(b.t, "the page does not get there", "%s on %s, which says: %s", expression, b.where(), b.text("main"))
		}
		select {
		case <-b.ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// awaitText waits until what a selector matches first contains a text.
func (b *tab) awaitText(selector, text string) {
	b.t.Helper()
	b.await(laidOut("(document.querySelector(" + quoted(selector) + ")?.innerText ?? '').includes(" + quoted(text) + ")"))
}

// mark marks the page, so that it is known when another one is there.
func (b *tab) mark() {
	b.t.Helper()
	b.marks++
	ask[int](b, fmt.Sprintf("window.former = %d", b.marks))
}

// awaitPage waits until another page than the marked one is there; see mark.
func (b *tab) awaitPage() {
	b.t.Helper()
	b.await(fmt.Sprintf("window.former !== %d && document.readyState === 'complete'", b.marks))
}

// stays requires that no other page was loaded since the mark.
func (b *tab) stays() {
	b.t.Helper()
	require.Equal(b.t, b.marks, ask[int](b, "window.former ?? 0"), "another page was loaded")
}

// back goes back as the button of the browser does, which no test can press.
func (b *tab) back() {
	b.t.Helper()
	b.mark()
	_, _ = chromedp.Run(b.ctx, chromedp.Evaluate[bool]("history.back() || true")) // the answer may go with the page
	b.awaitPage()
}

// signIn gives the service a token.
func (b *tab) signIn(token string) {
	b.t.Helper()
	b.visit("/sign-in")
	b.enter("#token", token)
	b.follow("main form button")
}

// look describes a way in which a browser shows pages.
type look struct {
	name     string
	width    int64
	features []*emulation.MediaFeature
	media    string // screen unless it says print
}

// looks are those in which every page must be readable.
func looks() []look {
	var out []look
	for _, width := range []int64{1280, 390} {
		for name, features := range map[string][]*emulation.MediaFeature{
			"light":         {{Name: "prefers-color-scheme", Value: "light"}},
			"dark":          {{Name: "prefers-color-scheme", Value: "dark"}},
			"forced colors": {{Name: "forced-colors", Value: "active"}},
		} {
			wide := "wide"
			if width < 1000 {
				wide = "narrow"
			}
			out = append(out, look{name: strings.ReplaceAll(name+" "+wide, " ", "-"), width: width, features: features})
		}
	}
	return out
}

// appear shows pages in a look from now on.
func (b *tab) appear(l look) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(l.width, 900))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: l.media, Features: l.features})
	require.NoError(b.t, err)
}
