package pages

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// command submits a command line and returns its request.
func (s service) command(t *testing.T, argv ...string) apiclient.Request {
	t.Helper()
	r, err := s.API.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: argv}})
	require.NoError(t, err)
	return r
}

// small submits a command for the collectors of class 1.
func (s service) small(t *testing.T, argv ...string) apiclient.Request {
	t.Helper()
	r, err := s.API.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: argv}, PlacementWish: apiclient.PlacementWish{SizeClass: 1}})
	require.NoError(t, err)
	return r
}

// jobOf is the only job of a request, as soon as it is there.
func (s service) jobOf(t *testing.T, id bench.RequestID) bench.JobKey {
	t.Helper()
	detail, err := s.API.Request(t.Context(), string(id))
	require.NoError(t, err)
	require.Len(t, detail.Jobs, 1)
	return detail.Jobs[0].Key
}

// steps prints a line every quarter of a second, for ten seconds.
const steps = `i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo "step $i"; sleep 0.25; done`

// A person follows a command from its request to its job, its run and its log, which grows
// while it is looked at, without a reload.
func TestARunIsFollowedWhileItRuns(t *testing.T) {
	t.Parallel()
	s := sharedService(t)
	b := s.open(t)
	r := s.command(t, "sh", "-c", steps)
	key := s.jobOf(t, r.ID)

	b.visit("/jobs/" + string(key))
	b.mark()
	b.awaitText("#s-attempts", "running")
	require.True(t, ask[bool](b, "window.former === true"), "no other page was loaded")
	require.Contains(t, b.text(".sentence"), "is under way on collector local-")
	b.follow("#s-attempts tbody a")
	require.True(t, strings.HasPrefix(b.where(), "/runs/"+string(key)))
	b.mark()
	b.awaitText("#s-log", "step 3")
	require.Equal(t, "step 1", b.text("#L2 code"), "after the line with the command")
	// Each line has an address, which stays while the log grows.
	b.follow("#L2 > a")
	require.Equal(t, "/runs/"+string(key)+"?line=2#L2", ask[string](b, "location.pathname.replace(/-.*/, '') + location.search + location.hash"))
	b.back()
	b.awaitText("h1", "Run 1")
	b.back()
	require.Equal(t, "/jobs/"+string(key), b.where())
}

// A person looks for collectors, sorts them, and comes back by the button of the browser.
func TestCollectorsAreSortedAndFound(t *testing.T) {
	t.Parallel()
	s := sharedService(t)
	b := s.open(t)
	b.visit("/collectors")
	b.await(`document.querySelectorAll('tbody tr').length === 3`)
	require.Contains(t, b.text("h2"), "size class 1")
	b.follow(`th a[href="/collectors?sort=-name"]`)
	require.Equal(t, "/collectors?sort=-name", b.where())
	require.Equal(t, "descending", ask[string](b, "document.querySelector('th').ariaSort ?? document.querySelector('th').getAttribute('aria-sort')"))
	require.Contains(t, b.texts("tbody tr td:first-child")[0], "local-2")
	b.follow(`.filters a[href*="only=offline"]`)
	require.Equal(t, "/collectors?only=offline&sort=-name", b.where())
	require.Contains(t, b.text(".empty"), "No collector is like this")
	b.back()
	require.Equal(t, "/collectors?sort=-name", b.where())
	require.Contains(t, b.texts("tbody tr td:first-child")[0], "local-2")
	b.follow(`#c-local-1 a`)
	require.Equal(t, "/collectors/local-1", b.where())
	require.Contains(t, b.text("#s-use"), "of the time with a run under way")
}

// A person finds what was learned of a command's size, by the keyboard alone.
func TestALearnedSizeIsFoundByKeyboard(t *testing.T) {
	t.Parallel()
	s := sharedService(t)
	b := s.open(t)
	r := s.command(t, "sh", "-c", "echo learned")
	b.visit("/requests/" + string(r.ID))
	key := s.jobOf(t, r.ID)
	b.visit("/jobs/" + string(key))
	b.awaitText(".sentence", "success")
	require.Eventually(t, func() bool { // a moment after the end
		learned, err := s.API.Shapes(t.Context(), "")
		require.NoError(t, err)
		return slices.ContainsFunc(learned.Shapes, func(l apiclient.Shape) bool { return strings.Contains(l.About, "echo learned") })
	}, patience, 100*time.Millisecond)

	b.visit("/")
	b.press("\t")
	require.Equal(t, "Skip to the content", ask[string](b, "document.activeElement.textContent"))
	b.choose(`nav a[href="/sizeclasses"]`)
	require.Equal(t, "/sizeclasses", b.where())
	b.reach("#q")
	b.mark()
	b.press("echo learned\r")
	b.awaitPage()
	require.Equal(t, "/sizeclasses?q=echo+learned", b.where())
	b.await(`document.querySelectorAll('tbody tr').length === 1`)
	b.choose("tbody a")
	b.awaitText("main", "succeeded")
	require.Contains(t, b.text("main"), "good enough")
	b.choose("tbody td a")
	require.Equal(t, "/jobs/"+string(key), b.where())
}

// Words are found on the page of help.
func TestWordsAreFound(t *testing.T) {
	t.Parallel()
	b := sharedService(t).open(t)
	b.visit("/help")
	b.reach("#q")
	b.mark()
	b.press("escalation\r")
	b.awaitPage()
	require.Equal(t, "/help?q=escalation", b.where())
	require.Contains(t, b.texts("dl.words dt"), "Escalation")
}
