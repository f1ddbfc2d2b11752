package workflows_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/workflows"
)

const histories = "testdata/histories"

// states are those of each workflow that must have a recorded history: as its
// State search attribute names them, or what happened on the way.
var states = map[string][]string{
	protocol.RequestWorkflow: {
		workflows.PhaseAdmission, workflows.PhaseRunning, workflows.PhaseCompleting,
		workflows.PhaseCompleted, workflows.PhaseCancelled, "completed_with_failure",
	},
	protocol.JobWorkflow: {
		workflows.PhaseWaiting, workflows.PhaseBenchmark, workflows.PhaseRecording,
		"success", "success_after_retry", "failure", "cancelled",
	},
	protocol.QueueWorkflow:     {workflows.PhaseIdle, workflows.PhaseAdmitting, workflows.PhaseFull},
	protocol.ReconcileWorkflow: {workflows.PhaseCompleted},
	protocol.WatchWorkflow:     {workflows.PhaseCompleted, workflows.PhaseFailing},
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

// A state without a recorded history fails: it could break unnoticed.
func TestEveryStateHasARecordedHistory(t *testing.T) {
	t.Parallel()
	for workflow, names := range states {
		for _, state := range names {
			pattern := filepath.Join(histories, strings.ToLower(workflow)+"-"+state+"-*.json")
			files, err := filepath.Glob(pattern)
			require.NoError(t, err)
			require.NotEmpty(t, files, "no history %s; record one with 'make histories'", pattern)
		}
	}
}
