package api_test

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/api/pages"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// pagePaths lists the addresses of all pages and their actions, as the server knows them.
func pagePaths(t testing.TB) (paths []struct{ method, path string }) {
	t.Helper()
	shown, err := pages.New(pages.Config{
		API: func(string) (pages.API, error) { return nil, errors.New("nobody asks") },
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Random: rand.Reader,
	})
	require.NoError(t, err)
	for pattern := range shown.Handlers() {
		method, path, ok := strings.Cut(pattern, " ")
		require.True(t, ok, pattern)
		paths = append(paths, struct{ method, path string }{method, strings.ReplaceAll(path, "{$}", "")})
	}
	require.Greater(t, len(paths), 20)
	return paths
}

// existing replaces the parameters of paths by names of what is there.
func (j job) existing() *strings.Replacer {
	return strings.NewReplacer(
		"{request}", string(j.request.ID), "{graph}", string(j.request.ID), "{job}", string(j.key), "{run}", string(bench.NewRunID(j.key, "workflow", "activity", 1)), "{project}", "go", "{collector}", "c1", "{shape}", "shapeshapeshapes",
	)
}

// An address that is misspelt is refused by every page, which names what it does not know.
// What was pasted into it by mistake is repeated nowhere.
func TestEveryPageNamesUnknownParameters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	b.start(t, j, c, 1)
	const pasted = api.TokenPrefix + "pastedpastedpastedpastedpastedpa"
	tried := 0
	for _, p := range pagePaths(t) {
		if p.method != http.MethodGet || strings.HasPrefix(p.path, "/assets/") {
			continue
		}
		tried++
		path := j.existing().Replace(p.path)
		shown := b.page(t, api.RoleReader, path+"?nonsense=1&token="+pasted)
		require.Equal(t, http.StatusBadRequest, shown.status, path)
		require.Contains(t, html.UnescapeString(shown.body), `no parameters "nonsense", "token"`, path)
		require.NotContains(t, shown.body, pasted, path)
		if path != "/live" { // what follows a page reads it as text
			shown.requireSound(t, path)
		}
	}
	require.Greater(t, tried, 14)
	closed := setup(t, func(c *api.Config) { c.OpenRead = false })
	refused := closed.page(t, "", "/collectors?sort=name&token="+pasted)
	require.Equal(t, http.StatusBadRequest, refused.status)
	require.Contains(t, refused.links(), "/sign-in?next=%2fcollectors%3fsort%3dname", "what the page knows leads back to it")
	require.NotContains(t, refused.body, pasted)
	for _, b := range []*bundle{b, closed} {
		require.NotContains(t, b.log.String(), pasted)
	}
}

// Names that an attacker would give, if he could.
const (
	markup    = `"'><img src=x onerror=alert(1)><b>bold</b>{{.}}<!--`
	backwards = "\u202egnp.exe \u2066"
)

// long is a name of 10 KB without a space, with an end that is only in the whole.
var long = strings.Repeat("abcdefghij", 1000) + "theveryend"

// nasty are all of them as words.
var nasty = []string{markup, backwards, long}

// Whatever people, benchmarks and collectors write is text on every page: it makes no
// element, turns no text around it, and is cut where it is long.
func TestTextsOfOthersAreOnlyTextOnEveryPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	paths := b.nastyWorld(t)
	for _, path := range paths {
		p := b.page(t, api.RoleAdmin, path)
		require.Equal(t, http.StatusOK, p.status, "%s: %s", path, p.text())
		p.requireSound(t, path)
		p.requireHarmless(t, path)
	}
	all := strings.Builder{}
	for _, path := range paths {
		all.WriteString(b.page(t, api.RoleAdmin, path).text())
	}
	for _, word := range []string{`<img src=x onerror=alert(1)>`, "gnp.exe", "theveryend"} {
		require.Contains(t, all.String(), word)
	}
	for _, address := range []string{"/requests/" + url.PathEscape(markup), "/jobs/" + url.PathEscape(backwards), "/collectors?q=" + url.QueryEscape(markup), "/audit?subject=" + url.QueryEscape(long),
		"/collectors?only=" + url.QueryEscape(markup), "/queues?by=" + url.QueryEscape(long), "/sign-in?next=" + url.QueryEscape("/"+markup), "/?" + url.QueryEscape(markup) + "=1",
		compareGo + "?b=" + url.QueryEscape(markup), compareGo + "?a=1.26.0&b=" + url.QueryEscape(long), compareGo + "?b=1.26.0&a=" + url.QueryEscape(backwards), compareGo + "?b=1.26.0&q=" + url.QueryEscape(markup),
		compareGo + "?only=" + url.QueryEscape(markup), compareGo + "?cols=" + url.QueryEscape(long)} {
		b.page(t, api.RoleAdmin, address).requireHarmless(t, address)
	}
}

// requireHarmless checks that texts of others have made no element, stand in elements of
// their own where they could turn others around, and are cut outside of logs and of what is
// opened.
func (p shownPage) requireHarmless(t testing.TB, path string) {
	t.Helper()
	alone := []string{"bdi", "pre", "code", "title", "input", "textarea"}
	for n := range p.root.Descendants() {
		switch {
		case n.Type == html.CommentNode:
			require.Fail(t, "a comment", "%s: %.100s", path, n.Data)
		case n.Type == html.ElementNode:
			require.NotContains(t, []string{"img", "b"}, n.Data, path)
		case n.Type != html.TextNode:
		default:
			within, parent := "", n.Parent.Data
			for a := range n.Ancestors() {
				if slices.Contains(alone, a.Data) {
					within = a.Data
					break
				}
			}
			if strings.ContainsAny(n.Data, "\u202e\u2066") {
				require.NotEmpty(t, within, "%s: %.100q in %s turns what is around it", path, n.Data, parent)
			}
			if inLog := parent == "code" && n.Parent.Parent.Data == "li"; within != "pre" && within != "textarea" && !inLog {
				require.Less(t, utf8.RuneCountInString(n.Data), 2000, "%s: %.100q in %s is not cut", path, n.Data, parent)
			}
		}
	}
}

// nastyWorld fills the record with such texts wherever they are accepted, and lists pages
// that show them.
func (b *bundle) nastyWorld(t *testing.T) (paths []string) {
	t.Helper()
	b.project(t)
	short := markup + backwards
	c := b.registerAs(t, "c1", func(r *apiclient.Registration) {
		r.Version, r.HardwareID = short, short
		r.Unenforced = []apiclient.Unenforced{{Name: "memory", Reason: markup + backwards}}
		r.Facts = []byte(`{"cpu": "` + backwards + `<b>cpu</b>", "kernel": "` + long + `"}`)
	})
	made, err := b.admin.CreateToken(t.Context(), apiclient.NewToken{Owner: "eve" + strings.ReplaceAll(backwards, " ", "") + "<b>", Role: api.RoleAdmin, Reason: markup + backwards})
	require.NoError(t, err)
	b.tokens["eve"] = made.Secret
	eve := b.client(t, "eve")
	command, err := eve.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: append([]string{"echo"}, nasty...)}, Branch: strings.ReplaceAll(backwards+markup, " ", "")})
	require.NoError(t, err)
	batch, err := eve.CreateRequest(t.Context(), apiclient.NewRequest{Jobs: []apiclient.NewJob{
		{Name: short, Command: apiclient.Command{Argv: nasty}}, {Name: backwards, Command: apiclient.Command{Argv: []string{long}}},
	}})
	require.NoError(t, err)
	waiting, err := b.nobody.Request(t.Context(), string(command.ID))
	require.NoError(t, err)
	require.Len(t, waiting.Jobs, 1)

	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	said := strings.Join(nasty, "\n")
	_, err = b.collector.AppendLog(t.Context(), plan.Run.ID, 0, []byte(markup+"\n"+backwards+"\n"))
	require.NoError(t, err)
	failed := block(j.cases[:1], 3)
	failed.Errors = []apiclient.BlockError{{TestCase: &j.cases[1], Kind: bench.FailJob, Message: said, OutputTail: said}}
	_, err = b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, failed)
	require.NoError(t, err)
	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunFailure, Message: said, OutputTail: said}))
	_, err = b.store.FinishJob(t.Context(), j.key, 0, said)
	require.NoError(t, err)
	again := b.submit(t, "1.27.0")
	_, err = b.store.PauseQueue(t.Context(), "go", store.Act{Who: "eve", Reason: said})
	require.NoError(t, err)
	_, err = eve.CancelRequest(t.Context(), string(batch.ID), apiclient.Act{Reason: markup + backwards})
	require.NoError(t, err)

	fill := j.existing()
	for _, p := range pagePaths(t) {
		if p.method == http.MethodGet && !strings.HasPrefix(p.path, "/assets/") && p.path != "/live" && !strings.HasPrefix(p.path, "/profiles/") && !strings.HasSuffix(p.path, ".svg") && !strings.HasSuffix(p.path, ".json") && !strings.Contains(p.path, "{shape}") {
			paths = append(paths, fill.Replace(p.path))
		}
	}
	return append(paths, "/requests/"+string(command.ID), "/requests/"+string(batch.ID)+"?show=all", "/requests/"+string(again.request.ID), "/jobs/"+string(waiting.Jobs[0].Key),
		"/projects/adhoc", "/queues?by=user", "/queues?by=queue")
}
