package api_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/browser"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// Two hundred who follow the same thing cost Postgres what one costs: one statement each
// time a second has passed, although all of them are told.
func TestManyStreamsCostTheStatementsOfOne(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	statements := storetest.CountStatements(t, url)
	record := storetest.Open(t, url)
	began := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	var passed atomic.Int64
	b := setup(t, func(c *api.Config) {
		c.Store = record
		c.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
	})
	now, err := b.nobody.Revision(t.Context(), apiclient.SubjectService)
	require.NoError(t, err)

	var streams []<-chan string
	for _, many := range []int{1, 199} {
		for range many {
			streams = append(streams, b.follow(t, "/live?subject=service&since="+now.Revision))
		}
		for _, change := range []func(context.Context, string, store.Act) (store.Operation, error){record.PauseQueue, record.ResumeQueue} {
			_, err := change(t.Context(), apiclient.AdHocProject, store.Act{Who: "ada", Reason: "why"})
			require.NoError(t, err)
			statements.Reset()
			passed.Add(int64(time.Second))
			told := make(map[string]bool)
			for _, s := range streams {
				told[<-s] = true
			}
			require.Len(t, told, 1, "all are told the same")
			require.NotContains(t, told, now.Revision)
			for revision := range told {
				now.Revision = revision
			}
			calls := statements.Calls()
			require.Len(t, calls, 1, "of %d streams: %v", len(streams), calls)
			for statement, n := range calls {
				require.EqualValues(t, 1, n, "of %d streams: %s", len(streams), statement)
			}
		}
	}
}

// What a stream has told holds for another process, too: who comes to it after the first
// one has ended is told what has happened since, and nothing else.
func TestAStreamGoesOnAtAnotherProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.store.PauseQueue(t.Context(), apiclient.AdHocProject, store.Act{Who: "ada", Reason: "why"})
	require.NoError(t, err)
	last := <-b.follow(t, "/live?subject=service&since=long-ago")
	b.server.CloseClientConnections()

	other, err := api.New(t.Context(), api.Config{
		Store: b.store, Starter: b.workflows, Dispatcher: b.dispatcher(), Inspector: b.inspector(),
		Settings: api.Settings{Now: time.Now, Random: rand.Reader, Log: discard, OpenRead: true},
	})
	require.NoError(t, err)
	second := httptest.NewServer(other)
	t.Cleanup(second.Close)
	b.server = second
	told := b.follow(t, "/live?subject=service&since=long-ago", "Last-Event-ID", last)
	_, err = b.store.ResumeQueue(t.Context(), apiclient.AdHocProject, store.Act{Who: "ada", Reason: "why"})
	require.NoError(t, err)
	next := <-told
	require.NotEqual(t, last, next, "what was known is not told again")
	now, err := b.store.ServiceRevision(t.Context(), (30 * time.Second).Seconds())
	require.NoError(t, err)
	require.Equal(t, now, next)
}

// door stands before the service, as a proxy does.
type door struct {
	*httptest.Server
	proxy *httputil.ReverseProxy
	mu    sync.Mutex
	// streams are the streams of live updates that are open, by number.
	streams map[int]context.CancelFunc
	// opened counts those that were let in, refused those that were not because the door
	// is shut.
	opened, refused int
	shut            bool
}

func newDoor(t *testing.T, b *bundle) *door {
	t.Helper()
	behind, err := url.Parse(b.server.URL)
	require.NoError(t, err)
	d := &door{streams: make(map[int]context.CancelFunc)}
	d.proxy = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host
	}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	d.Server = httptest.NewServer(d)
	t.Cleanup(func() {
		d.cut()
		d.Close()
	})
	return d
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/live" {
		d.proxy.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	d.mu.Lock()
	if d.shut {
		d.refused++
		d.mu.Unlock()
		http.Error(w, "nobody answers", http.StatusBadGateway)
		return
	}
	d.opened++
	n := d.opened
	d.streams[n] = cancel
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.streams, n)
	}()
	d.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// cut breaks the open streams off.
func (d *door) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, cancel := range d.streams {
		cancel()
	}
}

func (d *door) close(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
}

// await waits until as many streams are open, were opened or refused as wanted.
func (d *door) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return is()
	}, browser.Patience/2, 20*time.Millisecond, what)
}

// seen is a page in a browser.
type seen struct {
	t   *testing.T
	ctx context.Context
	url string
}

func (s seen) visit(path string) {
	s.t.Helper()
	require.NoError(s.t, chromedp.Do(s.ctx, chromedp.Navigate(s.url+path)))
	s.ask("window.former = true")
}

func (s seen) look(expression string) (bool, error) {
	return chromedp.Run(s.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
}

// ask returns whether an expression of JavaScript is true.
func (s seen) ask(expression string) bool {
	s.t.Helper()
	is, err := s.look(expression)
	require.NoError(s.t, err, expression)
	return is
}

// await waits until an expression is true. While a page is left for another, there is none.
func (s seen) await(expression string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		is, err := s.look(expression)
		return err == nil && is
	}, browser.Patience/2, 50*time.Millisecond, expression)
}

// says waits until the page says something, and checks that it was not loaded again.
func (s seen) says(words string) {
	s.t.Helper()
	s.await("document.querySelector('.sentence').textContent.includes('" + words + "')")
	require.True(s.t, s.ask("window.former"), "the page was loaded again")
}

func (s seen) signIn(token string) {
	s.t.Helper()
	s.visit("/sign-in")
	require.NoError(s.t, chromedp.Do(s.ctx, chromedp.SendKeys(chromedp.CSS("#token"), token), chromedp.Click(chromedp.CSS("main form button"))))
	s.await("!window.former && document.querySelector('main[data-live]')")
}

// finish ends the only job of a request with success.
func (b *bundle) finish(t *testing.T, j job, run bench.RunID) {
	t.Helper()
	_, err := b.collector.UploadBlock(t.Context(), run, 1, block(j.cases, 1))
	require.NoError(t, err)
	require.NoError(t, b.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	_, err = b.store.FinishJob(t.Context(), j.key, 0, "")
	require.NoError(t, err)
}

// A page in a real browser shows each state of a request as it comes, without a reload. What
// its reader has opened, typed and focused stays. Whatever happens to its stream, it is up
// to date again; hidden, it has none.
func TestAPageIsFollowedInABrowser(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c1 := b.register(t, "c1")
	d := newDoor(t, b)
	s := seen{t, browser.Open(t), d.URL}
	require.NoError(t, chromedp.Do(s.ctx, chromedp.EmulateViewport(800, 300)))
	s.signIn(b.tokens[api.RoleAdmin])

	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.26.0"})
	require.NoError(t, err)
	s.visit("/requests/" + string(r.ID))
	s.says("It waits for its turn")
	s.ask("document.querySelector('#act-cancel').open = true")
	s.ask("document.querySelector('#reason-cancel').focus() || scrollTo(0, 100)")
	require.NoError(t, chromedp.Do(s.ctx, chromedp.KeyEvent("it is no")))
	undisturbed := func() {
		t.Helper()
		require.True(t, s.ask("document.querySelector('#act-cancel').open"), "what was opened stays open")
		require.True(t, s.ask("document.activeElement === document.querySelector('#reason-cancel')"), "the focus stays")
		require.True(t, s.ask("scrollY > 0"), "the page does not jump")
	}
	b.admit(t, r.ID)
	s.says("its jobs are being written")
	undisturbed()
	j := b.expand(t, r)
	s.says("none of its jobs runs")
	undisturbed()
	plan := b.start(t, j, c1, 1)
	s.says("1 running and 0 done")
	undisturbed()
	require.NoError(t, chromedp.Do(s.ctx, chromedp.KeyEvent(" use")))
	b.finish(t, j, plan.Run.ID)
	require.NoError(t, b.store.FinishJobsOf(t.Context(), r.ID))
	s.says("what they brought is being compared")
	undisturbed()
	require.True(t, s.ask("document.querySelector('#reason-cancel').value === 'it is no use'"), "what is typed stays")
	require.NoError(t, b.store.CompleteRequest(t.Context(), r.ID, bench.Success, "", nil, ""))
	s.says("It has ended successfully")
	require.False(t, s.ask("document.querySelector('#act-cancel')"), "what can no longer be done goes")

	rowsKeepTheFocus(t, b, s, c1)
	streamsAreBegunAgain(t, b, s, d)
	hiddenPagesHaveNoStream(t, s, d)
}

// rowsKeepTheFocus shows rows that change places.
func rowsKeepTheFocus(t *testing.T, b *bundle, s seen, c1 apiclient.Registered) {
	t.Helper()
	line := apiclient.NewJob{Command: apiclient.Command{Argv: []string{"true"}}}
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Jobs: []apiclient.NewJob{line, line, line}})
	require.NoError(t, err)
	d, err := b.nobody.Request(t.Context(), string(r.ID))
	require.NoError(t, err)
	last := d.Jobs[2].Key
	row := "#j-" + string(last)
	s.visit("/requests/" + string(r.ID) + "?sort=status")
	s.await("[...document.querySelectorAll('tr[id^=j-]')].findIndex(e => e.matches('" + row + "')) === 2")
	s.ask("document.querySelector('" + row + " a').focus()")
	b.start(t, job{request: r, key: last}, c1, 1)
	s.await("[...document.querySelectorAll('tr[id^=j-]')].findIndex(e => e.matches('" + row + "')) === 0")
	require.True(t, s.ask("window.former && document.activeElement === document.querySelector('"+row+" a')"), "the focus stays on the row")
	require.True(t, s.ask("document.querySelectorAll('tr[id^=j-]').length === 3"))
	_, err = b.admin.CancelRequest(t.Context(), string(r.ID), apiclient.Act{Reason: "done looking"})
	require.NoError(t, err)
	s.says("cancelled")
}

// streamsAreBegunAgain shows a page whose stream is refused and breaks off.
func streamsAreBegunAgain(t *testing.T, b *bundle, s seen, d *door) {
	t.Helper()
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Type: bench.Try, PR: 7})
	require.NoError(t, err)
	s.visit("/requests/" + string(r.ID))
	s.says("It waits for its artifacts")
	d.await(t, "the page is followed", func() bool { return len(d.streams) == 1 })
	// Refused once, a browser does not come back by itself.
	d.close(true)
	d.cut()
	d.await(t, "the stream is refused", func() bool { return d.refused > 0 })
	require.NoError(t, b.store.SetRequestMessage(t.Context(), r.ID, "the builder is away"))
	d.close(false)
	s.says("the builder is away")
	d.await(t, "the page is followed again", func() bool { return len(d.streams) == 1 })
	// Broken off, it does.
	d.mu.Lock()
	before := d.opened
	d.mu.Unlock()
	d.cut()
	d.await(t, "another stream", func() bool { return d.opened > before })
	require.NoError(t, b.store.SetRequestMessage(t.Context(), r.ID, "the builder is back"))
	s.says("the builder is back")
}

// hiddenPagesHaveNoStream hides the page and shows it again.
func hiddenPagesHaveNoStream(t *testing.T, s seen, d *door) {
	t.Helper()
	hide := func(hidden string) {
		s.ask("Object.defineProperty(document, 'hidden', { value: " + hidden + ", configurable: true }) && document.dispatchEvent(new Event('visibilitychange'))")
	}
	d.await(t, "the page is followed", func() bool { return len(d.streams) == 1 })
	hide("true")
	d.await(t, "its stream ends", func() bool { return len(d.streams) == 0 })
	hide("false")
	d.await(t, "it is followed again", func() bool { return len(d.streams) == 1 })
	require.True(t, s.ask("window.former"))
}
