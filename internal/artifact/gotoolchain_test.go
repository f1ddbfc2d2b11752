package artifact_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"go/version"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/sumdb/note"
	modzip "golang.org/x/mod/zip"

	"github.com/benchloom/benchloom/internal/artifact"
)

const toolchainModule = "golang.org/toolchain"

// goProxy is a module proxy and a checksum database with toolchains that consist of a few scripts.
type goProxy struct {
	t     *testing.T
	dir   string // laid out as a file:// proxy
	mu    sync.Mutex
	sums  map[string]string // by version; what the checksum database says
	proxy *httptest.Server
	sumDB string // GOSUMDB
}

func newGoProxy(t *testing.T) *goProxy {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the toolchains of this test are shell scripts")
	}
	p := &goProxy{t: t, dir: t.TempDir(), sums: map[string]string{}}
	require.NoError(t, os.MkdirAll(p.path(""), 0o755))
	p.proxy = httptest.NewServer(http.FileServer(http.Dir(p.dir)))
	t.Cleanup(p.proxy.Close)

	privateKey, publicKey, err := note.GenerateKey(rand.Reader, "sums.example.org")
	require.NoError(t, err)
	database := sumdb.NewServer(sumdb.NewTestServer(privateKey, func(_, version string) ([]byte, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		sum, ok := p.sums[version]
		if !ok {
			return nil, os.ErrNotExist
		}
		return []byte(sum), nil
	}))
	server := httptest.NewServer(database)
	t.Cleanup(server.Close)
	p.sumDB = publicKey + " " + server.URL
	return p
}

func (p *goProxy) path(name string) string {
	return filepath.Join(p.dir, "golang.org", "toolchain", "@v", name)
}

// provider returns the provider with the given GOPROXY, or this one.
func (p *goProxy) provider(goProxy string) *artifact.GoToolchain {
	if goProxy == "" {
		goProxy = p.proxy.URL
	}
	return &artifact.GoToolchain{Env: []string{"GOPROXY=" + goProxy, "GOSUMDB=" + p.sumDB,
		"GONOSUMDB=", "GONOPROXY=", "GOPRIVATE=", "GOFLAGS=", "GOENV=off"}}
}

func moduleVersion(release, platform string) string {
	return "v0.0.1-go" + release + "." + strings.ReplaceAll(platform, "/", "-")
}

// add publishes a toolchain that calls itself claims, and returns its sum.
func (p *goProxy) add(release, claims, platform string) string {
	p.t.Helper()
	tree := p.t.TempDir()
	for name, content := range map[string]string{
		"VERSION":                  "go" + claims + "\ntime 2026-01-01T00:00:00Z\n",
		"bin/go":                   "#!/bin/sh\necho go version go" + claims + " " + platform + "\n",
		"bin/gofmt":                "#!/bin/sh\n",
		"pkg/tool/x_y/compile":     "#!/bin/sh\n",
		"lib/wasm/go_js_wasm_exec": "#!/bin/sh\n",
		"lib/time/zoneinfo.zip":    "zones",
		"src/_go.mod":              "module std\n",
		"src/cmd/_go.mod":          "module cmd\n",
	} {
		file := filepath.Join(tree, filepath.FromSlash(name))
		require.NoError(p.t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(p.t, os.WriteFile(file, []byte(content), 0o644))
	}
	v := moduleVersion(release, platform)
	goMod := []byte("module " + toolchainModule + "\n")
	var zipped bytes.Buffer
	require.NoError(p.t, modzip.CreateFromDir(&zipped, module.Version{Path: toolchainModule, Version: v}, tree))
	require.NoError(p.t, os.WriteFile(p.path(v+".zip"), zipped.Bytes(), 0o644))
	require.NoError(p.t, os.WriteFile(p.path(v+".mod"), goMod, 0o644))
	require.NoError(p.t, os.WriteFile(p.path(v+".info"), []byte(`{"Version":"`+v+`"}`), 0o644))
	list, err := os.OpenFile(p.path("list"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(p.t, err)
	_, err = list.WriteString(v + "\n")
	require.NoError(p.t, err)
	require.NoError(p.t, list.Close())

	sum, err := dirhash.HashZip(p.path(v+".zip"), dirhash.Hash1)
	require.NoError(p.t, err)
	modHash := modSum(p.t, goMod)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sums[v] = fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", toolchainModule, v, sum, toolchainModule, v, modHash)
	return sum
}

func modSum(t *testing.T, goMod []byte) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), goMod, 0o644))
	sum, err := dirhash.HashDir(dir, "", dirhash.Hash1)
	require.NoError(t, err)
	return sum
}

func release(tag string) artifact.Request {
	return artifact.Request{Provider: "go-toolchain", Tag: tag}
}

func hostPlatform() string { return runtime.GOOS + "/" + runtime.GOARCH }

func TestAGoReleaseBecomesAGoroot(t *testing.T) {
	t.Parallel()
	p := newGoProxy(t)
	sum := p.add("1.99.1", "1.99.1", hostPlatform())
	for name, provider := range map[string]*artifact.GoToolchain{
		"from a proxy":     p.provider(""),
		"from a directory": p.provider("file://" + filepath.ToSlash(p.dir)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handle := acquire(t, openCache(t, artifact.Options{}, provider), release("go1.99.1"))
			defer handle.Release()
			require.Equal(t, sum, handle.Identity())
			require.Equal(t, artifact.Request{Provider: "go-toolchain", Tag: "1.99.1", Target: hostPlatform()}, handle.Request())
			for name, executable := range map[string]bool{
				"bin/go": true, "bin/gofmt": true, "pkg/tool/x_y/compile": true, "lib/wasm/go_js_wasm_exec": true,
				"lib/time/zoneinfo.zip": false, "src/go.mod": false, "src/cmd/go.mod": false,
			} {
				info, err := os.Stat(filepath.Join(handle.Dir(), filepath.FromSlash(name)))
				require.NoError(t, err)
				require.Equal(t, executable, info.Mode()&0o111 != 0, name)
			}
			files, err := os.ReadDir(handle.Dir())
			require.NoError(t, err)
			require.Len(t, files, 5, "nothing but the toolchain")
		})
	}
}

func TestAGoReleaseForAnotherPlatformIsNotRun(t *testing.T) {
	t.Parallel()
	p := newGoProxy(t)
	p.add("1.99.1", "1.99.1", "windows/arm64")
	req := release("1.99.1")
	req.Target = "aarch64-pc-windows-msvc"
	handle := acquire(t, openCache(t, artifact.Options{}, p.provider("")), req)
	defer handle.Release()
	require.Equal(t, "windows/arm64", handle.Request().Target)
}

func TestGoReleasesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	p := newGoProxy(t)
	for _, r := range []string{"1.99.1", "1.99.2", "1.99.3"} {
		p.add(r, r, hostPlatform())
	}
	p.add("1.99.4", "1.98.0", hostPlatform())
	// One was changed in transit, one is not an archive.
	other, err := os.ReadFile(p.path(moduleVersion("1.99.1", hostPlatform()) + ".zip"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.path(moduleVersion("1.99.2", hostPlatform())+".zip"), append(other[:len(other):len(other)], 0), 0o644))
	require.NoError(t, os.WriteFile(p.path(moduleVersion("1.99.3", hostPlatform())+".zip"), []byte("an error page"), 0o644))
	tampered := newGoProxy(t)
	tampered.add("1.99.1", "1.99.1", hostPlatform())
	tampered.mu.Lock()
	for v, sum := range tampered.sums {
		tampered.sums[v] = strings.Replace(sum, "h1:", "h1:A", 1)
	}
	tampered.mu.Unlock()

	answer := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "This module version is not available.", status)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	noGo := p.provider("")
	noGo.Command = filepath.Join(t.TempDir(), "go")
	unverified := p.provider("")
	unverified.Env = append(unverified.Env, "GOSUMDB=off")

	for name, c := range map[string]struct {
		provider *artifact.GoToolchain
		tag      string
		kind     artifact.Kind
		says     string
	}{
		"never released":     {p.provider(""), "1.99.7", artifact.NotFound, "go 1.99.7 for " + hostPlatform() + ": not found by the module proxy"},
		"not in a directory": {p.provider("file://" + filepath.ToSlash(p.dir)), "1.99.7", artifact.NotFound, "go list -m -versions golang.org/toolchain"},
		"refused":            {p.provider(answer(http.StatusForbidden)), "1.99.1", artifact.NotFound, "refused by the module proxy"},
		"switched off":       {p.provider("off"), "1.99.1", artifact.NotFound, "set GOPROXY"},
		"not verifiable":     {unverified, "1.99.1", artifact.NotFound, "unset GOSUMDB"},
		"proxy in trouble":   {p.provider(answer(http.StatusBadGateway)), "1.99.1", artifact.Unavailable, "502 Bad Gateway"},
		"proxy away":         {p.provider(closed.URL), "1.99.1", artifact.Unavailable, "check GOPROXY"},
		"wrong sum":          {tampered.provider(""), "1.99.1", artifact.Corrupt, "checksum mismatch"},
		"changed on its way": {p.provider(""), "1.99.2", artifact.Corrupt, "does not match the checksum database"},
		"not an archive":     {p.provider(""), "1.99.3", artifact.Corrupt, "not a valid zip file"},
		"another release":    {p.provider(""), "1.99.4", artifact.Corrupt, `VERSION says "go1.98.0"`},
		"without go":         {noGo, "1.99.1", artifact.ToolMissing, "install Go 1.21 or newer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := openCache(t, artifact.Options{}, c.provider)
			_, err := cache.Acquire(t.Context(), release(c.tag), nil)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.kind, artifact.KindOf(err), err)
			require.Empty(t, storedTags(t, cache))
			requireClean(t, cache)
		})
	}
}

func TestACancelledGoDownloadEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done() // until the go command is gone
	}))
	defer silent.Close()
	provider := &artifact.GoToolchain{Env: []string{"GOPROXY=" + silent.URL}}
	cache := openCache(t, artifact.Options{}, provider)
	_, err := cache.Acquire(ctx, release("1.99.1"), nil)
	require.Equal(t, artifact.Cancelled, artifact.KindOf(err), err)
	requireClean(t, cache)
}

func TestGoReleasesAreListed(t *testing.T) {
	t.Parallel()
	p := newGoProxy(t)
	for _, r := range []string{"1.99.10", "1.99.9", "1.99rc2", "1.98.0", "1.20"} {
		p.add(r, r, "linux/amd64")
	}
	p.add("1.99.11", "1.99.11", "linux/arm64")
	provider := p.provider("")
	const target = "x86_64-unknown-linux-gnu"
	releases, err := provider.Releases(t.Context(), target)
	require.NoError(t, err)
	require.Equal(t, []string{"1.20", "1.98.0", "1.99rc2", "1.99.9", "1.99.10"}, releases)

	latest, err := provider.LatestPatch(t.Context(), "go1.99", target)
	require.NoError(t, err)
	require.Equal(t, "1.99.10", latest)
	latest, err = provider.LatestPatch(t.Context(), "1.20", target)
	require.NoError(t, err)
	require.Equal(t, "1.20", latest)

	// A version that was never requested from the proxy is not listed, but exists.
	require.NoError(t, os.WriteFile(p.path("list"), nil, 0o644))
	for _, r := range []string{"1.97.0", "1.97.1"} {
		p.add(r, r, "linux/amd64")
	}
	require.NoError(t, os.WriteFile(p.path("list"), nil, 0o644))
	latest, err = provider.LatestPatch(t.Context(), "1.97", target)
	require.NoError(t, err)
	require.Equal(t, "1.97.1", latest)

	_, err = provider.LatestPatch(t.Context(), "1.96", target)
	require.Equal(t, artifact.NotFound, artifact.KindOf(err))
	_, err = provider.LatestPatch(t.Context(), "1.97.1", target)
	require.Equal(t, artifact.Invalid, artifact.KindOf(err))
}

func TestTagsThatAreNotGoReleases(t *testing.T) {
	t.Parallel()
	cache := openCache(t, artifact.Options{}, &artifact.GoToolchain{})
	for tag, says := range map[string]string{
		"1.25":               "the first release of it is 1.25.0",
		"tip":                "not a Go release",
		"1.25.3-custom":      "not a Go release",
		"1.25.3.linux-amd64": "not a Go release",
		"../1.25.3":          "not a Go release",
		"2.0.0":              "not a Go release",
	} {
		_, err := cache.Resolve(release(tag))
		require.ErrorContains(t, err, says, tag)
		require.Equal(t, artifact.Invalid, artifact.KindOf(err))
	}
	for tag, want := range map[string]string{"go1.25.3": "1.25.3", "1.26rc1": "1.26rc1", "go1.20": "1.20", "1.4.3": "1.4.3"} {
		got, err := cache.Resolve(release(tag))
		require.NoError(t, err)
		require.Equal(t, want, got.Tag)
	}
	_, err := cache.Resolve(artifact.Request{Provider: "go-toolchain", Tag: "1.25.3", Parameters: map[string]string{"path": "/"}})
	require.ErrorContains(t, err, `unknown parameter "path"`)
	_, err = cache.Resolve(artifact.Request{Provider: "go-toolchain", Tag: "1.25.3", Target: "sparc-sun-solaris"})
	require.ErrorContains(t, err, `no architecture for "sparc"`)
}

// This test needs the network. The release stays in the user's cache directory, so only the first run is slow.
func TestARealGoRelease(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("downloads a Go release of 64 MB")
	}
	base, err := os.UserCacheDir()
	require.NoError(t, err)
	provider := &artifact.GoToolchain{}
	cache := openCache(t, artifact.Options{Dir: filepath.Join(base, "benchloom-test", "artifacts")}, provider)
	const tag = "1.25.14"
	req := release(tag)
	handle := acquire(t, cache, req)
	defer handle.Release()
	if hostPlatform() == "linux/amd64" {
		require.Equal(t, "h1:XriDgll2yv4W2YeUo2X/WuUuy+iGJkXGH0CQloMBEXo=", handle.Identity())
	}
	list := exec.CommandContext(t.Context(), filepath.Join(handle.Dir(), "bin", "go"), "list", "-f", "{{.Standard}}", "fmt")
	list.Dir = filepath.Join(handle.Dir(), "src") // a module, thanks to the restored go.mod
	list.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=", "GOROOT="+handle.Dir())
	out, err := list.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "true\n", string(out))

	latest, err := provider.LatestPatch(t.Context(), "1.25", "")
	require.NoError(t, err)
	require.GreaterOrEqual(t, version.Compare("go"+latest, "go"+tag), 0, latest)
	_, err = cache.Acquire(t.Context(), release("1.25.999"), nil)
	require.Equal(t, artifact.NotFound, artifact.KindOf(err), err)
}
