package pages

import (
	"fmt"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// placeOf is a function that returns where on the screen a chart has an artifact, by its
// number.
const placeOf = `((selector, at) => {
	const figure = document.querySelector(selector), svg = figure.querySelector('svg.chart');
	svg.scrollIntoView({block: 'center', behavior: 'instant'});
	const [left, right, from, to] = figure.dataset.plot.split(' ').map(Number);
	const place = new DOMPoint(left + (at - from) / (to - from) * (right - left), svg.viewBox.baseVal.height / 2).matrixTransform(svg.getScreenCTM());
	return [place.x, place.y];
})`

// place returns where on the screen a chart has an artifact.
func (b *tab) place(figure string, at int) (x, y float64) {
	b.t.Helper()
	place := ask[[]float64](b, fmt.Sprintf("%s(%s, %d)", placeOf, quoted(figure), at))
	require.Len(b.t, place, 2)
	return place[0], place[1]
}

// move does something with the mouse at a place, with its button held or not, and with keys
// that are held.
func (b *tab) move(what input.DispatchMouseEventType, x, y float64, held bool, keys ...chromedp.Modifier) {
	b.t.Helper()
	b.do(chromedp.MouseEvent(what, x, y, func(event *input.DispatchMouseEventParams) {
		for _, key := range keys {
			event.Modifiers |= int64(key)
		}
		if what != chromedp.MouseMoved {
			event.Button, event.ClickCount = input.MouseButtonLeft, 1
		}
		if held {
			event.Button, event.Buttons = input.MouseButtonLeft, 1
		}
	}))
}

// point points at an artifact of a chart, by its number.
func (b *tab) point(figure string, at int) {
	b.t.Helper()
	if b.hand == mouse {
		x, y := b.place(figure, at)
		b.move(chromedp.MouseMoved, x, y, false)
		return
	}
	b.reach(figure + " svg.chart")
	b.press(kb.Home)
	for range at {
		b.press(kb.ArrowRight)
	}
	b.await("document.querySelector(" + quoted(figure+" .tip") + ")?.hidden === false")
}

// choosePoint chooses an artifact of a chart, and waits for the page to which it leads.
func (b *tab) choosePoint(figure string, at int) {
	b.t.Helper()
	b.act(figure, at, kb.Enter)
}

// pin pins an artifact of a chart, or releases it, and waits for the page to which that leads.
func (b *tab) pin(figure string, at int) {
	b.t.Helper()
	b.act(figure, at, "p", chromedp.ModifierShift)
}

// act clicks an artifact of a chart with keys that are held, or presses a key there, and
// waits for the page.
func (b *tab) act(figure string, at int, key string, held ...chromedp.Modifier) {
	b.t.Helper()
	b.point(figure, at)
	b.mark()
	if b.hand == mouse {
		x, y := b.place(figure, at)
		b.move(chromedp.MousePressed, x, y, true, held...)
		b.move(chromedp.MouseReleased, x, y, false, held...)
	} else {
		b.press(key)
	}
	b.awaitPage()
}

// zoom marks the part of a chart from one artifact to a later one, by dragging or by keys,
// and waits for the page to which that leads.
func (b *tab) zoom(figure string, from, to int) {
	b.t.Helper()
	b.point(figure, from)
	if b.hand == mouse {
		x, y := b.place(figure, from)
		b.move(chromedp.MousePressed, x, y, true)
		x, y = b.place(figure, to)
		b.move(chromedp.MouseMoved, x, y, true)
	} else {
		for range to - from {
			b.do(chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(chromedp.ModifierShift)))
		}
	}
	b.awaitText(figure+" .tip", fmt.Sprintf("%d artifacts are marked", to-from+1))
	b.mark()
	if b.hand == mouse {
		x, y := b.place(figure, to)
		b.move(chromedp.MouseReleased, x, y, false)
	} else {
		b.press(kb.Enter)
	}
	b.awaitPage()
}

// touch puts a finger on an artifact of a chart, moves it to another one, and lifts it.
func (b *tab) touch(figure string, from, to int) {
	b.t.Helper()
	do := func(what input.DispatchTouchEventType, points ...*input.TouchPoint) {
		_, err := chromedp.Call(b.ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: what, TouchPoints: append([]*input.TouchPoint{}, points...)})
		require.NoError(b.t, err)
	}
	x, y := b.place(figure, from)
	do(input.DispatchTouchEventTypeTouchStart, &input.TouchPoint{X: x, Y: y})
	if to != from {
		x, y = b.place(figure, to)
		do(input.DispatchTouchEventTypeTouchMove, &input.TouchPoint{X: x, Y: y})
	}
	do(input.DispatchTouchEventTypeTouchEnd)
}

// A finger reads points by touching and moving. It leads nowhere by that alone: what a mouse
// does at once is offered to it.
func TestLongAFingerReadsAChart(t *testing.T) {
	t.Parallel()
	project := sharedGateway(t)
	b := scene{sharedService(t), mouse}.open(t)
	b.hand = mouse
	b.visit("/projects/" + project + "/history?metric=allocs%2Fop")
	const chart = `figure:has(a[aria-label="Values of compress"])`
	b.mark()
	b.touch(chart, 4, 4)
	b.awaitText(chart+" .tip", "Compare")
	require.Contains(t, b.text(chart+" .tip"), "0.9.0")
	require.NotContains(t, b.text(chart+" .tip"), "Show only")
	b.touch(chart, 2, 5)
	b.awaitText(chart+" .tip", "Show only these 4 artifacts")
	b.stays()
	b.follow(chart + ` .tip a[href*="from="]`)
	require.Equal(t, []string{"0.7.0", "1.0.0"}, []string{b.parameter("from"), b.parameter("to")})

	// The touched point can be pinned as well.
	b.touch(chart, 1, 1)
	b.awaitText(chart+" .tip", "Pin")
	b.follow(chart + ` .tip a[href*="pin="]`)
	require.Equal(t, "0.8.0", b.parameter("pin"))
	require.Contains(t, b.text("main"), "compared with 0.8.0, which is pinned")
}

// clipboard is held by who uses it: all tabs of a browser have the same.
var clipboard sync.Mutex

// copied copies all of a field, and returns what is pasted elsewhere then.
func (b *tab) copied(selector string) string {
	b.t.Helper()
	clipboard.Lock()
	defer clipboard.Unlock()
	if b.hand == keyboard {
		b.reach(selector)
	} else {
		b.click(selector)
	}
	b.edit("selectAll", "a")
	b.edit("copy", "c")
	ask[bool](b, `document.body.append(Object.assign(document.createElement('textarea'), {id: 'pasted'})), document.getElementById('pasted').focus() || true`)
	b.edit("paste", "v")
	return ask[string](b, `document.getElementById('pasted').value`)
}

// edit presses a key with Ctrl, which edits what has the focus.
func (b *tab) edit(command, key string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(key, chromedp.KeyModifiers(chromedp.ModifierCtrl), func(event *input.DispatchKeyEventParams) {
		if event.Type != kb.KeyUp {
			event.Commands = []string{command}
		}
	}))
}
