package pages

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// The order of a project says why each request is where it is. What leaves it leaves the
// page.
func theOrderOfAProjectIsFollowed(t *testing.T, s scene, b *tab) {
	project := s.printing(t, "ordered")
	s.pause(t, project, "first the audit")
	release := "#q-" + string(s.release(t, project, "1.0.0"))
	try := "#q-" + string(s.try(t, project, 7))
	path := "/projects/" + project + "/queue"
	b.signIn(s.token)
	b.visit("/projects/" + project)
	b.follow(`main a[href="` + path + `"]`)
	require.Contains(t, b.text(".notice"), "first the audit")
	require.NotEmpty(t, b.text(release+` [data-label="Why here"]`))
	require.Contains(t, b.text(try+` [data-label="Waits for"]`), "artifacts")
	b.unfold("#act-resume-" + project)
	b.enter("#reason-resume-"+project, "it is over")
	b.follow("#act-resume-" + project + " button")
	b.mark()
	b.await(`document.querySelector("` + release + `") === null`)
	require.NotEmpty(t, b.text(try))
	b.stays()

	b.follow(`nav a[href="/queues"]`)
	require.NotEmpty(t, b.text("#p-"+project+" "+try))
	b.follow(`#shares th a[href*="sort=waiting"]`)
	require.Equal(t, "/queues?sort=waiting", b.where())
	require.Contains(t, b.text(`#shares [aria-sort="ascending"]`), "Waiting")
	b.follow(`#shares .filters a[href*="by=pool"]`)
	require.Equal(t, "/queues?by=pool&sort=waiting", b.where())
	require.Contains(t, b.text("#shares tbody"), "bench/")
	b.back()
	require.Equal(t, "/queues?sort=waiting", b.where())
	require.Contains(t, b.text("#shares tbody"), "project:"+project)
	b.follow("#p-" + project + " h2 a")
	require.Equal(t, "/projects/"+project, b.where())
}

// Operations are found by what they concern.
func whatWasDoneIsFound(t *testing.T, s scene, b *tab) {
	project := s.paused(t, "audited", "a flood")
	s.resume(t, project, "it is dry")
	b.visit("/")
	b.follow(`nav a[href="/audit"]`)
	b.search("#project", project)
	require.Equal(t, "/audit?project="+project+"&who=&subject=", b.where())
	rows := b.texts("tbody tr")
	at := func(words string) int {
		return slices.IndexFunc(rows, func(row string) bool { return strings.Contains(row, words) })
	}
	require.Equal(t, 0, at("queue resume"), rows)
	require.Equal(t, 1, at("queue pause"), "the newest first: %q", rows)
	require.Contains(t, rows[0], "it is dry")
	require.Contains(t, rows[1], "a flood")
	b.search("#subject", "something else")
	require.Contains(t, b.text(".empty"), "No operation is recorded that fits.")
	b.follow(".empty a")
	require.Equal(t, "/audit", b.where())
	b.back()
	b.back()
	require.Equal(t, "/audit?project="+project+"&who=&subject=", b.where())
	require.Len(t, b.texts("tbody tr"), len(rows))
}

// steps prints more lines than a page shows, and then one every quarter of a second, for
// five seconds: a run of a command of which nothing is known yet may take ten on the
// smallest class.
const steps = `seq 600; i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo "step $i"; sleep 0.25; done`

// A person follows a command that waits from its request to its job, its run and its log,
// which grows while it is looked at, up to its end: no page is loaded again.
func aRunIsFollowedWhileItRuns(t *testing.T, s scene, b *tab) {
	project := s.paused(t, "followed", "wait for me")
	id := s.commandIn(t, project, "sh", "-c", steps)
	b.visit("/requests/" + string(id))
	b.awaitText(".sentence", "none of its jobs runs")
	b.follow("#jobs tbody a")
	key := s.jobOf(t, id)
	require.Equal(t, "/jobs/"+string(key), b.where())
	require.Contains(t, b.text(".sentence"), "wait for me")
	b.mark()
	s.resume(t, project, "")
	b.await(`document.querySelector("#s-attempts tbody a") !== null`)
	b.stays()
	b.follow("#s-attempts tbody a")
	run := strings.TrimPrefix(b.where(), "/runs/")
	require.True(t, strings.HasPrefix(run, string(key)), run)
	b.mark()
	b.awaitText("#s-log", "step 3")
	b.stays()
	require.Empty(t, b.text("#L499"))
	b.follow(`#s-log a[rel="prev"]`)
	// Each line has an address, which stays while the log grows. The first line is the command.
	require.Equal(t, "498", b.text("#L499 code"))
	require.Equal(t, 1, ask[int](b, `document.querySelectorAll("#lines > li").length`)-ask[int](b, `document.querySelectorAll('#lines a[tabindex="-1"]').length`), "one line is a stop of Tab")
	b.search("#line", "499")
	require.Equal(t, "/runs/"+run+"?line=499#asked", ask[string](b, "location.pathname + location.search + location.hash"))
	require.Equal(t, "498", b.text(".asked code"))
	require.Equal(t, "/runs/"+run+"?line=499#L499", ask[string](b, `document.querySelector("#L499 > a").getAttribute("href")`))
	b.mark()
	ask[bool](b, `document.querySelector("#L499 > a").focus() || true`)
	outcome := s.outcome(t, bench.RunID(run))
	b.awaitText(".sentence", outcome)
	require.Equal(t, "L499", ask[string](b, "document.activeElement.parentElement?.id ?? 'nowhere'"), "the focus stays")
	b.stays()
	b.back()
	require.Equal(t, "/runs/"+run+"?line=500", b.where())
	b.back()
	require.Equal(t, "/runs/"+run, b.where())
	b.back()
	require.Equal(t, "/jobs/"+string(key), b.where())
	b.awaitText("#s-attempts", outcome)
}

// A person looks for collectors, sorts them, comes back by the button of the browser, and
// keeps one from further jobs for a while.
func collectorsAreSortedAndDrained(t *testing.T, s scene, b *tab) {
	name := map[hand]string{mouse: "local-1", keyboard: "local-2"}[s.hand] // so that one is left for others
	t.Cleanup(func() {
		_, err := s.API.ActivateCollector(context.WithoutCancel(t.Context()), name, "the story is over")
		require.NoError(t, err)
	})
	b.visit("/collectors")
	b.await(`document.querySelectorAll('tbody tr').length === 3`)
	require.Contains(t, b.text("h2"), "size class 1")
	first := func() string { return b.text("tbody tr td:first-child") }
	b.follow(`th a[href="/collectors?sort=-name"]`)
	require.Equal(t, "/collectors?sort=-name", b.where())
	require.Contains(t, b.text(`[aria-sort="descending"]`), "Collector")
	require.Equal(t, "local-2", first())
	b.follow(`.filters a[href*="only=offline"]`)
	require.Equal(t, "/collectors?only=offline&sort=-name", b.where())
	require.Contains(t, b.text(".empty"), "No collector is like this")
	b.back()
	require.Equal(t, "/collectors?sort=-name", b.where())
	require.Equal(t, "local-2", first())

	b.signIn(s.token)
	b.follow(`nav a[href="/collectors"]`)
	b.search("#q", name)
	require.Equal(t, "/collectors?q="+name, b.where())
	b.follow("#c-" + name + " a")
	path := "/collectors/" + name
	require.Equal(t, path, b.where())
	require.Contains(t, b.text("#s-use"), "of the time with a run under way")
	b.follow(`#s-runs .filters a[href*="only=oom"]`)
	require.Equal(t, path+"?only=oom", b.where())
	require.Contains(t, b.text("#s-runs .empty"), "No run has ended like this.")
	b.back()
	require.Equal(t, path, b.where())
	reason := "dust in " + s.name("fan")
	b.unfold("#act-drain")
	b.enter("#reason-drain", reason)
	b.follow("#act-drain button")
	require.Equal(t, path, b.where())
	b.mark()
	b.awaitText(".sentence", "inactive") // as soon as its job has ended
	b.stays()
	b.unfold("#act-activate")
	b.enter("#reason-activate", "it is clean")
	b.follow("#act-activate button")
	b.mark()
	_, err := s.API.DrainCollector(t.Context(), name, "by somebody else")
	require.NoError(t, err)
	b.awaitText(".sentence", "inactive")
	_, err = s.API.ActivateCollector(t.Context(), name, "by somebody else")
	require.NoError(t, err)
	b.await(`document.querySelector("#act-drain") !== null`)
	b.stays()
	b.follow(`main a[href^="/audit?subject="]`)
	require.Contains(t, b.text("tbody"), reason)
	require.Contains(t, b.text("tbody"), "it is clean")
}

// A person finds what was learned of a command's size.
func aLearnedSizeIsFound(t *testing.T, s scene, b *tab) {
	words := "learned by " + string(s.hand)
	r := s.command(t, "sh", "-c", "echo "+words)
	key := s.jobOf(t, r.ID)
	require.Equal(t, bench.Success, s.ended(t, r.ID))
	require.Eventually(t, func() bool { // a moment after the end
		learned, err := s.API.Shapes(t.Context(), "")
		require.NoError(t, err)
		return slices.ContainsFunc(learned.Shapes, func(l apiclient.Shape) bool { return strings.Contains(l.About, words) })
	}, patience, lookEvery)

	b.visit("/")
	b.follow(`nav a[href="/sizeclasses"]`)
	require.Equal(t, "/sizeclasses", b.where())
	b.search("#q", words)
	found := "/sizeclasses?q=" + strings.ReplaceAll(words, " ", "+")
	require.Equal(t, found, b.where())
	require.Len(t, b.texts("tbody tr"), 1)
	b.follow(`th a[href*="sort=runs"]`)
	require.Equal(t, found+"&sort=runs", b.where())
	require.Contains(t, b.text(`[aria-sort="ascending"]`), "Runs")
	b.follow(`.filters a[href*="only=adhoc"]`)
	require.Len(t, b.texts("tbody tr"), 1)
	b.back()
	require.Equal(t, found+"&sort=runs", b.where())
	b.follow("tbody a")
	require.Contains(t, b.text("main"), "succeeded")
	require.Contains(t, b.text("main"), "good enough")
	b.follow("tbody td a")
	require.Equal(t, "/jobs/"+string(key), b.where())
}

// Words are found on the page of help.
func wordsAreFound(t *testing.T, _ scene, b *tab) {
	b.visit("/")
	b.follow(`nav a[href="/help"]`)
	all := b.texts("dl.words dt")
	b.search("#q", "escalation")
	require.Equal(t, "/help?q=escalation", b.where())
	found := b.texts("dl.words dt")
	require.Contains(t, found, "Escalation")
	require.Less(t, len(found), len(all))
	b.back()
	require.Equal(t, all, b.texts("dl.words dt"))
	b.follow(`#s-keys a[href="/queues"]`)
	require.Equal(t, "/queues", b.where())
}
