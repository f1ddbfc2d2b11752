package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// configured applies a configuration to the project.
func (b *bundle) configured(t *testing.T, c bench.ProjectConfig) {
	t.Helper()
	p, err := b.admin.Project(t.Context(), "go")
	require.NoError(t, err)
	_, err = b.admin.ApplyProject(t.Context(), apiclient.Project{Name: p.Name, SuiteHash: p.SuiteHash, Config: c}, false)
	require.NoError(t, err)
}

// Pages lead to the repository on the web, at a forge of any kind.
func TestPagesLinkToTheRepository(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	at := compareGo + "?a=1.25.0&b=1.26.0"
	none := b.page(t, "", at)
	for _, link := range none.links() {
		require.False(t, strings.HasPrefix(link, "https://"), "nothing is known: %s", link)
	}

	b.configured(t, bench.ProjectConfig{Source: bench.CommitSource{Git: "https://github.com/golang/go", Releases: "1.*"}})
	require.Subset(t, b.page(t, "", at).links(), []string{
		"https://github.com/golang/go/commit/1.25.0", "https://github.com/golang/go/commit/1.26.0", "https://github.com/golang/go/compare/1.25.0...1.26.0",
	})

	b.configured(t, bench.ProjectConfig{Source: bench.CommitSource{Git: "/srv/go", Releases: "1.*", Web: bench.WebLinks{
		Commit: "https://git.example.org/go/c/{commit}", Diff: "https://git.example.org/go/d?from={from}&to={to}", PullRequest: "https://git.example.org/go/r/{number}",
	}}})
	p := b.page(t, "", at)
	p.requireSound(t, "links")
	require.Subset(t, p.links(), []string{"https://git.example.org/go/c/1.25.0", "https://git.example.org/go/d?from=1.25.0&to=1.26.0"})
	open := b.page(t, "", goHistory+"?open=gin")
	open.requireSound(t, "values")
	require.Subset(t, open.links(), []string{"https://git.example.org/go/c/1.26.0", "https://git.example.org/go/d?from=1.25.0&to=1.26.0"})

	sha := strings.Repeat("a", 40)
	_, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Type: bench.Master, Tag: sha, PR: 7})
	require.NoError(t, err)
	request := b.page(t, "", "/requests/go:"+sha)
	request.requireSound(t, "a request")
	require.Subset(t, request.links(), []string{"https://git.example.org/go/c/" + sha, "https://git.example.org/go/r/7"})
}

func TestAPIRefusesLinksThatAreNone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project := b.project(t)
	project.Config.Source.Web.Commit = "http://git.example.org/{commit}"
	_, err := b.admin.ApplyProject(t.Context(), project, false)
	require.Equal(t, http.StatusUnprocessableEntity, problemOf(t, err).Status)
	require.ErrorContains(t, err, "source.web.commit")
}

// One comes to a history from where one sees what there is.
func TestPagesLeadToHistories(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	for _, path := range []string{"/", "/projects/go/queue", compareGo + "?a=1.25.0&b=1.26.0", "/projects/go"} {
		p := b.page(t, api.RoleReader, path)
		p.requireSound(t, path)
		require.Contains(t, p.links(), goHistory, path)
	}
}
