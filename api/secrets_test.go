package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// The values of a command's environment reach the run of its job and nobody else: no
// answer to anybody, no log, no input of a workflow.
func TestNoAnswerLogOrWorkflowHoldsSecrets(t *testing.T) {
	t.Parallel()
	const planted, password = "planted-7f3a9c", "planted-c41d0e"
	b := setup(t)
	b.register(t, "c1")
	project := b.project(t)
	created, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{
		Command: &apiclient.Command{Argv: []string{"sleep", "1"}, Env: map[string]string{"API_KEY": planted}}, PlacementWish: apiclient.PlacementWish{SizeClass: 2},
	})
	require.NoError(t, err)
	b.wait()
	// A repository with a password or a token is refused without repeating it.
	for _, user := range []string{"ada:" + password, password} {
		_, err = b.admin.ApplyProject(t.Context(), apiclient.Project{
			Name: "leak", SuiteHash: project.SuiteHash, Config: bench.ProjectConfig{Source: bench.CommitSource{Git: "https://" + user + "@example.org/a.git"}},
		}, false)
		require.ErrorContains(t, err, "the URL holds a password or a token")
		require.NotContains(t, err.Error(), password)
	}

	b.workflows.mu.Lock()
	inputs, err := json.Marshal(b.workflows.jobs)
	started := b.workflows.jobs
	b.workflows.mu.Unlock()
	require.NoError(t, err)
	require.NotEmpty(t, started)
	known := strings.NewReplacer("{request}", string(created.ID), "{job}", string(started[0].Key), "{project}", apiclient.AdHocProject, "{hash}", project.SuiteHash,
		"{name}", "c1", "{collector}", "c1", "{queue}", "user:wanda", "{shape}", string(started[0].Key), "{commit}", "abcdef0", "{key}", string(started[0].Key), "{run}", "none")
	answered := 0
	for _, p := range everyPath(t, b) {
		if p.method != http.MethodGet {
			continue
		}
		for _, role := range []string{"", api.RoleReader, api.RoleAdmin, api.RoleCollector} {
			r := b.send(t, role, p.method, known.Replace(p.path), "")
			require.NotContains(t, r.body, planted, "%s as %q", p.path, role)
			require.NotContains(t, r.body, password, "%s as %q", p.path, role)
			if r.status == http.StatusOK && role == "" && p.path != known.Replace(p.path) {
				answered++
			}
		}
	}
	require.Greater(t, answered, 6, "the paths name things that exist")
	require.NotContains(t, string(inputs), planted)
	require.NotContains(t, b.log.String(), planted)
	require.NotContains(t, b.log.String(), password)
	shown, err := b.nobody.Request(t.Context(), string(created.ID))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"API_KEY": "(hidden)"}, shown.Command.Env)
}
