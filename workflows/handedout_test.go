package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// A request that began before hand-outs started jobs by themselves starts each that
// it is told of, once.
func TestARequestStartsTheJobsThatItWasTold(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.AdHoc}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{
		Counts: protocol.JobCounts{Total: 2, Open: 2}, HandedOut: []protocol.JobInput{input(jobA)},
	}, nil).Once()
	env.OnActivity(protocol.Progress, mock.Anything, mock.Anything).Return(func(context.Context, protocol.ProgressInput) (protocol.ProgressResult, error) {
		return protocol.ProgressResult{Counts: protocol.JobCounts{Total: 2, Open: 2}, HandedOut: []protocol.JobInput{input(jobA), input(jobB)}}, nil
	})
	started := make(map[bench.JobKey]int)
	env.OnWorkflow(protocol.JobWorkflow, mock.Anything, mock.Anything).Return(func(_ workflow.Context, in protocol.JobInput) error {
		started[in.Key]++
		return nil
	})
	for range 2 {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(protocol.SignalHandOut, protocol.HandOut{Jobs: []protocol.JobInput{input(jobB)}})
		}, time.Second)
	}
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobA, Status: bench.JobSuccess})
	}, 2*time.Second)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.OnActivity(protocol.CancelRequest, mock.Anything, mock.Anything).Return(nil).Once()

	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})

	require.True(t, temporal.IsCanceledError(errors.Unwrap(env.GetWorkflowError())), "%v", env.GetWorkflowError())
	require.Equal(t, map[bench.JobKey]int{jobA: 1, jobB: 1}, started)
}
