package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// shellSuite is a suite of shell scripts: real processes that are quick to measure.
// Its artifacts are directories with a file "work", the number of loops. Each
// execution appends a line to a log, so that tests can count executions.
type shellSuite struct {
	dir       string // of the suite
	artifacts string // parent of the artifacts' directories
	// log is the file of executions; isolated benchmarks, who may write no such file, have
	// one in the cache directory of each collector, of which this is the pattern.
	log string
}

// isolating reports whether the tests run with benchmarks kept apart (BENCHLOOM_ISOLATION=on).
func isolating() bool { return os.Getenv("BENCHLOOM_ISOLATION") == "on" }

// newSuite makes the directories of a suite.
func newSuite(t *testing.T) shellSuite {
	t.Helper()
	root := t.TempDir()
	s := shellSuite{dir: filepath.Join(root, "suite"), artifacts: filepath.Join(root, "artifacts"), log: filepath.Join(root, executionsFile)}
	require.NoError(t, os.MkdirAll(s.dir, 0o755))
	require.NoError(t, os.MkdirAll(s.artifacts, 0o755))
	if isolating() {
		s.log = filepath.Join(filepath.Dir(root), "*", "state", "collectors", "*", "caches", "*", "*", executionsFile)
	} else {
		require.NoError(t, os.WriteFile(s.log, nil, 0o666))
	}
	return s
}

const executionsFile = "executions"

// logged is the path of the log, as the suite has it.
func (s shellSuite) logged() string {
	if isolating() {
		return "${cache}/" + executionsFile
	}
	return s.log
}

// order returns the executions in the order in which the benchmarks logged them; isolated
// ones in that order by collector.
func (s shellSuite) order(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(s.log)
	require.NoError(t, err)
	var lines []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines = append(lines, slices.Collect(strings.Lines(string(text)))...)
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

const shellSuiteYAML = `name: shell
description: shell scripts that count
artifact: {provider: directory, parameters: {path: "%[1]s/{tag}"}}
iterations: 3
procedures:
  runtime:
    measure: {run: [sh, "${suite}/count.sh", "${artifact}", "${name}", "%[2]s"]}
benchmarks:
%[3]s`

const countScript = `# counts to what the artifact says, and tells the log that it ran
echo "$2 $(basename "$1")" >> "$3"
n=$(cat "$1/work")
i=0
while [ "$i" -lt "$n" ]; do i=$((i + 1)); done
`

// newShellSuite makes a suite with a number of benchmarks.
func newShellSuite(t *testing.T, benchmarks int) shellSuite {
	t.Helper()
	s := newSuite(t)
	var list strings.Builder
	for i := range benchmarks {
		fmt.Fprintf(&list, "  - {name: count-%d, kind: runtime, vars: {name: count-%[1]d}}\n", i+1)
	}
	s.write(t, "suite.yaml", fmt.Sprintf(shellSuiteYAML, s.artifacts, s.logged(), list.String()))
	s.write(t, "count.sh", countScript)
	return s
}

func (s shellSuite) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644))
}

// artifact makes an artifact whose benchmarks run a number of loops.
func (s shellSuite) artifact(t *testing.T, tag string, work int) {
	t.Helper()
	dir := filepath.Join(s.artifacts, tag)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "work"), []byte(fmt.Sprint(work)), 0o644))
}

// executions counts executions by "benchmark tag".
func (s shellSuite) executions(t *testing.T) map[string]int {
	t.Helper()
	out := make(map[string]int)
	for _, line := range s.order(t) {
		out[line]++
	}
	return out
}

// collections counts stored collections per series and artifact.
func (s *stack) collections(t *testing.T, project string) map[string]int {
	t.Helper()
	rows, err := s.database(t).Query(t.Context(), `
		select a.tag || ' ' || tc.benchmark || ' ' || tc.profile || ' ' || tc.scenario || ' ' || ps.metric, count(*)
		from (select series_id, artifact_id, collection_id from pstat
		      union all select series_id, artifact_id, collection_id from pstat_runtime) p
		join pstat_series ps on ps.id = p.series_id
		join test_case tc on tc.id = ps.test_case_id
		join artifact a on a.id = p.artifact_id
		where a.project = $1
		group by 1`, project)
	require.NoError(t, err)
	defer rows.Close()
	out := make(map[string]int)
	for rows.Next() {
		var series string
		var n int
		require.NoError(t, rows.Scan(&series, &n))
		out[series] = n
	}
	require.NoError(t, rows.Err())
	return out
}

// requireCollections requires exactly n collections for every series and artifact.
func (s *stack) requireCollections(t *testing.T, project string, n int) {
	t.Helper()
	all := s.collections(t, project)
	require.NotEmpty(t, all)
	for series, got := range all {
		require.Equal(t, n, got, "collections of %s", series)
	}
}

func requireSuccess(t *testing.T, outcome bench.Outcome, detail any) {
	t.Helper()
	require.Equal(t, bench.Success, outcome, "%+v", detail)
}

// ended is the longest that a small request may take here.
const ended = patience
