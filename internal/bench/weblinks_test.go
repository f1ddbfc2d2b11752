package bench_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// addresses returns those of a commit, a difference and a pull request.
func addresses(s bench.CommitSource) []string {
	return []string{s.CommitAddress("bbb"), s.DiffAddress("aaa", "bbb"), s.PullRequestAddress(7)}
}

func TestLinksFollowFromTheRepository(t *testing.T) {
	t.Parallel()
	for git, want := range map[string][]string{
		"https://github.com/team/app.git": {"https://github.com/team/app/commit/bbb", "https://github.com/team/app/compare/aaa...bbb", "https://github.com/team/app/pull/7"},
		"https://example.org/a%7Bb/":      {"https://example.org/a%7Bb/commit/bbb", "https://example.org/a%7Bb/compare/aaa...bbb", ""},
		"http://github.com/team/app":      {"", "", ""},
		"git@github.com:team/app.git":     {"", "", ""},
		"/srv/app":                        {"", "", ""},
		"":                                {"", "", ""},
	} {
		require.Equal(t, want, addresses(bench.CommitSource{Git: git}), git)
	}
}

func TestLinksAreAsConfigured(t *testing.T) {
	t.Parallel()
	s := bench.CommitSource{Git: "https://github.com/team/app", Web: bench.WebLinks{
		Diff: "https://git.example.org/?repository=app&from={from}&to={to}", PullRequest: "https://reviews.example.org/{number}/",
	}}
	require.NoError(t, s.Check())
	require.Equal(t, []string{"https://github.com/team/app/commit/bbb", "https://git.example.org/?repository=app&from=aaa&to=bbb", "https://reviews.example.org/7/"}, addresses(s))
	alone := bench.CommitSource{Web: bench.WebLinks{Commit: "https://git.example.org:8443/app/{commit}/{commit}.html"}}
	require.NoError(t, alone.Check(), "without a repository")
	require.Equal(t, []string{"https://git.example.org:8443/app/bbb/bbb.html", "", ""}, addresses(alone))

	// Whatever a commit or a tag is called, it stays in its place.
	require.Equal(t, "https://git.example.org/?repository=app&from=%7Bto%7D&to=a%26b%2Fc%23d", s.DiffAddress("{to}", "a&b/c#d"))
	require.Equal(t, "https://github.com/team/app/commit/a%2F..%3Fb%23c", s.CommitAddress("a/..?b#c"))
	require.Empty(t, s.CommitAddress(""))
	require.Empty(t, s.DiffAddress("aaa", "aaa"))
	require.Empty(t, s.PullRequestAddress(0))
}

// The repository names commits, and releases if they are told from its tags.
func TestArtifactsAreNamedByTheRepository(t *testing.T) {
	t.Parallel()
	s := bench.CommitSource{Git: "/srv/app", Releases: "v*"}
	for want, of := range map[bool][]bench.RequestType{true: {bench.Master, bench.Try, bench.Release}, false: {bench.AdHoc}} {
		for _, one := range of {
			require.Equal(t, want, s.Names(one, "v1.2.0"), one)
		}
	}
	require.False(t, s.Names(bench.Release, "1.2.0"))
	require.False(t, bench.CommitSource{}.Names(bench.Release, "v1.2.0"))
}

func TestInvalidLinksAreRefused(t *testing.T) {
	t.Parallel()
	for template, reason := range map[string]string{
		"http://example.org/{commit}":                               "write an https URL with {commit}",
		"javascript:alert(1)//{commit}":                             "write an https URL",
		"HTTPS://example.org/{commit}":                              "write an https URL",
		"//example.org/{commit}":                                    "write an https URL",
		"https://example.org/":                                      "write an https URL with {commit}",
		"https://example.org/{commit}/{number}":                     "nothing but {commit} is filled in",
		"https://example.org/{{commit}}":                            "nothing but {commit} is filled in",
		"https://{commit}.example.org/":                             "names no host, or a part of it",
		"https://example.org:{commit}/":                             "names no host, or a part of it",
		"https:///{commit}":                                         "names no host",
		"https://:443/{commit}":                                     "names no host",
		"https://ada:s3cret@example.org/{commit}":                   "the URL holds a user",
		"https://example.org/{commit}#top":                          "without a fragment",
		"https://example.org/{commit} x":                            "plain characters",
		"https://example.org/\u202e{commit}":                        "plain characters",
		"https://example.org/%zz/{commit}":                          "names no host",
		"https://example.org/{commit}/" + strings.Repeat("x", 1000): "plain characters",
	} {
		err := bench.CommitSource{Git: "/srv/app", Web: bench.WebLinks{Commit: template}}.Check()
		require.ErrorIs(t, err, bench.ErrInvalid, template)
		require.ErrorContains(t, err, "source.web.commit", template)
		require.ErrorContains(t, err, reason, template)
		require.NotContains(t, err.Error(), "s3cret")
		require.Less(t, len(err.Error()), 1000)
	}
	require.ErrorContains(t, bench.CommitSource{Web: bench.WebLinks{Diff: "https://example.org/{to}"}}.Check(), `source.web.diff`)
	require.ErrorContains(t, bench.CommitSource{Web: bench.WebLinks{PullRequest: "https://example.org/{commit}"}}.Check(), `source.web.pull_request`)
}
