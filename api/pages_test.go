package api_test

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/sync/errgroup"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
)

// shownPage is a page as a browser without scripts sees it.
type shownPage struct {
	reply
	root *html.Node
}

// cookieOf returns the cookie of somebody with a role who has signed in.
func (b *bundle) cookieOf(t testing.TB, role string) string {
	t.Helper()
	r := b.form(t, "", "/sign-in", url.Values{"token": {b.tokens[role]}})
	require.Equal(t, http.StatusSeeOther, r.status, r.body)
	cookie, _, _ := strings.Cut(r.header.Get("Set-Cookie"), ";")
	return cookie
}

// page opens a page as somebody with a role; empty: without a token.
func (b *bundle) page(t testing.TB, role, path string, headers ...string) shownPage {
	t.Helper()
	if role != "" {
		headers = append(headers, "Cookie", b.cookieOf(t, role))
	}
	r := b.send(t, "", http.MethodGet, path, "", headers...)
	root, err := html.Parse(strings.NewReader(r.body))
	require.NoError(t, err)
	return shownPage{r, root}
}

// form sends a form as a browser does that has a cookie, and follows no redirection.
func (b *bundle) form(t testing.TB, cookie, path string, values url.Values, headers ...string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.server.URL+path, strings.NewReader(values.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", b.server.URL)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	if cookie != "" {
		request.Header.Set("Cookie", cookie)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	client := *b.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var body strings.Builder
	_, err = bufio.NewReader(response.Body).WriteTo(&body)
	require.NoError(t, err)
	return reply{status: response.StatusCode, header: response.Header, body: body.String()}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// each calls f with the elements of a name; empty: all.
func (p shownPage) each(name string, f func(n *html.Node)) {
	for n := range p.root.Descendants() {
		if n.Type == html.ElementNode && (name == "" || n.Data == name) {
			f(n)
		}
	}
}

// textOf is the text of a node, with single spaces.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// text is all that the page says.
func (p shownPage) text() string { return textOf(p.root) }

// texts are the texts of the elements of a name.
func (p shownPage) texts(name string) (all []string) {
	p.each(name, func(n *html.Node) { all = append(all, textOf(n)) })
	return all
}

// links are the addresses to which the page leads.
func (p shownPage) links() (all []string) {
	p.each("a", func(n *html.Node) { all = append(all, attribute(n, "href")) })
	return all
}

// section is the text of the section with an ID; empty: there is none.
func (p shownPage) section(id string) (text string) {
	p.each("", func(n *html.Node) {
		if attribute(n, "id") == id {
			text = textOf(n)
		}
	})
	return text
}

// fields are the names and values of the form that is sent to an address; nil: there is none.
func (p shownPage) fields(action string) (values url.Values) {
	p.each("form", func(form *html.Node) {
		if attribute(form, "action") != action {
			return
		}
		values = url.Values{}
		for n := range form.Descendants() {
			if n.Type == html.ElementNode && n.Data == "input" && attribute(n, "name") != "" {
				values.Set(attribute(n, "name"), attribute(n, "value"))
			}
		}
	})
	return values
}

// everyPage lists pages of all kinds that can be shown without anything having happened.
var everyPage = []string{"/", "/sign-in", "/collectors", "/sizeclasses", "/help", "/queues", "/queues?by=user&sort=-wait", "/stats/wait", "/stats/wait?since=72h&block=2h&project=go&sort=-share", "/projects/go", "/projects/go/queue", compareGo, "/projects/adhoc", "/projects/adhoc/compare", "/audit"}

func TestEveryPageIsWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	for _, path := range everyPage {
		p := b.page(t, api.RoleAdmin, path)
		require.Equal(t, http.StatusOK, p.status, path)
		p.requireSound(t, path)
		require.Contains(t, p.text(), "ada (admin)")
	}
}

// requireSound checks what holds for every page: it has one heading, landmarks, a policy
// that forbids anything inline, names for all fields, and IDs that are unique.
func (p shownPage) requireSound(t testing.TB, path string) {
	t.Helper()
	require.Equal(t, "text/html; charset=utf-8", p.header.Get("Content-Type"), path)
	policy := p.header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	require.Equal(t, "private, no-store", p.header.Get("Cache-Control"))
	require.NotContains(t, p.body, api.TokenPrefix+"a", "a token")
	require.Len(t, p.texts("h1"), 1, path)
	require.Len(t, p.texts("main"), 1, path)
	ids, labels := make(map[string]bool), make(map[string]bool)
	p.each("label", func(n *html.Node) { labels[attribute(n, "for")] = true })
	p.each("", func(n *html.Node) {
		for _, a := range n.Attr {
			require.False(t, a.Key == "style" || strings.HasPrefix(a.Key, "on"), "%s: <%s %s>", path, n.Data, a.Key)
			require.False(t, a.Key == "href" && strings.HasPrefix(a.Val, "javascript:"), path)
		}
		if id := attribute(n, "id"); id != "" {
			require.False(t, ids[id], "%s: %s is there twice", path, id)
			ids[id] = true
		}
		if (n.Data == "input" && attribute(n, "type") != "hidden") || n.Data == "select" {
			require.True(t, labels[attribute(n, "id")], "%s: field %s has no label", path, attribute(n, "name"))
		}
		if n.Data == "script" || n.Data == "style" {
			require.Empty(t, textOf(n), path)
		}
		if n.Data == "th" {
			require.NotEmpty(t, attribute(n, "scope"), path)
		}
	})
}

func TestSigningIn(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.OpenRead = false })
	b.project(t)
	// Nothing is shown to a stranger but the way in, which leads back.
	closed := b.page(t, "", "/")
	require.Equal(t, http.StatusUnauthorized, closed.status)
	require.Equal(t, "/", closed.fields("/sign-in").Get("next"))
	require.NotContains(t, closed.text(), "adhoc")

	in := b.form(t, "", "/sign-in", url.Values{"token": {"  " + b.tokens[api.RoleWriter] + "\n"}, "next": {"/?sort=name"}})
	require.Equal(t, http.StatusSeeOther, in.status)
	require.Equal(t, "/?sort=name", in.header.Get("Location"))
	cookie := in.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		require.Contains(t, cookie, want)
	}
	require.NotContains(t, cookie, "Secure", "the connection is not encrypted")
	open := b.page(t, api.RoleWriter, "/")
	require.Equal(t, http.StatusOK, open.status)
	require.Contains(t, open.text(), "wanda (writer)")
	require.NotContains(t, open.body, b.tokens[api.RoleWriter])
	require.NotContains(t, b.log.String(), b.tokens[api.RoleWriter])

	out := b.form(t, b.cookieOf(t, api.RoleWriter), "/sign-out", nil)
	require.Equal(t, http.StatusSeeOther, out.status)
	require.Contains(t, out.header.Get("Set-Cookie"), "Max-Age=0")
}

func TestSigningInIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		token  string
		status int
		why    string
	}{
		"without a token":          {"", http.StatusUnprocessableEntity, "no token was given"},
		"with something else":      {"hunter2", http.StatusUnauthorized, "holds no token of Benchloom"},
		"with two words":           {"blm_one blm_two", http.StatusUnprocessableEntity, "white space"},
		"with an unknown token":    {"blm_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", http.StatusUnauthorized, "this token is not known"},
		"with that of a collector": {b.tokens[api.RoleCollector], http.StatusForbidden, "pages need that of a person"},
	} {
		r := b.form(t, "", "/sign-in", url.Values{"token": {c.token}, "next": {"/"}})
		require.Equal(t, c.status, r.status, name)
		require.Contains(t, html.UnescapeString(r.body), c.why, name)
		require.Empty(t, r.header.Get("Set-Cookie"), name)
		if len(c.token) > 10 {
			require.NotContains(t, r.body, c.token, name)
		}
	}
	// It leads nowhere else.
	for _, next := range []string{"https://evil.example/", "//evil.example/", "/\\evil.example/", "evil", "/sign-in"} {
		r := b.form(t, "", "/sign-in", url.Values{"token": {b.tokens[api.RoleReader]}, "next": {next}})
		require.Equal(t, "/", r.header.Get("Location"), next)
	}
	// No other page signs somebody in or out.
	for _, path := range []string{"/sign-in", "/sign-out"} {
		r := b.send(t, "", http.MethodPost, path, "token="+b.tokens[api.RoleReader], "Content-Type", "application/x-www-form-urlencoded", "Origin", "https://evil.example")
		require.Equal(t, http.StatusForbidden, r.status)
		require.Empty(t, r.header.Get("Set-Cookie"))
	}
	// Over TLS, also before a proxy, the cookie travels encrypted only.
	r := b.form(t, "", "/sign-in", url.Values{"token": {b.tokens[api.RoleReader]}}, "Origin", "https://"+strings.TrimPrefix(b.server.URL, "http://"))
	require.Contains(t, r.header.Get("Set-Cookie"), "__Host-benchloom_")
	require.Contains(t, r.header.Get("Set-Cookie"), "; Secure")
}

func TestATokenThatIsValidNoMoreIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cookie := b.cookieOf(t, api.RoleReader)
	name, _, _ := strings.Cut(cookie, "=")
	r := b.send(t, "", http.MethodGet, "/", "", "Cookie", name+"=blm_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	require.Equal(t, http.StatusUnauthorized, r.status)
	require.Contains(t, r.body, "this token is not known")
	require.Contains(t, r.header.Get("Set-Cookie"), "Max-Age=0")
	// The API itself takes no cookies: a page of others cannot borrow one.
	require.Equal(t, http.StatusUnauthorized, b.send(t, "", http.MethodPost, "/api/v1/requests", "{}", "Cookie", cookie).status)
}

func TestUnknownAddressesSayWhatThereIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.page(t, "", "/?colour=red&sort=name")
	require.Equal(t, http.StatusBadRequest, p.status)
	require.Contains(t, p.text(), `this page has no parameters "colour", "sort"; it has none`)
	p.requireSound(t, "unknown parameter")
	p = b.page(t, "", "/nothing/here", "Accept", "text/html,*/*")
	require.Equal(t, http.StatusNotFound, p.status)
	require.Contains(t, p.text(), "there is nothing at this address")
	require.Contains(t, b.send(t, "", http.MethodGet, "/nothing/here", "").problem(t).Detail, "/openapi.json", "programs get a problem")
}

func TestAssetsAreKeptForEver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var assets []string
	p := b.page(t, "", "/")
	p.each("link", func(n *html.Node) { assets = append(assets, attribute(n, "href")) })
	p.each("script", func(n *html.Node) { assets = append(assets, attribute(n, "src")) })
	require.Len(t, assets, 3)
	size := 0
	for _, path := range assets {
		r := b.send(t, "", http.MethodGet, path, "", "Accept-Encoding", "gzip")
		require.Equal(t, http.StatusOK, r.status, path)
		require.Equal(t, "gzip", r.header.Get("Content-Encoding"))
		require.Contains(t, r.header.Get("Cache-Control"), "immutable")
		size += len(r.body)
		require.Equal(t, http.StatusNotFound, b.send(t, "", http.MethodGet, strings.Replace(path, "/assets/", "/assets/0", 1), "").status, "another version")
	}
	require.Less(t, size, 40<<10, "compressed, of what a page loads")
}

// A page that is followed says so as soon as something has changed, whoever looks.
func TestAPageIsToldOfChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var subject, revision string
	b.page(t, "", "/").each("main", func(n *html.Node) { subject, revision = attribute(n, "data-live"), attribute(n, "data-revision") })
	require.Equal(t, apiclient.SubjectService, subject)
	now, err := b.nobody.Revision(t.Context(), subject)
	require.NoError(t, err)
	require.Equal(t, revision, now.Revision, "nothing has happened since")

	events := b.follow(t, "/live?subject=service&since="+revision)
	b.project(t)
	b.register(t, "c1")
	_, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.26.0"})
	require.NoError(t, err)
	changed := <-events
	require.NotEqual(t, revision, changed)
	// A stream that broke off begins where it was: what was missed is told at once. A busy
	// machine may look between two of the changes, so that there is more to tell by now.
	require.NotEqual(t, revision, <-b.follow(t, "/live?subject=service&since="+revision))

	for path, status := range map[string]int{
		"/live": http.StatusUnprocessableEntity, "/live?subject=weather": http.StatusUnprocessableEntity, "/live?subject=request:" + "r0000000000": http.StatusUnprocessableEntity,
		"/live?subject=service&from=1": http.StatusBadRequest,
	} {
		require.Equal(t, status, b.send(t, "", http.MethodGet, path, "").status, path)
	}
	closed := setup(t, func(c *api.Config) { c.OpenRead = false })
	require.Equal(t, http.StatusUnauthorized, closed.send(t, "", http.MethodGet, "/live?subject=service", "").status)
}

// follow returns the revisions that a stream tells.
func (b *bundle) follow(t testing.TB, path string, headers ...string) <-chan string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+path, nil)
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.server.Client().Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	revisions, stop := make(chan string), make(chan struct{})
	t.Cleanup(func() { close(stop); _ = response.Body.Close() })
	go func() {
		defer close(revisions)
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				select {
				case revisions <- data:
				case <-stop:
					return
				}
			}
		}
	}()
	return revisions
}

// All who look at the same thing cost one query a second, however many they are.
func TestManyWhoFollowCostOneQuery(t *testing.T) {
	t.Parallel()
	looks := &atomic.Int64{}
	now := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	var clock atomic.Int64
	b := setup(t, func(c *api.Config) {
		c.Now = func() time.Time { return now.Add(time.Duration(clock.Load())) }
		c.Store = countedLooks{c.Store, looks}
	})
	ask := func() (revisions map[string]bool) {
		revisions = make(map[string]bool)
		var mu sync.Mutex
		var all errgroup.Group
		for range 200 {
			all.Go(func() error {
				r, err := b.nobody.Revision(t.Context(), apiclient.SubjectService)
				mu.Lock()
				defer mu.Unlock()
				revisions[r.Revision] = true
				return err
			})
		}
		require.NoError(t, all.Wait())
		return revisions
	}
	before := ask()
	require.Len(t, before, 1)
	require.EqualValues(t, 1, looks.Load())
	clock.Add(int64(time.Second))
	b.project(t)
	require.NotEqual(t, before, ask())
	require.EqualValues(t, 2, looks.Load())
}

// countedLooks counts looks at the revision of the service.
type countedLooks struct {
	api.Store
	looks *atomic.Int64
}

func (c countedLooks) ServiceRevision(ctx context.Context, offlineSeconds float64) (string, error) {
	c.looks.Add(1)
	return c.Store.ServiceRevision(ctx, offlineSeconds)
}

// Names of others are text, however they are written.
func TestNamesOfOthersAreOnlyText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	long := strings.Repeat("<b>long</b> ", 1000)
	names := []string{`"><img src=x onerror=alert(1)>`, "\u202eesrever", `'/><script>alert(1)</script>`, long, "{{.Who}}", "&lt;"}
	for _, name := range names {
		_, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"echo", name}}})
		require.NoError(t, err)
	}
	p := b.page(t, "", "/")
	p.requireSound(t, "names of others")
	for _, name := range names {
		if name != long {
			require.Contains(t, p.text(), strings.Join(strings.Fields(name), " "))
		}
	}
	p.each("", func(n *html.Node) { require.False(t, slices.Contains([]string{"img", "b"}, n.Data), n.Data) })
	require.Less(t, len(p.body), 60_000, "a name of 12 KB is cut")
}
