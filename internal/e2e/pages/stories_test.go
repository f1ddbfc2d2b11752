package pages

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// story tells how a person uses a page. It is told once, and must pass by mouse and by
// keyboard alone.
type story struct {
	page string
	tell func(t *testing.T, s scene, b *tab)
	// short ones are told by keyboard in each 'make test'.
	short bool
}

// stories has one for each page.
func stories() []story {
	return []story{
		{"overview", whatIsWrongIsSeenAtOnce, false},
		{"sign-in", aTokenSaysWhatMayBeDone, true},
		{"project", requestsOfAProjectAreFound, false},
		{"request", failuresComeFirst, false},
		{"graph", aGraphIsRead, false},
		{"again", aRequestIsMeasuredAgain, false},
		{"retrigger", aPortionIsRetriggered, false},
		{"sign-off", aGraphAsksAPerson, false},
		{"cancel", aRequestIsCancelledWithAReason, false},
		{"compare", aComparisonIsRead, false},
		{"compare again", aComparisonFollowsNewResults, false},
		{"history", aHistoryIsFollowed, false},
		{"queues", theOrderOfAProjectIsFollowed, false},
		{"audit", whatWasDoneIsFound, false},
		{"job and run", aRunIsFollowedWhileItRuns, false},
		{"collectors", collectorsAreSortedAndDrained, false},
		{"size classes", aLearnedSizeIsFound, false},
		{"help", wordsAreFound, true},
	}
}

// told tells stories.
func told(t *testing.T, by hand, wanted func(story) bool) {
	t.Helper()
	s := scene{sharedService(t), by}
	for _, one := range stories() {
		if !wanted(one) {
			continue
		}
		t.Run(one.page, func(t *testing.T) {
			t.Parallel()
			b := s.open(t)
			b.hand = by
			one.tell(t, s, b)
		})
	}
}

func TestStoriesByMouse(t *testing.T) {
	t.Parallel()
	told(t, mouse, func(story) bool { return true })
}

func TestShortStoriesByKeyboard(t *testing.T) {
	t.Parallel()
	told(t, keyboard, func(s story) bool { return s.short })
}

// Every story passes by keyboard alone, and one sees at each stop where the focus is.
func TestLongStoriesByKeyboard(t *testing.T) {
	t.Parallel()
	told(t, keyboard, func(s story) bool { return !s.short })
}

// A paused project and what waits in it are on the overview as soon as they are there; the
// way from there leads to the remedy.
func whatIsWrongIsSeenAtOnce(t *testing.T, s scene, b *tab) {
	b.signIn(s.token)
	require.Equal(t, "/", b.where())
	b.mark()
	reason := "new disks for " + s.name("overview")
	project := s.paused(t, "broken", reason)
	waiting := string(s.commandIn(t, project, "true"))
	b.awaitText("#s-attention", reason)
	b.awaitText("#r-"+waiting, "in progress")
	b.stays()

	path := "/projects/" + project + "/queue"
	remedy := `#s-attention a[href="` + path + `"]`
	b.follow(remedy)
	require.Equal(t, path, b.where())
	require.Contains(t, b.text(".notice"), reason)
	b.back()
	require.Equal(t, "/", b.where())
	b.follow(remedy)
	b.unfold("#act-resume-" + project)
	b.enter("#reason-resume-"+project, "they are in")
	b.follow("#act-resume-" + project + " button")
	require.Equal(t, path, b.where())
	require.Empty(t, b.text(".notice"))
	b.follow("a.brand")
	b.mark()
	b.await(`document.querySelector("#r-` + waiting + `") === null`)
	require.NotContains(t, b.text("#s-attention"), reason)
	b.stays()
}

// Without a token one sees of an action how the command line does it, with one what it
// allows. Signing in leads back.
func aTokenSaysWhatMayBeDone(t *testing.T, s scene, b *tab) {
	project := s.paused(t, "guarded", "nothing may run")
	path := "/requests/" + string(s.commandIn(t, project, "true"))
	const act = "#act-cancel"
	forms := func() int { return ask[int](b, `document.querySelectorAll("`+act+` form").length`) }
	b.visit(path)
	b.unfold(act)
	require.Contains(t, b.text(act), "sign in with one")
	require.Contains(t, b.text(act), "On the command line: benchloom request cancel")
	require.Zero(t, forms())

	b.follow(".who a")
	b.enter("#token", "mistyped")
	b.follow("main form button")
	b.awaitText("[role=alert]", "token")
	reader, err := s.API.CreateToken(t.Context(), apiclient.NewToken{Owner: s.name("reader"), Role: api.RoleReader})
	require.NoError(t, err)
	b.enter("#token", reader.Secret)
	b.follow("main form button")
	require.Equal(t, path, b.where())
	b.unfold(act)
	require.Contains(t, b.text(act), "your token has the role reader")
	require.Zero(t, forms())

	b.follow(".who button")
	require.Equal(t, "/", b.where())
	require.Equal(t, "Sign in", b.text(".who"))
	b.signIn(s.token)
	b.visit(path)
	require.Contains(t, b.text(".who"), "(admin)")
	require.Equal(t, 1, forms())
}

// The requests of a project are narrowed by links, whose addresses the button of the browser
// remembers; new ones appear.
func requestsOfAProjectAreFound(t *testing.T, s scene, b *tab) {
	project := s.printing(t, "listed")
	s.pause(t, project, "to look at it")
	release := "#r-" + string(s.release(t, project, "1.0.0"))
	path := "/projects/" + project
	b.visit(path)
	b.awaitText(release, "artifacts ready")
	b.mark()
	id := string(s.try(t, project, 7))
	b.awaitText("#r-"+id, "waiting for artifacts")
	b.stays()

	b.follow(`.filters a[href*="type=try"]`)
	require.Equal(t, path+"?type=try", b.where())
	require.Empty(t, b.text(release))
	b.follow(`.filters a[href*="show=completed"]`)
	require.Equal(t, path+"?show=completed&type=try", b.where())
	require.Contains(t, b.text(".empty"), "None of its requests is like that.")
	b.back()
	require.Equal(t, path+"?type=try", b.where())
	b.follow("#r-" + id + " a")
	require.Equal(t, "/requests/"+id, b.where())
	require.Contains(t, b.text(".sentence"), "It waits for its artifacts")
	b.back()
	require.Equal(t, path+"?type=try", b.where())
	require.NotEmpty(t, b.text("#r-"+id))
}

// The page of a request that failed says first what went wrong, and leads to the log. Its
// jobs are sorted and filtered.
func failuresComeFirst(t *testing.T, s scene, b *tab) {
	id := s.submit(t, apiclient.NewRequest{Jobs: []apiclient.NewJob{
		{Name: "alpha", Command: apiclient.Command{Argv: []string{"true"}}},
		{Name: "beta", Command: apiclient.Command{Argv: []string{"sh", "-c", "echo it goes wrong; exit 3"}}},
		{Name: "gamma", Command: apiclient.Command{Argv: []string{"true"}}},
	}})
	path := "/requests/" + string(id)
	b.visit(path)
	b.mark()
	require.Equal(t, bench.Failure, s.ended(t, id))
	b.awaitText(".sentence", "It has ended with a failure")
	b.stays()
	require.Contains(t, b.text("#lanes"), "local-")
	b.awaitText("#failures details[open] pre", "it goes wrong")

	names := func() []string { return b.texts("#jobs tbody td:first-child") }
	b.follow(`#jobs th a[href*="sort=name"]`)
	require.Equal(t, []string{"alpha", "beta", "gamma"}, names())
	b.follow(`#jobs th a[href*="sort=-name"]`)
	require.Equal(t, []string{"gamma", "beta", "alpha"}, names())
	b.follow(`#jobs .filters a[href*="show=failure"]`)
	require.Equal(t, path+"?show=failure&sort=-name", b.where())
	require.Equal(t, []string{"beta"}, names())
	b.follow("#jobs tbody a")
	b.awaitText("h1", "beta")
	b.back()
	require.Equal(t, path+"?show=failure&sort=-name", b.where())
	b.back()
	require.Equal(t, path+"?sort=-name", b.where())
	require.Equal(t, []string{"gamma", "beta", "alpha"}, names())

	b.follow(`#failures a[href^="/runs/"]`)
	b.awaitText("#s-log", "it goes wrong")
}

// Measuring again shows first what it would cost. What it does is seen as it happens, and
// stands in the audit with its reason.
func aRequestIsMeasuredAgain(t *testing.T, s scene, b *tab) {
	project := s.printing(t, "measured")
	require.Equal(t, bench.Success, s.ended(t, s.release(t, project, "1.0.0")))
	release := s.release(t, project, "1.1.0")
	b.signIn(s.token)
	b.visit("/requests/" + project + ":1.1.0")
	b.mark()
	require.Equal(t, bench.Success, s.ended(t, release))
	b.awaitText(".sentence", "It has ended successfully")
	b.stays()
	require.Contains(t, b.text("#verdict"), "Compared with 1.0.0")

	b.follow(`#actions a[href$="/again"]`)
	require.Equal(t, "/requests/"+string(release)+"/again", b.where())
	require.Contains(t, b.text("#preview"), "1 job, 1 test case")
	require.Contains(t, b.text("#preview"), "of machine time")
	require.Len(t, b.texts("#preview tbody tr"), 1)
	b.enter("#reason-again", "it looks odd")
	b.follow("main form button")
	require.Equal(t, "/requests/"+string(release), b.where())
	require.Contains(t, b.text("#audit"), "it looks odd")
	b.mark()
	require.Equal(t, bench.Success, s.ended(t, release))
	b.awaitText(".sentence", "It has ended successfully")
	b.stays()

	b.follow(`nav a[href="/audit"]`)
	b.search("#subject", string(release))
	require.Equal(t, "/audit?project=&who=&subject="+string(release), b.where())
	last := b.text("tbody tr")
	require.Contains(t, last, "retrigger")
	require.Contains(t, last, "it looks odd")
}

// Jobs of a graph are chosen by what they are; the preview says what that means, and the
// new graph shows them as they run.
func aPortionIsRetriggered(t *testing.T, s scene, b *tab) {
	project := s.printing(t, "portion")
	release := s.release(t, project, "1.0.0")
	require.Equal(t, bench.Success, s.ended(t, release))
	b.signIn(s.token)
	b.visit("/graphs/" + string(release))
	b.follow(`#again a`)
	require.Equal(t, "/graphs/"+string(release)+"/retrigger", b.where())
	b.enter("#by-benchmark", "nothing")
	b.follow("#choice button")
	require.Contains(t, b.text(".notice.warning"), "no job of it that has ended matches benchmark=nothing")
	b.follow(`nav.crumbs a[href="/graphs/` + string(release) + `"]`)
	b.follow(`#jobs a[href*="/retrigger?job="]`)
	require.Contains(t, b.text("#preview"), "1 job, 1 test case")
	b.enter("#reason-retrigger", "a noisy machine")
	b.follow(`main form[method="post"] button`)
	require.Equal(t, "/graphs/"+string(release)+"-2", b.where())
	require.Equal(t, bench.Success, s.ended(t, release))
	b.awaitText(".sentence", "1 success")
	b.follow(`.crumbs a[href="/requests/` + string(release) + `"]`)
	require.Contains(t, b.text("#audit"), "retrigger, because “a noisy machine”")
}

func aRequestIsCancelledWithAReason(t *testing.T, s scene, b *tab) {
	project := s.paused(t, "regretted", "the moon is full")
	id := s.commandIn(t, project, "true")
	b.signIn(s.token)
	b.visit("/requests/" + string(id))
	require.Contains(t, b.text("#why"), "the moon is full")
	b.unfold("#act-cancel")
	b.enter("#reason-cancel", "not needed")
	b.follow("#act-cancel button")
	require.Equal(t, "/requests/"+string(id), b.where())
	b.mark()
	require.Contains(t, b.text("#audit"), "request cancel, because “not needed”")
	require.Equal(t, bench.Cancelled, s.ended(t, id))
	b.awaitText(".sentence", "It has ended: cancelled")
	b.await(`document.querySelector("#act-cancel") === null && document.querySelector("#act-retry") !== null`)
	b.stays()
}
