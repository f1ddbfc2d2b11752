package bench_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestCommitSourceDefaults(t *testing.T) {
	t.Parallel()
	require.False(t, bench.CommitSource{}.Configured())
	require.NoError(t, bench.CommitSource{}.Check())

	c, err := bench.ReadProjectConfig([]byte(`{"source": {"git": "/srv/repo"}}`))
	require.NoError(t, err)
	s := c.Source
	now := time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)
	require.True(t, s.Configured())
	require.Equal(t, "main", s.BranchName())
	require.Equal(t, time.Minute, s.Interval())
	require.Equal(t, 100, s.FirstRequests(), "all within the look-back")
	require.Equal(t, 100, s.LookBack.Limit())
	require.Equal(t, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), s.LookBack.Since(now))
}

func TestCommitSourceRoundTrip(t *testing.T) {
	t.Parallel()
	none := 0
	want := bench.ProjectConfig{Source: bench.CommitSource{
		Git: "https://example.org/a.git", Branch: "release/1.x", LookBack: bench.LookBack{Commits: 5, Days: 2}, Releases: "v[0-9]*", Every: "90s", Backfill: &none,
	}}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	got, err := bench.ReadProjectConfig(text)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, "release/1.x", got.Source.BranchName())
	require.Equal(t, 90*time.Second, got.Source.Interval())
	require.Zero(t, got.Source.FirstRequests(), "0 is a number here: nothing of what is there already")
}

func TestRepositoriesThatGitCanFetch(t *testing.T) {
	t.Parallel()
	for _, git := range []string{
		"/srv/repo", "/srv/with space/repo.git", "https://example.org/a.git", "http://127.0.0.1:8080/a", "ssh://git@example.org/a.git",
		"git://example.org/a.git", "file:///srv/repo", "git@example.org:team/a.git", "example.org:a",
	} {
		require.NoError(t, bench.CommitSource{Git: git}.Check(), git)
	}
}

func TestInvalidCommitSourcesAreRefused(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		`{"branch": "main"}`:                                `source.git "": name the repository`,
		`{"git": "../repo"}`:                                `source.git "../repo": write an absolute path`,
		`{"git": "repo"}`:                                   `a relative path means nothing there`,
		`{"git": "--upload-pack=touch /tmp/x"}`:             `source.git`,
		`{"git": "ext::sh -c date"}`:                        `write an absolute path, or an https`,
		`{"git": "ftp://example.org/a"}`:                    `use https, http, ssh, git or file`,
		`{"git": "ssh://-oProxyCommand=date/a"}`:            `names no host`,
		`{"git": "file://elsewhere/a"}`:                     `a file URL names an absolute path`,
		`{"git": "https://ada:s3cret@example.org/a.git"}`:   `the URL holds a password`,
		`{"git": "ssh://ada:s3cret@example.org/a.git"}`:     `the URL holds a password`,
		`{"git": "https://ada:s3%c@ret@example.org/a.git"}`: `the URL holds a password`,
		`{"git": "/a", "branch": "a b"}`:                    `source.branch "a b"`,
		`{"git": "/a", "branch": "--all"}`:                  `source.branch`,
		`{"git": "/a", "branch": "main..dev"}`:              `source.branch`,
		`{"git": "/a", "branch": "HEAD@{1}"}`:               `source.branch`,
		`{"git": "/a", "releases": "v["}`:                   `source.releases "v["`,
		`{"git": "/a", "every": "1s"}`:                      `source.every "1s": write a duration from 5s to 24h`,
		`{"git": "/a", "every": "soon"}`:                    `source.every "soon"`,
		`{"git": "/a", "every": "48h"}`:                     `source.every`,
		`{"git": "/a", "backfill": -1}`:                     `source.backfill "-1": use 0 to 10000`,
		`{"git": "/a", "look_back": {"commits": 10001}}`:    `source.look_back.commits "10001"`,
		`{"git": "/a", "look_back": {"days": -1}}`:          `source.look_back.days "-1"`,
	} {
		_, err := bench.ReadProjectConfig([]byte(`{"source": ` + text + `}`))
		require.ErrorIs(t, err, bench.ErrInvalid, text)
		require.ErrorContains(t, err, reason, text)
		require.NotContains(t, err.Error(), "s3", "no password is repeated")
	}
}

// A token is refused where it would be stored; a project that has one already can be read.
func TestTokensInCommitSourcesAreRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"https://s3cret@example.org/a.git", "http://s3cret@example.org/a.git", "https://ada:s3cret@example.org/a.git"} {
		err := bench.CommitSource{Git: address}.CheckSecrets()
		require.ErrorContains(t, err, "the URL holds a password or a token")
		require.NotContains(t, err.Error(), "s3cret")
	}
	for _, address := range []string{"", "/srv/a@b", "https://example.org/@a", "ssh://git@example.org/a.git", "git@example.org:team/a.git"} {
		require.NoError(t, bench.CommitSource{Git: address}.CheckSecrets())
	}
	_, err := bench.ReadProjectConfig([]byte(`{"source": {"git": "https://s3cret@example.org/a.git"}}`))
	require.NoError(t, err)
}
