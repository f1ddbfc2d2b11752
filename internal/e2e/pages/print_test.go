package pages

import (
	"regexp"
	"strconv"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const (
	// paperWidth is the width of A4 without its margins, 180 mm, in pixels of 1/96 inch.
	paperWidth = 680
	// mostSheets bounds what a typical page takes.
	mostSheets = 6
)

var (
	sheets   = regexp.MustCompile(`/Type\s*/Page\b`)
	mediaBox = regexp.MustCompile(`/MediaBox\s*\[\s*0 0 ([0-9.]+) ([0-9.]+)\s*\]`)
)

// cut names what does not fit on paper: what sticks out to the right, and what would have to
// be scrolled.
const cut = `[...document.querySelectorAll('body *')].filter(e => e.checkVisibility({contentVisibilityAuto: true}) && !e.closest('svg') &&
	(e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)))
	.slice(0, 3).map(e => e.outerHTML.slice(0, 160))`

// printsOnA4 checks that nothing of a page is cut off on paper, that tables stay tables, and
// that what is good for screens only is left out.
func (b *tab) printsOnA4(path string) {
	b.t.Helper()
	b.appear(look{width: paperWidth, media: "print", features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	b.visit(path)
	require.Empty(b.t, ask[[]string](b, cut), "%s is cut off on paper", path)
	require.LessOrEqual(b.t, ask[int](b, "document.documentElement.scrollWidth"), paperWidth, path)
	require.Equal(b.t, "rgb(255, 255, 255)", ask[string](b, "getComputedStyle(document.body).backgroundColor"), "paper is light")
	require.Empty(b.t, ask[[]string](b, `[...document.querySelectorAll('nav, form, button, input')].filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 80))`),
		"%s prints what only a screen can use", path)
	require.True(b.t, ask[bool](b, `[...document.querySelectorAll('td')].every(e => getComputedStyle(e).display === 'table-cell')`), path)
	require.True(b.t, ask[bool](b, `[...document.querySelectorAll('article pre')].every(e => e.getBoundingClientRect().height > 0)`), "%s hides output", path)

	printed, err := chromedp.Call(b.ctx, page.PrintToPDF, page.PrintToPDFParams{PreferCSSPageSize: new(true)})
	require.NoError(b.t, err)
	n := len(sheets.FindAll(printed.Data, -1))
	require.Positive(b.t, n, path)
	require.LessOrEqual(b.t, n, mostSheets, path)
	for i, size := range []float64{210, 297} {
		box := mediaBox.FindSubmatch(printed.Data)
		require.NotNil(b.t, box, path)
		points, err := strconv.ParseFloat(string(box[i+1]), 64)
		require.NoError(b.t, err)
		require.InDelta(b.t, size, points/72*25.4, 1, "%s prints on A4", path)
	}
}
