package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/benchloom/benchloom/internal/e2e/browser"
)

// Where the time until charts are painted begins.
const (
	fromNavigation = "navigation"
	fromResponse   = "response" // the last byte of the page
)

// chartsShown is the number of charts of a page.
const chartsShown = 24

// paintedScript notes when the first frame with the whole page is done: a task that is
// posted before a frame is painted runs after it.
const paintedScript = `addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => {
	const after = new MessageChannel()
	after.port1.onmessage = () => { window.paintedAt = performance.now() }
	after.port2.postMessage(null)
}))`

// painted holds a browser's times of a page, in milliseconds since the navigation began.
type painted struct {
	At       float64 `json:"at"` // 0: not yet
	Received float64 `json:"received"`
	Charts   int     `json:"charts"`
}

const askPainted = `({at: window.paintedAt ?? 0, received: performance.getEntriesByType("navigation")[0].responseEnd, charts: document.querySelectorAll(".charts > figure").length})`

// paint measures how soon a browser has painted whole histories.
func (r *resultPages) paint(ctx context.Context, pages int) (err error) {
	chromium, err := browser.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, chromium.Stop()) }()
	tab, leave, err := chromium.Window()
	if err != nil {
		return err
	}
	defer leave()
	if _, err := chromedp.Call(tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: paintedScript}); err != nil {
		return fmt.Errorf("watching a browser: %w", err)
	}
	took := map[string][]time.Duration{}
	for n := range pages + 1 {
		path := pathOf(r.year, ofWhole, stateWarm, paintTurn, n)
		found, err := r.paintOne(ctx, tab, path)
		if err != nil {
			return err
		}
		if n == 0 {
			continue // the browser has just started
		}
		navigation, response := milliseconds(found.At), milliseconds(found.At-found.Received)
		if found.Charts != min(chartsShown, r.year.Benchmarks-1) {
			r.progress("page %s has %d charts", path, found.Charts)
			navigation, response = forEver, forEver
		}
		took[fromNavigation], took[fromResponse] = append(took[fromNavigation], navigation), append(took[fromResponse], response)
	}
	for _, from := range []string{fromNavigation, fromResponse} {
		r.progress("%d charts are painted %s (p50), %s (at most) from %s", chartsShown, percentile(took[from], 50).Round(time.Millisecond), percentile(took[from], 100).Round(time.Millisecond), from)
		if err := r.report.addDurations(paintName(from), took[from]); err != nil {
			return err
		}
	}
	return nil
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func (r *resultPages) paintOne(ctx context.Context, tab context.Context, path string) (painted, error) {
	if err := chromedp.Do(tab, chromedp.Navigate(r.address+path)); err != nil {
		return painted{}, fmt.Errorf("opening page %s: %w", path, err)
	}
	for {
		found, err := chromedp.Run(tab, chromedp.Evaluate[painted](askPainted))
		if err != nil {
			return painted{}, fmt.Errorf("watching page %s: %w", path, err)
		}
		if found.At > 0 {
			return found, nil
		}
		if err := sleep(ctx, lookSoon); err != nil {
			return painted{}, fmt.Errorf("waiting for page %s: %w", path, err)
		}
	}
}
