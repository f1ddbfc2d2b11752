//go:build unix

package jobrun_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/revision"
)

// trees are revisions by their commits, each with one file.
type trees map[string]string

func (trees) Resolve(context.Context, string, string) (revision.Revision, error) {
	return revision.Revision{}, revision.ErrNoRevision
}

func (t trees) Export(_ context.Context, _ string, want revision.Revision, dir string) error {
	text, known := t[want.Commit]
	if !known {
		return revision.ErrNoRevision
	}
	return os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644)
}

// scripted is a job that runs shell scripts in order.
func scripted(b *bundle, s bench.Script, last string) jobrun.Job {
	return jobrun.Job{
		Kind: bench.KindCommand, TestCases: []bench.TestCase{{Benchmark: bench.CommandBenchmark, Target: "x86_64-unknown-linux-gnu"}}, Iterations: 1,
		Command: &jobrun.Command{Argv: []string{"sh", "-c", last}, Env: []string{"JOURNAL=" + filepath.Join(b.suite, "journal")}, Script: &s, Revisions: trees{"c1": "one", "c2": "two"}},
	}
}

func before(b *bundle, script, dir string) bench.ScriptStep {
	return bench.ScriptStep{Argv: []string{"sh", "-c", script}, Env: map[string]string{"JOURNAL": filepath.Join(b.suite, "journal")}, Dir: dir, TimeoutSeconds: 60}
}

// Programs run in their order among the trees that were checked out; the last one is measured.
func TestACommandRunsItsScript(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := bench.Script{
		Checkouts: []bench.ScriptCheckout{{Repository: "/r", Revision: "main", Commit: "c1", Tree: "t1"}, {Repository: "/r", Revision: "lib", Commit: "c2", Tree: "t2", Path: "lib/two"}},
		Before:    []bench.ScriptStep{before(b, `echo "first $(cat file)" >>"$JOURNAL"; mkdir out`, ""), before(b, `echo "second $(cat file)" >>"$JOURNAL"`, "lib/two")},
		Dir:       "out",
	}
	require.NoError(t, b.run(t, scripted(b, s, `echo "last $(basename "$PWD") $(cat ../lib/two/file)" >>"$JOURNAL"`)))
	require.Equal(t, []string{"first one", "second two", "last out two"}, b.journal(t))
	results := b.sink.blocks[0].Results
	require.Len(t, results[0].Collections, 1)
	require.Positive(t, results[0].Collections[0].Metrics[bench.WallTime])

	s.Checkouts[0].Commit = "gone"
	failed := newBundle(t)
	err := failed.run(t, scripted(failed, s, "true"))
	require.ErrorContains(t, err, "checkout main")
}

// Exit codes and lines of output tell how a program ended, and whether all of it runs again.
func TestRulesTellHowAProgramEnded(t *testing.T) {
	t.Parallel()
	flaky := `echo try >>"$JOURNAL"; [ $(grep -c try "$JOURNAL") -ge 3 ] || `
	for name, c := range map[string]struct {
		script bench.Script
		last   string
		tries  int
		fails  string
	}{
		"another exit code":      {bench.Script{Success: []int{0, 3}}, `echo try >>"$JOURNAL"; exit 3`, 1, ""},
		"no longer 0":            {bench.Script{Success: []int{3}}, `echo try >>"$JOURNAL"`, 1, "ended with exit status 0"},
		"a line fails":           {bench.Script{Failure: []string{"^panic:"}}, `echo try >>"$JOURNAL"; echo panic: no; echo more`, 1, `printed a line that matches "^panic:"`},
		"the last line, unended": {bench.Script{Failure: []string{"no$"}}, `echo try >>"$JOURNAL"; printf 'panic: no'`, 1, `printed a line that matches "no$"`},
		"a code repeats":         {bench.Script{RetryCodes: []int{75}, Retries: 5}, flaky + "exit 75", 3, ""},
		"a line repeats":         {bench.Script{RetryPatterns: []string{"try again"}, Failure: []string{"again"}, Retries: 5}, flaky + "{ echo try again; exit 1; }", 3, ""},
		"not too often":          {bench.Script{RetryCodes: []int{75}, Retries: 1}, flaky + "exit 75", 2, "ended with exit status 75"},
		"others are not":         {bench.Script{RetryCodes: []int{75}, Retries: 5}, flaky + "exit 1", 1, "ended with exit status 1"},
		"a signal":               {bench.Script{Success: []int{0, 3}}, `echo try >>"$JOURNAL"; kill -9 $$`, 1, "ended by signal"},
		"one before":             {bench.Script{Before: []bench.ScriptStep{{Argv: []string{"sh", "-c", "exit 4"}, TimeoutSeconds: 60}}}, `echo last >>"$JOURNAL"`, 0, "ended with exit status 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			require.NoError(t, os.WriteFile(filepath.Join(b.suite, "journal"), nil, 0o644))
			require.NoError(t, b.run(t, scripted(b, c.script, c.last)))
			require.Equal(t, strings.TrimSuffix(strings.Repeat("try\n", c.tries), "\n"), strings.Join(b.journal(t), "\n"))
			result := b.sink.blocks[0].Results[0]
			if c.fails == "" {
				require.Nil(t, result.Failure)
				require.Len(t, result.Collections, 1)
				return
			}
			require.NotNil(t, result.Failure)
			require.Equal(t, bench.FailJob, result.Failure.Kind)
			require.Contains(t, result.Failure.Message, c.fails)
		})
	}
}

// Files that a script uploads are delivered after its success, each once; links and files
// outside are not.
func TestAScriptKeepsItsUploads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  string
		uploads []string
		want    map[string]string
		says    string // of the failure
	}{
		"paths and patterns":        {"mkdir out; echo one >out/one.txt; echo two >out/two.txt; echo top >top", []string{"out/*.txt", "top", "out/one.txt"}, map[string]string{"out/one.txt": "one\n", "out/two.txt": "two\n", "top": "top\n"}, ""},
		"nothing matches":           {"true", []string{"out/*"}, nil, "it succeeded, but nothing matches the upload out/*"},
		"a link":                    {"ln -s /etc/passwd report", []string{"report"}, nil, "reading report for its upload"},
		"a link of a directory":     {"ln -s /etc out", []string{"out/passwd"}, nil, "reading out/passwd for its upload"},
		"a directory":               {"mkdir out", []string{"out"}, nil, "not a regular file"},
		"a bad pattern":             {"true", []string{"out/["}, nil, "syntax error in pattern"},
		"too many":                  {"for i in $(seq 101); do echo >f$i; done", []string{"f*"}, nil, "its uploads match 101 files; at most 100 are kept"},
		"too large":                 {"truncate -s 65M big", []string{"big"}, nil, "big has 65 MiB, and at most 64 MiB are uploaded"},
		"none after a failure":      {"echo one >top; exit 3", []string{"top"}, nil, "exit status 3"},
		"what is refused elsewhere": {"echo no >refused", []string{"refused"}, nil, "the API refuses it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			job := scripted(b, bench.Script{Uploads: c.uploads}, c.script)
			got := make(map[string]string)
			job.Command.Keep = func(_ context.Context, files []jobrun.KeptFile) error {
				for _, f := range files {
					text, err := io.ReadAll(f.File)
					require.NoError(t, err)
					require.EqualValues(t, len(text), f.Size)
					if got[f.Path] = string(text); f.Path == "refused" {
						return &jobrun.Failure{Kind: bench.FailPermanent, Message: "the API refuses it"}
					}
				}
				return nil
			}
			err := b.run(t, job)
			if c.says == "" {
				require.NoError(t, err)
				require.Equal(t, c.want, got)
				require.Len(t, b.sink.blocks[0].Results[0].Collections, 1)
				return
			}
			failure := b.sink.blocks[0].Results[0].Failure
			require.NotNil(t, failure)
			require.Contains(t, failure.Message, c.says)
		})
	}
}
