package api_test

import (
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

const compareGo = "/projects/go/compare"

// rows are the texts of the rows of the table of test cases.
func (p shownPage) rows() (rows []string) {
	p.each("section", func(section *html.Node) {
		if attribute(section, "id") != "rows" {
			return
		}
		for n := range section.Descendants() {
			if n.Type == html.ElementNode && n.Data == "tr" && n.Parent.Data == "tbody" && strings.Contains(attribute(n.Parent.Parent, "class"), "changes") {
				rows = append(rows, textOf(n))
			}
		}
	})
	return rows
}

// The column of intervals sorts by their width: how exactly a change is known. None is as wide
// as can be.
func TestRowsAreSortedByTheWidthOfTheirInterval(t *testing.T) {
	t.Parallel()
	w := newRandomReleases(t, 1)
	compared, err := w.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: "1.20.0", B: "1.21.0"})
	require.NoError(t, err)
	widths := make(map[string]float64)
	known := 0
	for _, r := range compared.Result.Rows {
		interval := r.Interval
		if r.Turns != nil {
			interval = r.Turns.Interval
		}
		widths[r.ID()] = math.Inf(1)
		if interval != nil {
			widths[r.ID()], known = interval.High-interval.Low, known+1
		}
	}
	require.Greater(t, known, 1)
	for sort, ascending := range map[string]bool{"interval": true, "-interval": false} {
		p := w.page(t, "", compareGo+"?a=1.20.0&b=1.21.0&show=all&sort="+sort)
		require.Equal(t, http.StatusOK, p.status, p.text())
		var shown []float64
		for _, link := range p.links() {
			at, err := url.Parse(link)
			require.NoError(t, err)
			if width, there := widths[at.Query().Get("open")]; there && at.Fragment == "row" {
				shown = append(shown, width)
			}
		}
		require.Len(t, shown, len(widths))
		if !ascending {
			slices.Reverse(shown)
		}
		require.True(t, slices.IsSorted(shown), "%s: %v", sort, shown)
	}
}

func TestAPageComparesTwoReleases(t *testing.T) {
	t.Parallel()
	b, j := measured(t)
	p := b.page(t, api.RoleReader, compareGo+"?a=1.25.0&b=1.26.0")
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, compareGo)

	// It says what the API and the command line say.
	c, err := b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: "1.25.0", B: "1.26.0"})
	require.NoError(t, err)
	require.Contains(t, p.text(), c.Summary.Line)
	require.Contains(t, p.section("sides"), string(j.request.ID))
	require.Contains(t, p.links(), "/requests/"+string(j.request.ID)+"/again")
	require.Contains(t, p.links(), compareGo+"?a=1.26.0&b=1.25.0", "the other way round")
	require.Len(t, p.rows(), 4, "only what matters")
	require.Contains(t, p.rows()[0], "+20.00 %")
	require.Contains(t, p.rows()[0], "undecided")
	require.Contains(t, p.section("rows"), "profile build, backend gc, target x86_64-unknown-linux-gnu", "what all rows share")

	all := b.page(t, api.RoleReader, compareGo+"?a=1.25.0&b=1.26.0&show=all&sort=-name")
	require.Len(t, all.rows(), len(c.Result.Rows))
	markdown := b.page(t, api.RoleReader, compareGo+"?a=1.25.0&b=1.26.0&open=markdown")
	text, err := b.nobody.CompareText(t.Context(), apiclient.CompareQuery{Project: "go", A: "1.25.0", B: "1.26.0", Sort: "certainty", OnlySignificant: true}, apiclient.FormatMarkdown)
	require.NoError(t, err)
	require.Contains(t, markdown.texts("textarea"), strings.Join(strings.Fields(text), " "))

	// Each row leads to the runs that it comes from, and shows more on request.
	require.Contains(t, p.links(), "/runs/"+string(bench.NewRunID(j.key, "workflow", "activity", 1)))
	require.Contains(t, p.links(), "/runs/"+string(bench.NewRunID(j.key, "workflow", "activity", 1))+"#profile", "what the machine did meanwhile")
	more := b.page(t, api.RoleReader, compareGo+"?a=1.25.0&b=1.26.0&cols=median&cols=threshold&cols=p&cols=spread&q=wall")
	more.requireSound(t, "more columns")
	require.Subset(t, more.texts("th"), []string{"Change of medians", "Spread of A, B", "p, of at most", "Least relevant"})
	require.True(t, strings.HasSuffix(more.rows()[0], "5+5 +20.00 % 1.00 % - 0.16 %, 0.16 %"), more.rows()[0])
	sources := b.page(t, api.RoleReader, compareGo+"?a=1.25.0&b=1.26.0&cols=source&show=all&sort=-source&metric=size:binary")
	sources.requireSound(t, "where thresholds come from")
	require.Contains(t, sources.texts("th"), "Least relevant by ▼")
	require.True(t, strings.HasSuffix(sources.rows()[0], "exact metric"), sources.rows()[0])
}

func TestAComparisonTellsHowBothSidesWereMeasured(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	b.measure(t, "1.27.0", 1, b.register(t, "c2"))
	query := apiclient.CompareQuery{Project: "go", A: "1.26.0", B: "1.27.0"}
	c, err := b.nobody.Compare(t.Context(), query)
	require.NoError(t, err)
	require.Equal(t, []string{"collectors: c2 instead of c1"}, c.Differences)
	require.Len(t, c.Sides, 2)
	require.Len(t, c.Sides[1].Parts, 1)
	require.Empty(t, c.Sides[1].Runs)
	part := c.Sides[1].Parts[0]
	at := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	require.Equal(t, apiclient.MeasuredPart{
		Target: linux, SizeClass: 2, Pool: "main", HardwareID: "cpu0", Segment: part.Segment, Suite: part.Suite, Collectors: []string{"c2"},
		TestCases: 2, MinIterations: 5, MaxIterations: 5, First: at, Last: at.Add(4 * time.Second),
	}, part)
	query.Runs, query.Scenarios = true, []string{"full"}
	narrowed, err := b.nobody.Compare(t.Context(), query)
	require.NoError(t, err)
	require.Equal(t, 1, narrowed.Sides[1].Parts[0].TestCases)
	require.Len(t, narrowed.Sides[1].Runs, 1)

	p := b.page(t, "", compareGo+"?a=1.26.0&b=1.27.0")
	p.requireSound(t, compareGo)
	require.Contains(t, p.section("sides"), "2 test cases, 5 times each, on size class 2 of pool main")
	require.Contains(t, p.section("sides"), "Both sides were not measured alike. collectors: c2 instead of c1")
	require.Contains(t, p.links(), "/collectors/c2")
}

// What only the new artifact lacks comes first.
func TestAPageNamesTestCasesThatFailNewly(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	j := b.submit(t, "1.27.0")
	plan := b.start(t, j, b.register(t, "c2"), 1)
	failed := block(j.cases[:1], 1)
	failed.Errors = []apiclient.BlockError{{TestCase: &j.cases[1], Kind: bench.FailJob, Message: "exit status 3"}}
	_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, failed)
	require.NoError(t, err)
	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunFailure, Message: "one test case failed"}))
	_, err = b.store.FinishJob(t.Context(), j.key, 0, "one test case failed")
	require.NoError(t, err)
	p := b.page(t, "", compareGo+"?a=1.26.0&b=1.27.0")
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, compareGo)
	require.Contains(t, p.section("uncompared"), "Newly failing 1 test case of 1.27.0 : failed: exit status 3")
	require.Contains(t, p.section("uncompared"), "gin build incr-patched gc")
}

// The address that is shown names both artifacts in full.
func TestTheAddressOfAComparisonIsCompleted(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	p := b.page(t, api.RoleReader, compareGo+"?b=1.26.0&only=regression")
	require.Equal(t, http.StatusOK, p.status, p.text())
	require.Contains(t, p.texts("h1"), "1.26.0 compared with 1.25.0")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+compareGo+"?b=1.26.0&only=regression", nil)
	require.NoError(t, err)
	client := *b.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusFound, answer.StatusCode)
	require.Equal(t, compareGo+"?a=1.25.0&b=1.26.0&only=regression", answer.Header.Get("Location"))

	c, err := b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", B: "1.26.0"})
	require.NoError(t, err)
	require.Equal(t, "1.25.0", c.A)
}

func TestAPageSaysWhyThereIsNoComparison(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	// Without an address, it offers what there is.
	p := b.page(t, api.RoleReader, compareGo)
	require.Equal(t, http.StatusOK, p.status)
	require.NotNil(t, p.fields(compareGo))
	require.Contains(t, p.text(), "No artifact of this project was compared with a baseline yet")

	// The first release has nothing to be compared with.
	p = b.page(t, api.RoleReader, compareGo+"?b=1.25.0")
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, compareGo)
	require.Contains(t, p.text(), "no release before it is measured; name the artifact to compare it with")

	// One that waits is not measured yet.
	waiting := b.submit(t, "1.27.0")
	p = b.page(t, api.RoleReader, compareGo+"?a=1.26.0&b=1.27.0")
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, compareGo)
	require.Contains(t, p.text(), "B ( 1.27.0 ) cannot be compared. Its jobs have not ended")
	require.Contains(t, p.links(), "/requests/"+string(waiting.request.ID))

	// An unknown one may be a slip of the pen.
	p = b.page(t, api.RoleReader, compareGo+"?a=1.25.0&b=1.26.9")
	require.Equal(t, http.StatusNotFound, p.status)
	require.Contains(t, p.links(), compareGo+"?a=1.25.0&b=1.26.0")
	p = b.page(t, api.RoleReader, compareGo+"?b=1.26.9")
	require.Equal(t, http.StatusNotFound, p.status)
	require.Contains(t, p.links(), compareGo+"?b=1.26.0")
	require.Equal(t, http.StatusNotFound, b.page(t, "", "/projects/rust/compare?b=1").status)
	require.Equal(t, http.StatusNotFound, b.page(t, "", "/projects/rust/compare").status)
	require.Equal(t, http.StatusBadRequest, b.page(t, "", compareGo+"?a=1.25.0&b=1.26.0&metric=instructions:u").status)

	// What is compared is found from where it was asked for.
	require.NoError(t, b.store.CompleteRequest(t.Context(), waiting.request.ID, bench.Success, "1.26.0", nil, ""))
	to := compareGo + "?a=1.26.0&b=1.27.0"
	for _, path := range []string{compareGo, "/projects/go"} {
		require.Contains(t, b.page(t, "", path).links(), to, path)
	}
	require.Contains(t, b.page(t, "", compareGo+"?a=1.25.0&b=1.26.0").links(), to, "what came next")
	require.Contains(t, b.page(t, "", to).text(), "Its jobs have ended without a result")
}

func TestAPageNamesWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	r := registration("c2")
	r.HardwareID = "cpu1"
	other, err := b.collector.RegisterCollector(t.Context(), r)
	require.NoError(t, err)
	b.measure(t, "1.27.0", 1, other)
	p := b.page(t, "", compareGo+"?a=1.26.0&b=1.27.0")
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, compareGo)
	require.Contains(t, p.section("uncompared"), "Other reasons 2 test cases of 1.27.0 : measured only in another surrounding")
	require.Contains(t, p.section("uncompared"), "gin build incr-patched gc")
	require.Contains(t, p.section("rows"), "Both sides share no series that could be compared")
}

// Where nothing has changed, it is said what would have been seen.
func TestAPageSaysWhichChangesWouldHaveBeenSeen(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	b.measure(t, "1.27.0", 1.2, b.register(t, "c2"))
	p := b.page(t, "", compareGo+"?a=1.26.0&b=1.27.0")
	p.requireSound(t, compareGo)
	require.Contains(t, p.section("metrics"), "no metric that decides has a change or a suspicion.")
	require.Contains(t, p.section("metrics"), "would have been seen")
	require.NotContains(t, b.page(t, "", compareGo+"?a=1.25.0&b=1.26.0").text(), "would have been seen")
}

// within reports whether words are among others, in the same order.
func within(words, others []string) bool {
	for _, o := range others {
		if len(words) > 0 && words[0] == o {
			words = words[1:]
		}
	}
	return len(words) == 0
}

// Filters, orders and parts of a comparison hide rows. What they leave is what it was.
func TestFiltersOfAPageChangeNoVerdict(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	at := compareGo + "?a=1.25.0&b=1.26.0&metric=wall-time"
	metric := b.page(t, "", at+"&show=all").rows()
	require.Len(t, metric, 2)
	all := b.page(t, "", compareGo+"?a=1.25.0&b=1.26.0&show=all").rows()
	random := rand.New(rand.NewPCG(14, 1))
	words := []string{"full", "-full", "scenario:full", "-metric:max-rss", "wall", "undecided", "-verdict:no-suspicion", "profile:build", "gin", "noise:", "size:binary", "category:primary", "-none"}
	for range 12 {
		query := url.Values{"a": {"1.25.0"}, "b": {"1.26.0"}, "show": {"all"}, "sort": {[]string{"name", "-change", "certainty", "-n", "a"}[random.IntN(5)]}}
		var chosen []string
		for range random.IntN(3) {
			chosen = append(chosen, words[random.IntN(len(words))])
		}
		query.Set("q", strings.Join(chosen, " "))
		p := b.page(t, "", compareGo+"?"+query.Encode())
		require.Equal(t, http.StatusOK, p.status)
		for _, row := range p.rows() {
			// What all rows share stands in the caption.
			require.True(t, slices.ContainsFunc(all, func(whole string) bool { return within(strings.Fields(row), strings.Fields(whole)) }), "%s: %s", query.Encode(), row)
		}
	}
	for query, want := range map[string]int{
		"q=full": 4, "q=-full": 4, "q=scenario:full+wall": 1, "q=nothing-like-it": 0, "q=size:binary": 2, "q=metric:max-rss+-scenario:full": 1, "only=undecided": 4, "only=regression": 0,
	} {
		p := b.page(t, "", compareGo+"?a=1.25.0&b=1.26.0&show=all&"+query)
		p.requireSound(t, query)
		require.Len(t, p.rows(), want, query)
	}
	// A form keeps what else narrows the page.
	require.Equal(t, "wall-time", b.page(t, "", at).fields(compareGo).Get("metric"))
}

// A hash of a commit may be abbreviated in an address, which is then completed.
func TestTheAddressOfAComparisonMayAbbreviateCommits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	older, newer, twin := "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef", "89abcdef0999999999999999999999999999cdef"
	b.measure(t, older, 1, c)
	b.measure(t, newer, 1.2, c)
	client := *b.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	get := func(query string) (status int, location string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+compareGo+query, nil)
		require.NoError(t, err)
		answer, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode, answer.Header.Get("Location")
	}
	status, location := get("?a=0123456&b=89abcdef01&q=full&show=all")
	require.Equal(t, http.StatusFound, status)
	require.Equal(t, compareGo+"?a="+older+"&b="+newer+"&q=full&show=all", location)
	status, _ = get("?a=" + older + "&b=" + newer)
	require.Equal(t, http.StatusOK, status)

	b.measure(t, twin, 1, c)
	ambiguous := b.page(t, "", compareGo+"?a=0123456&b=89abcdef0")
	require.Equal(t, http.StatusConflict, ambiguous.status)
	for _, candidate := range []string{newer, twin} {
		require.Contains(t, ambiguous.text(), candidate)
	}
}

// Properties of the rows narrow the table with one click, and group it.
func TestAComparisonIsNarrowedAndGroupedByLinks(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	at := compareGo + "?a=1.25.0&b=1.26.0&show=all"
	all := b.page(t, "", at)
	all.requireSound(t, "facets")
	require.Contains(t, all.section("rows"), "scenario full 4 incr-patched 4")
	to := compareGo + "?a=1.25.0&b=1.26.0&q=scenario%3Afull&show=all"
	require.Contains(t, all.links(), to+"#rows")
	narrowed := b.page(t, "", to)
	require.Len(t, narrowed.rows(), 4)
	require.Contains(t, narrowed.links(), at+"#rows", "the same link leads back")

	groups := b.page(t, "", at+"&group=scenario&metric=wall-time")
	groups.requireSound(t, "groups")
	rows := groups.rows()
	require.Len(t, rows, 4)
	require.Equal(t, "scenario full 1 series: 1 undecided. Geometric mean +20.00 % over 1 series: undecided, no row shows that it changed.", strings.ReplaceAll(rows[0], "\u00a0", " "))
	require.Contains(t, groups.section("rows"), "Changes of wall-time by category")
	require.Equal(t, http.StatusBadRequest, b.page(t, "", at+"&group=verdict").status)
}

// A link to a comparison tells later what has changed since it was copied, also the one in
// its Markdown.
func TestALinkToAComparisonTellsWhatHasChangedSince(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	at := compareGo + "?a=1.25.0&b=1.26.0"
	markdown, err := b.nobody.CompareText(t.Context(), apiclient.CompareQuery{Project: "go", A: "1.25.0", B: "1.26.0", Scenarios: []string{"full"}}, apiclient.FormatMarkdown)
	require.NoError(t, err)
	_, rest, found := strings.Cut(markdown, "](")
	require.True(t, found, markdown)
	link, _, _ := strings.Cut(rest, ")")
	require.True(t, strings.HasPrefix(link, b.server.URL+at+"&digest=1"), link)
	link = strings.TrimPrefix(link, b.server.URL)
	require.Contains(t, b.page(t, "", at).links(), link, "whatever was narrowed, it is that of all results")
	copied := b.page(t, "", link)
	copied.requireSound(t, "a copied link")
	require.Contains(t, copied.text(), "the results are those for which this link was copied")

	// One series of B has other values now.
	b.past(t, `update pstat p set value = value * 2 from pstat_series se join test_case tc on tc.id = se.test_case_id
		where se.id = p.series_id and se.metric = 'wall-time' and tc.scenario = 'full' and p.artifact_id = (select id from artifact where tag = '1.26.0')`)
	now := b.page(t, "", link)
	now.requireSound(t, "what has changed")
	require.Contains(t, now.text(), "Results have changed since this link was copied. Now otherwise, or new: wall-time of gin gin/build/full/gc/x86_64-unknown-linux-gnu Without this notice")
	require.Equal(t, http.StatusBadRequest, b.page(t, "", at+"&digest=none").status)
}

// Behind a proxy that takes off TLS, and that is trusted, links are encrypted as well.
func TestLinksLeadToWhereTheAPIWasReached(t *testing.T) {
	t.Parallel()
	for proxies, want := range map[string]string{"127.0.0.1": "https://", "10.0.0.1": "http://"} {
		b, _ := measured(t, func(c *api.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(proxies + "/32")} })
		answer := b.send(t, "", http.MethodGet, "/api/v1/compare?project=go&a=1.25.0&b=1.26.0&format=markdown", "", "X-Forwarded-Proto", "https")
		require.Contains(t, answer.body, "]("+want+strings.TrimPrefix(b.server.URL, "http://")+compareGo)
	}
}

// Both commits have an author, and those between them are named, measured or not.
func TestAComparisonNamesTheCommitsBetween(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	shas := make([]string, 4)
	var history []store.Commit
	for i := range shas {
		shas[i] = strings.Repeat(string("abcd"[i]), 40)
		one := store.Commit{SHA: shas[i], CommittedAt: time.Date(2026, 1, i+1, 0, 0, 0, 0, time.UTC), Author: "author " + string("abcd"[i]), Subject: "<b>change</b>"}
		if i > 0 {
			one.Parent = shas[i-1]
		}
		history = slices.Insert(history, 0, one)
	}
	_, err := b.store.RecordCommits(t.Context(), "go", history)
	require.NoError(t, err)
	b.measure(t, shas[0], 1, c)
	b.measure(t, shas[3], 1.2, c)
	compared, err := b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: shas[0], B: shas[3]})
	require.NoError(t, err)
	require.Len(t, compared.Between, 2)
	require.False(t, compared.MoreBetween)
	require.Equal(t, []string{shas[2], shas[1]}, []string{compared.Between[0].SHA, compared.Between[1].SHA})
	require.Equal(t, "author d", compared.Sides[1].Commit.Author)
	p := b.page(t, "", compareGo+"?a="+shas[0]+"&b="+shas[3])
	p.requireSound(t, "commits between")
	require.Contains(t, p.section("sides"), "author a : <b>change</b>")
	require.Contains(t, p.section("sides"), "2 commits between both cccccccccccc author c : <b>change</b> not measured")
	require.Nil(t, mustCompare(t, b, "1.25.0").Between, "releases have none")
}

// mustCompare compares an artifact with itself.
func mustCompare(t *testing.T, b *bundle, tag string) apiclient.Comparison {
	t.Helper()
	b.measure(t, tag, 1, b.register(t, "c2"))
	c, err := b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: tag, B: tag})
	require.NoError(t, err)
	return c
}
