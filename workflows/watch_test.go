package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/benchloom/benchloom/internal/protocol"
)

func watchEnvironment(t *testing.T) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	env := environment(t)
	env.RegisterActivityWithOptions(func(context.Context, protocol.WatchInput) (protocol.WatchResult, error) {
		return protocol.WatchResult{}, nil
	}, activity.RegisterOptions{Name: protocol.WatchCommits})
	return env
}

// One look is one workflow; a source that cannot be read is what it has found,
// not its failure.
func TestWatchLooksOnce(t *testing.T) {
	t.Parallel()
	for phase, found := range map[protocol.WatchPhase]protocol.WatchResult{
		protocol.WatchCompleted: {Repository: "/srv/go", Branch: "main", Head: "abc", Recorded: 2, Requested: []string{"abc"}, Requests: 1, Left: 1, Remarks: []string{"shallow"}},
		protocol.WatchFailing:   {Repository: "/srv/go", Branch: "main", Failed: "no such directory"},
	} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			env := watchEnvironment(t)
			env.OnActivity(protocol.WatchCommits, mock.Anything, protocol.WatchInput{Project: project}).Return(found, nil).Once()
			env.ExecuteWorkflow(protocol.WatchWorkflow, protocol.WatchInput{Project: project})
			require.NoError(t, env.GetWorkflowError())
			require.Equal(t, protocol.WatchStatus{Project: project, Phase: phase, Result: found}, status[protocol.WatchStatus](t, env))
			var result protocol.WatchResult
			require.NoError(t, env.GetWorkflowResult(&result))
			require.Equal(t, found, result)
		})
	}
}

// An outage ends this look; the Schedule starts the next.
func TestWatchGivesUpAfterFailedAttempts(t *testing.T) {
	t.Parallel()
	for message, test := range map[string]struct {
		kind  string
		tries int
	}{"database away": {protocol.ErrTypeInfrastructure, 3}, "no such project": {protocol.ErrTypePermanent, 1}} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			env := watchEnvironment(t)
			tries := 0
			env.OnActivity(protocol.WatchCommits, mock.Anything, mock.Anything).Return(func(context.Context, protocol.WatchInput) (protocol.WatchResult, error) {
				tries++
				return protocol.WatchResult{}, temporal.NewApplicationError(message, test.kind)
			})
			env.ExecuteWorkflow(protocol.WatchWorkflow, protocol.WatchInput{Project: project})
			require.ErrorContains(t, env.GetWorkflowError(), message)
			require.Equal(t, test.tries, tries)
		})
	}
}
