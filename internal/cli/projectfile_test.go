package cli_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func TestReadProjectFile(t *testing.T) {
	t.Parallel()
	p, err := cli.ReadProjectFile("dir/project.yaml", []byte(`
name: go
suite: ../suites/go
description: The Go toolchain
targets: [x86_64-unknown-linux-gnu]
artifacts:
  provider: go-toolchain
  tags: {1.99.0: {provider: goroot, parameters: {path: /go}}}
queue: {policy: upstream, max_in_progress: 2}
size: {class: 4}
max_job_fails: 5
failover_after: never
benchmark_sets:
  - {name: front, pool: rack-1, benchmarks: [gin, echo]}
`))
	require.NoError(t, err)
	require.Equal(t, cli.ProjectFile{
		Name: "go", Suite: filepath.Join("suites", "go"),
		ProjectConfig: bench.ProjectConfig{
			Description: "The Go toolchain", Targets: []bench.Target{linux},
			Artifacts: bench.ArtifactSource{
				Provider: "go-toolchain",
				Tags:     map[string]bench.TagSource{"1.99.0": {Provider: "goroot", Parameters: map[string]string{"path": "/go"}}},
			},
			Queue: bench.QueuePolicy{Policy: "upstream", MaxInProgress: 2}, Size: bench.SizePolicy{Class: 4}, MaxJobFails: 5,
			FailoverAfter: "never", BenchmarkSets: []bench.BenchmarkSet{{Name: "front", Pool: "rack-1", Benchmarks: []string{"gin", "echo"}}},
		},
	}, p)
}

func TestProjectFileMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                       "p.yaml has no name",
		"name: go\nsuit: x":                      `p.yaml:2:1: unknown field "suit"`,
		"name: go\nname: rust":                   "p.yaml:2:1: ",
		"name: [go]":                             "p.yaml:1:7: ",
		"name: go\nqueue: {max_in_progress: no}": "p.yaml:2:26: ",
		"name: Go":                               `p.yaml: invalid value: project "Go"`,
		"name: go\ntargets: [linux]":             "write a target tuple",
		"name: go\n\tsuite: x":                   "p.yaml:",
		"name: go\nsize: {class: 5000}":          "from 1 to 4096",
		"name: go\nverify: sometimes":            "use off, suspects or all",
		"name: go\nmax_job_fails: 0":             "use 1 to 20, or leave it out for 3",
		"name: go\nsize: {exponent: .nan}":       "size exponent \"NaN\": write a number",
		"name: go\nfailover_after: 5":            "use a duration",
		"name: go\nbenchmark_sets: [{name: a}]":  `pool ""`,
	} {
		_, err := cli.ReadProjectFile("p.yaml", []byte(text))
		require.ErrorIs(t, err, bench.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "\n", text)
	}
}

func FuzzReadProjectFile(f *testing.F) {
	for _, seed := range []string{"name: go\nsuite: x\n", "name: &a go\nsuite: *a\n", "? {}\n: x", "name: go\nartifacts: {tags: {a: }}", "<<: {name: go}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := cli.ReadProjectFile("p.yaml", text)
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			return
		}
		require.NoError(t, bench.CheckName("project", p.Name))
		require.NoError(t, p.Check())
	})
}

// YAML 1.1 reads off as a boolean; v0.1.0 wrote one.
func TestWhatIsVerifiedIsReadFromAFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bench.VerifyMode{
		"off": bench.VerifyOff, "false": bench.VerifyOff, "true": bench.VerifySuspects, "suspects": bench.VerifySuspects, "all": bench.VerifyAll, `"off"`: bench.VerifyOff,
	} {
		p, err := cli.ReadProjectFile("p.yaml", []byte("name: go\nverify: "+text+"\nverify_budget: 10%"))
		require.NoError(t, err, text)
		require.Equal(t, want, p.ProjectConfig.VerifyMode(), text)
		require.Equal(t, "10%", p.ProjectConfig.VerifyBudget)
	}
}
