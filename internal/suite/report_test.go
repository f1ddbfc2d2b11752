package suite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

func messages(r suite.Report) []string {
	var list []string
	for _, p := range r.Problems {
		list = append(list, p.String())
	}
	return list
}

func TestCheckCountsAndWarns(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"suite.yaml": `name: careless
artifact: {provider: goroot}
targets: [x86_64-unknown-linux-gnu]
vars: {used: x, unused: y}
profiles: {build: {}, race: {}}
backends: {gc: {}, other: {}}
procedures:
  compiletime:
    files: programs/${benchmark}
    measure: {run: [sh, "${suite}/run.sh", "${used}", "${suite}/data/in.txt"]}
    scenarios: {full: {}, never: {}}
    exclude:
      - {profile: race, reason: broken}
      - {backend: other, reason: broken}
      - {scenario: never, reason: broken}
benchmarks: [{name: a}, {name: b, exclude: [{profile: build, reason: broken}]}]
sets: {demo: {benchmarks: [a]}}
`,
		"programs/a/main.go": "", "programs/b/main.go": "", "programs/c/main.go": "", "run.sh": "", "data/in.txt": "", "README.md": "", "old/notes": "",
	})
	report, err := suite.Check(dir)
	require.NoError(t, err)
	require.True(t, report.OK())
	require.Equal(t, []string{
		"old/notes: warning: nothing in the suite names this file",
		"programs/b/main.go: warning: nothing in the suite names this file",
		"programs/c/main.go: warning: nothing in the suite names this file",
		"suite.yaml:4:17: warning: the variable unused is never used",
		"suite.yaml:5:23: warning: the profile race has no test case: no benchmark is measured with it, or all are excluded",
		"suite.yaml:6:20: warning: the backend other has no test case: no benchmark is measured with it, or all are excluded",
		"suite.yaml:11:27: warning: the scenario never has no test case: no benchmark is measured with it, or all are excluded",
		"suite.yaml:16:32: warning: the benchmark b has no test case: all its combinations are excluded",
	}, messages(report))
	require.Equal(t, []suite.SelectionSize{{Jobs: 1, TestCases: 1}, {Set: "demo", Jobs: 1, TestCases: 1}}, report.Sizes)
	require.Equal(t, "careless", report.Name)
	require.Len(t, report.Hash, 64)
}

func TestCheckReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"suite.yaml": "name: x\n"})
	require.NoError(t, os.Symlink("suite.yaml", filepath.Join(dir, "link")))
	report, err := suite.Check(dir)
	require.NoError(t, err)
	require.False(t, report.OK())
	require.Len(t, report.Problems, 3)
	require.Contains(t, report.Problems[0].Message, "link is a link or special file")

	_, err = suite.Check(filepath.Join(dir, "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The generated suite must work: it is valid, and both builds of its program
// find the same words.
func TestInitMakesASuiteThatWorks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a folder", "mine")
	require.NoError(t, suite.Init(dir, "mine"))
	report, err := suite.Check(dir)
	require.NoError(t, err)
	require.Empty(t, messages(report))
	s, err := suite.LoadDir(dir)
	require.NoError(t, err)
	require.Equal(t, "mine", s.Name())
	require.Equal(t, map[string]string{"path": filepath.Join(dir, "builds", "{tag}")}, s.Artifact().Parameters)

	plans, err := s.Expand(bench.Selection{Targets: []bench.Target{linux}})
	require.NoError(t, err)
	require.Len(t, plans, 1)
	for _, tc := range plans[0].TestCases {
		var outputs []string
		for _, tag := range []string{"v1", "v2"} {
			paths := suite.Paths{Suite: dir, Artifact: filepath.Join(dir, "builds", tag), Prepared: t.TempDir(), Work: t.TempDir(), Cache: t.TempDir()}
			recipe, err := s.Recipe(tc, paths, 0)
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), recipe.Measure.Run[0], recipe.Measure.Run[1:]...)
			cmd.Env = append(os.Environ(), "LC_ALL=C")
			output, err := cmd.Output()
			require.NoError(t, err)
			outputs = append(outputs, strings.Join(strings.Fields(string(output)), " "))
		}
		require.Contains(t, outputs[0], " the ")
		require.Equal(t, outputs[0], outputs[1])
	}

	err = suite.Init(dir, "mine")
	require.ErrorIs(t, err, os.ErrExist)
	require.ErrorContains(t, err, "choose another folder")
	require.ErrorIs(t, suite.Init(filepath.Join(dir, "other"), "Bad Name"), bench.ErrInvalid)
}
