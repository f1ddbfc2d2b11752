package artifact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/artifact"
)

func TestTargetsAreMappedToGo(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"":                              hostPlatform(),
		"x86_64-unknown-linux-gnu":      "linux/amd64",
		"x86_64-unknown-linux-musl":     "linux/amd64",
		"aarch64-unknown-linux-gnu":     "linux/arm64",
		"x86_64-apple-darwin":           "darwin/amd64",
		"aarch64-apple-darwin":          "darwin/arm64",
		"arm64-apple-darwin23.1":        "darwin/arm64",
		"x86_64-pc-windows-msvc":        "windows/amd64",
		"i686-unknown-linux-gnu":        "linux/386",
		"armv7-unknown-linux-gnueabihf": "linux/arm",
		"riscv64gc-unknown-linux-gnu":   "linux/riscv64",
		"powerpc64le-unknown-linux-gnu": "linux/ppc64le",
		"s390x-unknown-linux-gnu":       "linux/s390x",
		"loongarch64-unknown-linux-gnu": "linux/loong64",
		"x86_64-unknown-freebsd":        "freebsd/amd64",
		"linux/arm64":                   "linux/arm64",
	} {
		got, err := artifact.ParseGoPlatform(target)
		require.NoError(t, err, target)
		require.Equal(t, want, got.String(), target)
	}
	for _, target := range []string{"x86_64", "x86_64-unknown-none", "vax-dec-ultrix", "linux/", "linux/../x", "-linux"} {
		_, err := artifact.ParseGoPlatform(target)
		require.ErrorContains(t, err, target)
	}
}

func TestKeysTellRequestsApart(t *testing.T) {
	t.Parallel()
	parameters := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	seen := map[string]artifact.Request{}
	for _, req := range []artifact.Request{
		{Provider: "a", Tag: "b"},
		{Provider: "a b"},
		{Provider: "a", Tag: `b" "`},
		{Provider: "a", Target: "b"},
		{Provider: "a", Tag: "b", Target: "c"},
		{Provider: "a", Tag: "b", Parameters: parameters("c", "d")},
		{Provider: "a", Tag: "b", Parameters: parameters("c", "d", "e", "f")},
		{Provider: "a", Tag: "b", Parameters: parameters("c", `d" "e"="f`)},
		{Provider: "a", Tag: "b", Parameters: parameters("c=d", "")},
	} {
		require.NotContains(t, seen, req.Key())
		seen[req.Key()] = req
	}
	for range 20 { // the order of a map changes
		require.Contains(t, seen, artifact.Request{Provider: "a", Tag: "b", Parameters: parameters("e", "f", "c", "d")}.Key())
	}
}

// Resolving a resolved request does not change it.
func FuzzResolve(f *testing.F) {
	for _, tag := range []string{"go1.25.3", "1.26rc1", "/usr/local/go", "nightly-2025-01-31", "v1", "feature/x", "{target}"} {
		f.Add(tag, "x86_64-unknown-linux-gnu", "/srv/{tag}/{target}")
		f.Add(tag, "", "https://example.org/{tag}?t={target}")
	}
	providers := []artifact.Provider{&artifact.GoToolchain{}, artifact.GOROOT{}, artifact.Directory{}, &artifact.Rustup{}, &artifact.URL{}}
	parameter := map[string]string{"goroot": "path", "directory": "path", "url": "url"}
	f.Fuzz(func(t *testing.T, tag, target, template string) {
		for _, p := range providers {
			req := artifact.Request{Provider: p.Name(), Tag: tag, Target: target}
			if name := parameter[p.Name()]; name != "" {
				req.Parameters = map[string]string{name: template}
			}
			first, err := p.Resolve(req)
			if err != nil {
				require.Equal(t, artifact.Invalid, artifact.KindOf(err))
				continue
			}
			again, err := p.Resolve(first)
			require.NoError(t, err)
			require.Equal(t, first.Key(), again.Key())
		}
	})
}
