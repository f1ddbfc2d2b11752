// Package browser opens a real Chromium for tests of what pages show, of how soon, and of
// what pages of others can do.
//
// It must not know any page. 'make browser' installs the browser.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Patience bounds the time of a test with a browser: the machine may be busy.
const Patience = 20 * time.Minute

// headlessShell is Debian's name for the Chromium that has no windows. It takes half the CPU
// time of one that only hides them: that one draws its tab strip as well. chromedp finds the
// names that others use.
const headlessShell = "chromium-headless-shell"

// Open starts a browser without a window, and returns the context of its first tab, for
// [chromedp.Do] and [chromedp.Run]. Further tabs come from [chromedp.NewContext] of it. Both
// end with the test, which fails if there is no browser. The options come after those that
// chromedp has by default.
func Open(t testing.TB, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(stop)
	b, err := start(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop()) })
	return b.ctx
}

// Browser is a browser without a window that tests use together: starting one takes longer
// than most of them.
type Browser struct {
	ctx  context.Context
	stop func()
	// dir holds what it leaves behind.
	dir string
}

// Start starts a browser with the options that chromedp has by default.
func Start() (*Browser, error) { return start(context.Background(), nil) }

func start(ctx context.Context, options []chromedp.ExecAllocatorOption) (*Browser, error) {
	// Its paths must be short: there are sockets.
	dir, err := os.MkdirTemp("", "browser-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for a browser: %w", err)
	}
	own := []chromedp.ExecAllocatorOption{chromedp.WSURLReadTimeout(time.Minute), chromedp.Env("TMPDIR=" + dir), chromedp.UserDataDir(filepath.Join(dir, "profile"))}
	if shell, err := exec.LookPath(headlessShell); err == nil {
		own = append(own, chromedp.ExecPath(shell))
	}
	ctx, end := chromedp.NewExecAllocator(ctx, slices.Concat(chromedp.DefaultExecAllocatorOptions[:], own, options)...)
	ctx, leave := chromedp.NewContext(ctx)
	b := &Browser{ctx: ctx, stop: func() { leave(); end() }, dir: dir}
	if err := chromedp.Do(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the browser, which 'make browser' installs: %w", err), b.Stop())
	}
	return b, nil
}

// Stop ends the browser and removes what it has left behind.
func (b *Browser) Stop() error {
	b.stop()
	return os.RemoveAll(b.dir)
}

// Tab opens a tab in a window of its own, which shares no cookies with others. It ends with
// the test.
func (b *Browser) Tab(t testing.TB) context.Context {
	t.Helper()
	ctx, leave, err := b.Window()
	require.NoError(t, err)
	t.Cleanup(leave)
	return ctx
}

// Window opens a tab as [Browser.Tab] does, for programs: it ends with leave.
func (b *Browser) Window() (tab context.Context, leave func(), err error) {
	ctx, stop := context.WithTimeout(b.ctx, Patience)
	ctx, closeTab := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	leave = func() { closeTab(); stop() }
	err = chromedp.Do(ctx)
	if err == nil {
		// Only one window of a browser has the focus; to these pages, each has.
		_, err = chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	}
	if err != nil {
		leave()
		return nil, nil, fmt.Errorf("opening a tab: %w", err)
	}
	return ctx, leave, nil
}

// Resolve makes the browser find hosts at addresses, in pairs, such as evil.example and
// 127.0.0.1, and no others that are not loopback addresses.
func Resolve(pairs ...string) chromedp.ExecAllocatorOption {
	var rules []string
	for i := 0; i+1 < len(pairs); i += 2 {
		rules = append(rules, "MAP "+pairs[i]+" "+pairs[i+1])
	}
	rules = append(rules, "MAP * ~NOTFOUND", "EXCLUDE localhost", "EXCLUDE 127.*")
	return chromedp.Flag("host-resolver-rules", strings.Join(rules, ", "))
}
