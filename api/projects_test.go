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
	"github.com/benchloom/benchloom/internal/store"
)

func TestAProjectIsAppliedAndRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := packed(t, smallSuite)
	info, err := b.writer.PutSuite(t.Context(), s.Hash, s.Archive)
	require.NoError(t, err)
	require.Equal(t, apiclient.SuiteInfo{Hash: s.Hash, Name: "small", Description: "A suite for tests.", Benchmarks: []string{"gin", "kit", "sort"}, Sets: []string{"one"}}, info)

	wanted := apiclient.Project{Name: "go", SuiteHash: s.Hash, Config: bench.ProjectConfig{Targets: []bench.Target{linux}, Queue: bench.QueuePolicy{MaxInProgress: 2}}}
	all := []string{
		"the project is new", "queue.max_in_progress is set to 2", `targets is set to ["x86_64-unknown-linux-gnu"]`,
		"the suite changes from none to small (" + s.Hash[:12] + ")",
	}

	// A dry run tells what would change, and changes nothing.
	applied, err := b.admin.ApplyProject(t.Context(), wanted, true)
	require.NoError(t, err)
	require.Equal(t, all, applied.Changes)
	require.True(t, applied.Changed)
	require.True(t, applied.DryRun)
	_, err = b.nobody.Project(t.Context(), "go")
	require.ErrorIs(t, err, apiclient.ErrNotFound)

	applied, err = b.admin.ApplyProject(t.Context(), wanted, false)
	require.NoError(t, err)
	require.Equal(t, all, applied.Changes)
	require.Equal(t, "small", applied.Project.Suite)
	require.NotZero(t, applied.Project.CreatedAt)

	// Again: nothing changes.
	applied, err = b.admin.ApplyProject(t.Context(), wanted, false)
	require.NoError(t, err)
	require.False(t, applied.Changed)
	require.Empty(t, applied.Changes)
	require.NotZero(t, applied.Project.UpdatedAt)

	// What was read can be applied again, changed in one place.
	read, err := b.nobody.Project(t.Context(), "go")
	require.NoError(t, err)
	require.Equal(t, wanted.Config, read.Config)
	read.Config.Queue.MaxInProgress = 0
	read.Config.Size.Class = 4
	read.Config.Targets = []bench.Target{arm}
	applied, err = b.admin.ApplyProject(t.Context(), read, false)
	require.NoError(t, err)
	require.Equal(t, []string{
		"queue.max_in_progress is no longer set (was 2)", "size.class is set to 4",
		`targets changes from ["x86_64-unknown-linux-gnu"] to ["aarch64-unknown-linux-gnu"]`,
	}, applied.Changes)

	list, err := b.nobody.Projects(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, apiclient.AdHocProject, list[0].Name)
	require.Equal(t, applied.Project, list[1])
}

func TestInvalidProjectsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := packed(t, smallSuite)
	_, err := b.writer.PutSuite(t.Context(), s.Hash, s.Archive)
	require.NoError(t, err)
	missing := strings.Repeat("0", 64)
	for want, p := range map[string]apiclient.Project{
		"project \"Go\": use 1 to 64 lower-case letters":                                {Name: "Go"},
		"body.config.queue.policy: expected value to be one of \"spec, upstream\"":      {Name: "go", Config: bench.ProjectConfig{Queue: bench.QueuePolicy{Policy: "fifo"}}},
		"project go: target \"linux\": write a target tuple":                            {Name: "go", Config: bench.ProjectConfig{Targets: []bench.Target{"linux"}}},
		"the suite 000000000000 of project go is not stored; upload it first":           {Name: "go", SuiteHash: missing},
		"project go: unknown target \"i686-unknown-linux-gnu\"; the suite has x86_64":   {Name: "go", SuiteHash: s.Hash, Config: bench.ProjectConfig{Targets: []bench.Target{"i686-unknown-linux-gnu"}}},
		"body.config.max_job_fails: expected number <= 20":                              {Name: "go", Config: bench.ProjectConfig{MaxJobFails: 21}},
		"project go: benchmark sets of target \"x86_64-unknown-linux-gnu\": no set has": {Name: "go", SuiteHash: s.Hash, Config: bench.ProjectConfig{BenchmarkSets: []bench.BenchmarkSet{{Name: "a", Pool: "main", Benchmarks: []string{"gin"}}}}},
		"project go: failover_after \"soon\": use a duration":                           {Name: "go", Config: bench.ProjectConfig{FailoverAfter: "soon"}},
		"project go: tag \"-\": use 1 to 128 letters":                                   {Name: "go", Config: bench.ProjectConfig{Artifacts: bench.ArtifactSource{Tags: map[string]bench.TagSource{"-": {Provider: "goroot"}}}}},
	} {
		_, err := b.admin.ApplyProject(t.Context(), p, false)
		require.ErrorContains(t, err, want)
		require.Equal(t, http.StatusUnprocessableEntity, problemOf(t, err).Status)
	}
	r := b.send(t, api.RoleAdmin, http.MethodPut, "/api/v1/projects/go", `{"name":"rust","config":{}}`)
	require.Contains(t, r.problem(t).Detail, `the path names the project "go", the body "rust"`)

	_, err = b.nobody.Project(t.Context(), "rust")
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	require.ErrorContains(t, err, `there is no project "rust"; the projects are adhoc`)
}

func TestAProjectWithABrokenConfigurationCanBeMended(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.store.ApplyProject(t.Context(), store.Project{Name: "go", Config: json.RawMessage(`{"max_job_fails":1000}`)})
	require.NoError(t, err)
	_, err = b.nobody.Project(t.Context(), "go")
	require.ErrorContains(t, err, "apply a corrected configuration")
	_, err = b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go"}, false)
	require.NoError(t, err)
	_, err = b.nobody.Project(t.Context(), "go")
	require.NoError(t, err)
}

func TestSuitesAreCheckedBeforeTheyAreStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := packed(t, smallSuite)
	for range 2 { // once more changes nothing
		_, err := b.writer.PutSuite(t.Context(), s.Hash, s.Archive)
		require.NoError(t, err)
	}
	for _, client := range []*apiclient.Client{b.nobody, b.collector} {
		archive, err := client.SuiteArchive(t.Context(), s.Hash)
		require.NoError(t, err)
		require.Equal(t, s.Archive, archive)
	}

	other := strings.Repeat("a", 64)
	_, err := b.writer.PutSuite(t.Context(), other, s.Archive)
	require.ErrorContains(t, err, "have the hash "+s.Hash+", not "+other)
	_, err = b.writer.PutSuite(t.Context(), "abc", s.Archive)
	require.ErrorContains(t, err, `the suite hash "abc" is invalid`)
	_, err = b.writer.PutSuite(t.Context(), other, []byte("no archive"))
	require.ErrorContains(t, err, "this is not a .tar.gz")
	_, err = b.nobody.SuiteArchive(t.Context(), other)
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	require.ErrorContains(t, err, "upload it with PUT")

	// All that is wrong is named, with its place.
	wrong := packed(t, strings.ReplaceAll(strings.ReplaceAll(smallSuite, "iterations: 2", "iterations: none"), "sets: {one: {benchmarks: [gin]", "sets: {one: {benchmarks: [jin]"))
	_, err = b.writer.PutSuite(t.Context(), wrong.Hash, wrong.Archive)
	p := problemOf(t, err)
	require.Equal(t, http.StatusUnprocessableEntity, p.Status)
	require.NotEmpty(t, p.Errors)
	require.Equal(t, "suite.yaml:5:13", p.Errors[0].Location)
	require.ErrorContains(t, err, "'benchloom suite check'")
	_, err = b.nobody.SuiteArchive(t.Context(), wrong.Hash)
	require.ErrorIs(t, err, apiclient.ErrNotFound)
}

func TestASuiteThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.MaxSuite = 100 })
	s := packed(t, smallSuite)
	_, err := b.writer.PutSuite(t.Context(), s.Hash, s.Archive)
	require.Equal(t, http.StatusRequestEntityTooLarge, problemOf(t, err).Status)
}
