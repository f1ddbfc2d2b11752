// Package browser opens a real Chromium for tests of what pages show, and of what pages of
// others can do.
//
// It must not know any page. 'make browser' installs the browser.
package browser

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Patience bounds the time of a test with a browser: the machine may be busy.
const Patience = 5 * time.Minute

// Open starts a browser without a window, and returns the context of its first tab, for
// [chromedp.Do] and [chromedp.Run]. Further tabs come from [chromedp.NewContext] of it. Both
// end with the test, which fails if there is no browser. The options come after those that
// chromedp has by default.
func Open(t testing.TB, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	// What it leaves behind has paths that must be short: there are sockets.
	dir, err := os.MkdirTemp("", "browser-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	ctx, stop := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(stop)
	ctx, end := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		append([]chromedp.ExecAllocatorOption{chromedp.WSURLReadTimeout(time.Minute), chromedp.Env("TMPDIR=" + dir), chromedp.UserDataDir(filepath.Join(dir, "profile"))}, options...)...)...)
	t.Cleanup(end)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	require.NoError(t, chromedp.Do(ctx), "starting the browser: 'make browser' installs it")
	return ctx
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
