package pages

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// busy uses a CPU for half a minute, in which samples arrive three times, and marks a part of it.
const busy = `end=$(($(date +%s) + 120)); echo "begin warming $(date +%s.%N)" >>"$TMPDIR/benchloom-phases"; sleep 1
echo "end warming $(date +%s.%N)" >>"$TMPDIR/benchloom-phases"; while [ "$(date +%s)" -lt $end ]; do seq 20000 | tail -n 1; sleep 0.1; done`

// until is the last second that the page of a run shows.
const until = `parseFloat(document.querySelector('#s-profile')?.innerText.match(/From second [\d.]+ to ([\d.]+) of the run/)?.[1] ?? '0')`

// A person looks at a run in the dark, on a phone, while it goes on: samples arrive without a reload, what was zoomed and narrowed stays so,
// and the page says when everything has arrived. Loaded again, it says the same.
func TestLongSamplesOfARunAreSeenWhileItGoesOn(t *testing.T) {
	t.Parallel()
	checker := axe(t)
	s := ownService(t)
	key := s.jobOf(t, s.small(t, "sh", "-c", busy).ID)
	var run bench.RunID
	require.Eventually(t, func() bool {
		j, err := s.API.Job(t.Context(), key)
		require.NoError(t, err)
		if len(j.Runs) > 0 {
			run = j.Runs[0].ID
		}
		return run != ""
	}, patience, 100*time.Millisecond)
	at := "/runs/" + string(run) + "?metric=cpu_used"

	b := s.open(t)
	b.appear(look{width: 390, features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	sound := func() {
		t.Helper()
		for _, f := range b.findings(checker) {
			t.Errorf("%s: %s", b.where(), f)
		}
		require.LessOrEqual(t, ask[int](b, "document.documentElement.scrollWidth"), 390, "%s", ask[string](b, widest))
	}
	faults := b.faults()
	b.visit(at)
	b.mark()
	b.awaitText("#s-profile", "what has arrived so far")
	b.await(`document.querySelectorAll('figure[id^="profile-"]').length === 2`) // the phases and one metric
	sound()
	arrived := ask[float64](b, until)
	require.Positive(t, arrived)
	b.await(fmt.Sprintf("%s > %g", until, arrived+5))
	b.stays()
	require.Equal(t, at, b.where())

	// A part of the time stays what it is, whatever arrives.
	b.follow(`nav[aria-label="Parts of the run"] li:first-child a`)
	part := b.where()
	require.Contains(t, part, "to=")
	require.Contains(t, part, "metric=cpu_used")
	b.mark()
	line, shown := b.text("#profile-0 .legend"), ask[float64](b, until)
	b.await("document.querySelector('main[data-ended]') !== null")
	b.stays()
	require.Equal(t, part, b.where())
	require.Equal(t, shown, ask[float64](b, until))
	require.Equal(t, line, b.text("#profile-0 .legend"))
	ended := b.text("#s-profile")
	for _, words := range []string{"all of it has arrived", "Of the whole run", "measuring/warming"} {
		require.Contains(t, ended, words)
	}
	require.NotContains(t, ended, "so far")
	require.Empty(t, b.text("#stale:not([hidden])"), "an end is no break")
	sound()

	// Loaded again, and as a whole.
	b.visit(part)
	require.Equal(t, ended, b.text("#s-profile"))
	require.Equal(t, 1, ask[int](b, "document.querySelectorAll('main[data-ended]').length"))
	b.visit(strings.TrimSuffix(at, "?metric=cpu_used"))
	require.Greater(t, ask[float64](b, until), 25.0)
	sound()
	require.Empty(t, faults(), "on the console")
}

// faults returns what lists the errors that the browser's console has had since.
func (b *tab) faults() func() []string {
	b.t.Helper()
	var mu sync.Mutex
	var list []string
	require.NoError(b.t, chromedp.Listen(b.ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			list = append(list, fmt.Sprintf("%+v", e.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError {
				list = append(list, fmt.Sprintf("%+v", e.Args))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				list = append(list, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	}))
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}
