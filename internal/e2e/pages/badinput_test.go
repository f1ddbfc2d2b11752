package pages

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// unharmed says what texts of others have done to a page; empty: nothing. They may neither
// run, nor load, nor turn other text around.
const unharmed = `(() => {
	const wrong = [];
	if (window.harmed) wrong.push('a script of others has run');
	if (document.querySelector('main img, main iframe, main b, main [onerror]')) wrong.push('an element of others');
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n = texts.nextNode(); n; n = texts.nextNode()) {
		if (!/[\u202a-\u202e\u2066-\u2069]/.test(n.data)) continue;
		const alone = n.parentElement.closest('bdi, code, pre');
		if (!alone || alone.localName !== 'pre' && getComputedStyle(alone).unicodeBidi !== 'isolate') wrong.push('it turns text around: ' + n.parentElement.outerHTML.slice(0, 200));
	}
	return wrong.join('; ');
})()`

// Texts of others, with markup, of 10 KB without a space and from right to left, stay text on
// every page that shows them, and pages as wide as a phone.
func TestLongTextsOfOthersDoNoHarm(t *testing.T) {
	t.Parallel()
	s := sharedService(t)
	long := strings.Repeat("abcdefghij", 1000)
	markup := `"><img src=/nothing onerror="window.harmed = 1"><script>window.harmed = 1</script><b>`
	const backwards = "\u202egnp.exe"
	r := s.command(t, "echo", markup, backwards, long)
	batch, err := s.API.CreateRequest(t.Context(), apiclient.NewRequest{Jobs: []apiclient.NewJob{
		{Name: markup, Command: apiclient.Command{Argv: []string{"echo", markup}}}, {Name: backwards + " " + backwards, Command: apiclient.Command{Argv: []string{"sh", "-c", "echo " + backwards + "; exit 1"}}},
	}})
	require.NoError(t, err)
	s.ended(t, batch.ID)
	s.ended(t, r.ID)
	d, err := s.API.Request(t.Context(), string(r.ID))
	require.NoError(t, err)
	_, err = s.API.RetryRequest(t.Context(), string(batch.ID), apiclient.Act{Reason: markup + backwards + long[:300]})
	require.NoError(t, err)

	b := s.open(t)
	b.do(chromedp.EmulateViewport(320, 900))
	b.signIn(s.token)
	for _, path := range []string{
		"/", "/requests/" + string(r.ID), "/requests/" + string(batch.ID) + "?show=all", "/jobs/" + string(d.Jobs[0].Key), "/runs/" + string(d.Runs[0].ID), "/projects/adhoc", "/queues", "/stats/wait", "/audit", "/sizeclasses",
		"/audit?subject=" + long[:1000], "/help?q=%22%3E%3Cimg%20onerror=alert(1)%3E", "/collectors?" + long[:1000] + "=1", "/requests/adhoc:" + long[:1000], "/requests/%E2%80%AEgnp.exe",
	} {
		b.visit(path)
		b.await("document.readyState === 'complete'")
		require.Empty(t, ask[string](b, unharmed), path)
		wide := ask[int](b, "document.documentElement.scrollWidth")
		require.LessOrEqual(t, wide, 320, "%.60s: %s", path, ask[string](b, widest))
	}
	b.visit("/runs/" + string(d.Runs[0].ID))
	require.Contains(t, b.text("#s-log"), `<script>window.harmed = 1</script><b>`, "it is shown as it was printed")
	b.visit("/collectors?colour=red")
	require.Contains(t, b.text("main"), `This page has no parameter "colour"; it knows q, only, sort, page`)
}

// Names that a benchmark prints, with markup, from right to left and very long, stay text in
// comparisons and histories, also where scripts show them.
func TestNamesOfOthersDoNoHarmToResults(t *testing.T) {
	t.Parallel()
	s := scene{sharedService(t), mouse}
	names := []string{`"><img/src=/nothing/onerror="window.harmed=1">`, `<script>window.harmed=1</script>`, "שלום-עולם/1+2", strings.Repeat("abcdefghij", 18)}
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = "Benchmark/" + name + " 1 100 ns/op"
	}
	project := s.printing(t, "harmful", lines...)
	for _, tag := range []string{"1.0.0", "1.1.0"} {
		require.Equal(t, bench.Success, s.ended(t, s.release(t, project, tag)))
	}
	compared, err := s.API.Compare(t.Context(), apiclient.CompareQuery{Project: project, A: "1.0.0", B: "1.1.0"})
	require.NoError(t, err)
	found := 0
	compare, history := "/projects/"+project+"/compare?a=1.0.0&b=1.1.0&show=all", "/projects/"+project+"/history?metric=ns%2Fop"
	paths := []string{compare, compare + "&group=line", compare + "&open=markdown", compare + "&q=script", history, history + "&split=line&line=line", history + "&open=print", history + "&q=script"}
	for _, r := range compared.Result.Rows {
		if r.Metric == "ns/op" && r.Line != "" {
			found++
			paths = append(paths, compare+"&open="+url.QueryEscape(r.ID()))
		}
	}
	require.Equal(t, len(names), found)

	b := s.open(t)
	b.hand = mouse
	b.do(chromedp.EmulateViewport(320, 900))
	sound := func(path string) {
		t.Helper()
		b.await("document.readyState === 'complete'")
		require.Empty(t, ask[string](b, unharmed), path)
		wide := ask[int](b, "document.documentElement.scrollWidth")
		require.LessOrEqual(t, wide, 320, "%.80s: %s", path, ask[string](b, widest))
	}
	for _, path := range paths {
		b.visit(path)
		sound(path)
	}
	b.visit(history)
	b.point("figure", 1)
	b.awaitText("figure .tip", names[1])
	sound("a point")
}
