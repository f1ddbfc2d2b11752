package workflows_test

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/workflows"
)

const histories = "testdata/histories"

// ways are histories besides those of the states: what happened on the way there.
var ways = map[string][]string{
	protocol.RequestWorkflow: {"completed_with_failure", "completed_try", "completed_with_shared_job", "completed_with_optional_jobs", "in_progress_with_many_jobs"},
	protocol.JobWorkflow:     {"success_after_retry", "success_after_adoption", "success_of_a_short_command"},
}

// Every history that was recorded from a released state of the code replays.
// Histories are added (see CONTRIBUTING.md), never edited: one that does not
// replay means that open workflows would break.
func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(histories, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableRegistrationAliasing: true})
			require.NoError(t, err)
			workflows.Register(replayer)
			logger := sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
			require.NoError(t, replayer.ReplayWorkflowHistoryFromJSONFile(logger, file))
		})
	}
}

// A phase without a recorded history fails: it could break unnoticed.
func TestEveryPhaseHasARecordedHistory(t *testing.T) {
	t.Parallel()
	for workflow, names := range workflows.Phases() {
		for _, phase := range slices.Concat(names, ways[workflow]) {
			pattern := filepath.Join(histories, strings.ToLower(workflow)+"-"+phase+"-*.json")
			files, err := filepath.Glob(pattern)
			require.NoError(t, err)
			require.NotEmpty(t, files, "no history %s; record one with 'make histories'", pattern)
		}
	}
}

// A phase that is declared and not listed fails: nothing would ask for its history.
func TestEveryDeclaredPhaseIsListed(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/protocol/phase.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	declared := make(map[string]int) // by the workflow's type
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			require.Len(t, spec.(*ast.ValueSpec).Names, 1)
			declared[phaseOwner(t, spec.(*ast.ValueSpec))]++
		}
	}
	listed := make(map[string]int)
	for workflow, names := range workflows.Phases() {
		listed[workflow] = len(names)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names), "a phase of %s is listed twice", workflow)
	}
	require.Equal(t, declared, listed)
}

// phaseOwner is the type of the workflow that a phase is declared for: Job for
// "JobPausing JobPhase" and for "JobFailed = JobPhase(…)".
func phaseOwner(t *testing.T, phase *ast.ValueSpec) string {
	t.Helper()
	kind := phase.Type
	if kind == nil {
		kind = phase.Values[0].(*ast.CallExpr).Fun
	}
	workflow, ok := strings.CutSuffix(kind.(*ast.Ident).Name, "Phase")
	require.True(t, ok, "%s is no phase", phase.Names[0])
	return workflow
}

// Histories are only ever added: the sums of those that are there stay as they
// are. 'make histories' adds the lines of new ones.
func TestRecordedHistoriesAreNotEdited(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(histories, "SHA256SUMS"))
	require.NoError(t, err)
	sums := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok, line)
		sums[name] = sum
	}
	files, err := filepath.Glob(filepath.Join(histories, "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		history, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, sums[filepath.Base(file)], fmt.Sprintf("%x", sha256.Sum256(history)), "%s was edited, or added without its sum", file)
	}
	require.Len(t, sums, len(files), "a recorded history was removed")
}
