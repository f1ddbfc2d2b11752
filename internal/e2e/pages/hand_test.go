package pages

import (
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// hand is a device to work pages with. Stories are told once, for both.
type hand string

const (
	mouse    hand = "mouse"
	keyboard hand = "keyboard"
)

// follow chooses what a selector matches first, a link or a button, and waits for the page
// to which it leads.
func (b *tab) follow(selector string) {
	b.t.Helper()
	if b.hand == keyboard {
		b.choose(selector)
		return
	}
	b.awaitShown(selector)
	b.mark()
	b.click(selector)
	b.awaitPage()
}

// unfold opens a folded part of the page.
func (b *tab) unfold(selector string) {
	b.t.Helper()
	summary := selector + " > summary"
	if b.hand == keyboard {
		b.reach(summary)
		b.press(" ")
	} else {
		b.click(summary)
	}
	b.await("document.querySelector(" + quoted(selector) + ").open")
}

// enter writes a text into a field, which is empty if it is done by mouse.
func (b *tab) enter(selector, text string) {
	b.t.Helper()
	if b.hand == keyboard {
		b.reach(selector)
	} else {
		b.click(selector)
	}
	b.press(text)
	b.await("document.querySelector(" + quoted(selector) + ").value === " + quoted(text))
}

// tick ticks a check box.
func (b *tab) tick(selector string) {
	b.t.Helper()
	if b.hand == keyboard {
		b.reach(selector)
		b.press(" ")
	} else {
		b.click(selector)
	}
	b.await("document.querySelector(" + quoted(selector) + ").checked")
}

// search writes what is looked for into a field and sends its form.
func (b *tab) search(selector, text string) {
	b.t.Helper()
	b.enter(selector, text)
	if b.hand != keyboard {
		b.follow("form:has(" + selector + ") button")
		return
	}
	b.mark()
	b.press(kb.Enter)
	b.awaitPage()
}

// awaitShown waits until what a selector matches first has a place on the page.
func (b *tab) awaitShown(selector string) {
	b.t.Helper()
	b.await("document.querySelector(" + quoted(selector) + ")?.getClientRects().length > 0")
}

// aim is a function that returns where the mouse has to be to click what a selector matches
// first. A page that is up to date may move below the mouse: a click that hits something
// else does nothing.
const aim = `(selector => {
	const wanted = () => document.querySelector(selector);
	wanted().scrollIntoView({block: 'center', behavior: 'instant'});
	window.hit = false;
	addEventListener('click', click => {
		window.hit = wanted()?.contains(click.target) ?? false;
		if (window.hit) return;
		click.preventDefault();
		click.stopPropagation();
	}, {capture: true, once: true});
	const place = wanted().getClientRects()[0];
	return [place.x + place.width / 2, place.y + place.height / 2];
})`

// clicks bounds the attempts at a click.
const clicks = 20

// click clicks what a selector matches first.
func (b *tab) click(selector string) {
	b.t.Helper()
	for range clicks {
		b.awaitShown(selector)
		at := ask[[]float64](b, aim+"("+quoted(selector)+")")
		b.do(chromedp.MouseClickXY(at[0], at[1]))
		hit, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("window.hit !== false"))
		if err != nil || hit { // an error: there is another page already
			return
		}
	}
	require.Fail(b.t, "the mouse does not hit "+selector, "on %s, which says: %s", b.where(), b.text("main"))
}

// press presses keys.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// stop describes the position of the focus.
type stop struct {
	// There is set when it is where it is wanted, Before when that is nearer to the
	// beginning of the page.
	There, Before bool
	// Seen is set when people see where the focus is, or it is nowhere.
	Seen bool
	// What has the focus, as HTML.
	What string
}

// lookForFocus is a function that returns the stop of the focus on the way to what a selector
// matches first.
const lookForFocus = `(selector => {
	const wanted = document.querySelector(selector), active = document.activeElement;
	const at = active === document.body || active === document.documentElement ? null : active;
	const style = at && getComputedStyle(at);
	return {
		There: wanted !== null && at === wanted,
		Before: wanted !== null && at !== null && (at.compareDocumentPosition(wanted) & Node.DOCUMENT_POSITION_PRECEDING) !== 0,
		Seen: at === null || style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 && at.getClientRects().length > 0,
		What: at ? at.outerHTML.slice(0, 200) : 'nothing',
	};
})`

// furthest bounds how often Tab is pressed to reach something.
const furthest = 300

// reach presses Tab, or Shift and Tab, until what a selector matches first has the focus,
// and checks at each stop that one sees where it is.
func (b *tab) reach(selector string) {
	b.t.Helper()
	b.await("document.querySelector(" + quoted(selector) + ") !== null")
	at := ask[stop](b, lookForFocus+"("+quoted(selector)+")")
	for range furthest {
		if at.There {
			return
		}
		if at.Before {
			b.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
		} else {
			b.press(kb.Tab)
		}
		at = ask[stop](b, lookForFocus+"("+quoted(selector)+")")
		require.True(b.t, at.Seen, "on %s the focus is not seen on %s", b.where(), at.What)
	}
	require.Fail(b.t, "the keyboard does not reach "+selector, "on %s the last was %s", b.where(), at.What)
}

// choose reaches a link or a button, presses Enter and waits for the page.
func (b *tab) choose(selector string) {
	b.t.Helper()
	b.reach(selector)
	b.mark()
	b.press(kb.Enter)
	b.awaitPage()
}
