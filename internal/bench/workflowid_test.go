package bench_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// Operators look workflows up by these IDs, and running ones are found by them.
func TestWorkflowIDs(t *testing.T) {
	t.Parallel()
	require.Equal(t, "queue/go", bench.QueueWorkflowID("go"))

	request := func(r bench.Request) string {
		r.Project, r.ID = "go", "rabcdefghjk"
		return r.Ref().WorkflowID()
	}
	for want, r := range map[string]bench.Request{
		"request/go/1.26.0/rabcdefghjk":  {Type: bench.Release, Tag: "1.26.0"},
		"request/go/0a1b2c3/rabcdefghjk": {Type: bench.AdHoc, Tag: "0a1b2c3"},
		"request/go/pr-12/rabcdefghjk":   {Type: bench.Try, Origin: bench.Origin{PR: 12}, Tag: "attached-later"},
		"request/go/try/rabcdefghjk":     {Type: bench.Try, Tag: "attached-later"},
		"request/go/command/rabcdefghjk": {Type: bench.AdHoc, Commands: bench.Commands{Command: &bench.Command{Argv: []string{"true"}}}},
		"request/go/batch/rabcdefghjk":   {Type: bench.AdHoc, Commands: bench.Commands{Batch: 1000}},
	} {
		require.Equal(t, want, request(r))
	}

	job := func(j bench.Job) string {
		j.Project, j.Key = "go", "aaaaaaaaaaaaaaaa"
		return j.Ref().WorkflowID()
	}
	one := []bench.TestCase{{Benchmark: "json/parse it"}}
	for want, j := range map[string]bench.Job{
		"job/go/1.26.0/json-parse-it,opt,llvm/aaaaaaaaaaaaaaaa": {Work: bench.Work{Kind: bench.KindRuntime, Tag: "1.26.0", TestCases: one, Profile: "opt", Backend: "llvm"}},
		"job/go/1.26.0/2-test-cases/aaaaaaaaaaaaaaaa":           {Work: bench.Work{Kind: bench.KindCompileTime, Tag: "1.26.0", TestCases: append(one, one...)}},
		"job/go/1.26.0~1.25.0/json-parse-it/aaaaaaaaaaaaaaaa":   {Work: bench.Work{Kind: bench.KindRuntime, Tag: "1.26.0", Versus: "1.25.0", TestCases: one}},
		"job/go/0a1b2c3/build/aaaaaaaaaaaaaaaa":                 {Work: bench.Work{Kind: bench.KindBuild, Tag: "0a1b2c3"}},
		"job/go/nightly-run/sort/aaaaaaaaaaaaaaaa":              {Work: bench.Work{Kind: bench.KindCommand, Name: "nightly run", Command: &bench.Command{Argv: []string{"/usr/bin/sort", "-u"}}}},
		"job/go/command/sort/aaaaaaaaaaaaaaaa":                  {Work: bench.Work{Kind: bench.KindCommand, Command: &bench.Command{Argv: []string{"sort"}}}},
	} {
		require.Equal(t, want, job(j))
	}
}

func TestWorkflowIDsAreBoundedAndPrintable(t *testing.T) {
	t.Parallel()
	project, long := strings.Repeat("p", 64), strings.Repeat("é\x00/ ü%", 40)
	for _, id := range []string{
		bench.RequestRef{Project: project, ID: "r23456789ab", Type: bench.Master, Tag: strings.Repeat("a", 128)}.WorkflowID(),
		bench.JobRef{Project: project, Key: "aaaaaaaaaaaaaaaa", Kind: bench.KindCommand, Name: long, Program: long}.WorkflowID(),
		bench.JobRef{Project: project, Key: "aaaaaaaaaaaaaaaa", Kind: bench.KindRuntime, Tag: long, Versus: long, Benchmark: long, TestCases: 1, Profile: long, Backend: long}.WorkflowID(),
		bench.JobRef{Project: project, Key: "aaaaaaaaaaaaaaaa", Kind: bench.KindCommand, Program: "/"}.WorkflowID(),
		bench.JobRef{Project: project, Key: "aaaaaaaaaaaaaaaa", Kind: bench.KindRuntime}.WorkflowID(),
	} {
		require.LessOrEqual(t, len(id), 200)
		require.Regexp(t, `^[A-Za-z0-9._+=:,@~/-]+$`, id)
		_, of, name, ours := bench.ParseWorkflowID(id)
		require.True(t, ours, id)
		require.Equal(t, project, of)
		require.Contains(t, []string{"r23456789ab", "aaaaaaaaaaaaaaaa"}, name)
	}
}

func TestParseWorkflowID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string][]string{
		"request/go/1.26.0/r23456789ab":           {"request", "go", "r23456789ab"},
		"job/go/1.26.0/json,opt/aaaaaaaaaaaaaaaa": {"job", "go", "aaaaaaaaaaaaaaaa"},
		bench.QueueWorkflowID("go"):               {"queue", "go", ""},
	} {
		kind, project, name, ours := bench.ParseWorkflowID(id)
		require.True(t, ours, id)
		require.Equal(t, want, []string{string(kind), project, name})
	}
	for _, id := range []string{
		"", "request", "request/go", "request/go/", "request//x/r1", "request/go/x/", "request/go/r1", "job/go/x/aaaaaaaaaaaaaaaa", "queue/", "queue/go/x", "reconcile", "commits/go",
	} {
		_, _, _, ours := bench.ParseWorkflowID(id)
		require.False(t, ours, id)
	}
}
