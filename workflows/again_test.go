package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// priorities sees with what priority jobs are dispatched; the test environment's
// activities are not told.
type priorities struct {
	interceptor.WorkerInterceptorBase
	dispatched []temporal.Priority
}

func (p *priorities) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, p}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	seen *priorities
}

func (i *inbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: out}, i.seen})
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	seen *priorities
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if name == protocol.RunJob {
		o.seen.dispatched = append(o.seen.dispatched, workflow.GetActivityOptions(ctx).Priority)
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}

// What is dispatched again goes first within its queue, with the level that the record
// says by then. How many dispatches began no run is kept between them.
func TestAFurtherDispatchGoesFirst(t *testing.T) {
	t.Parallel()
	env := environment(t)
	var seen priorities
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&seen}})
	env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).
		Return(protocol.RunJobResult{}, temporal.NewNonRetryableApplicationError("gone", protocol.ErrTypeNotTaken, nil)).Twice()
	env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).Once()
	ask := protocol.AssessInput{Project: project, Key: jobA, Kind: bench.FailNotTaken, Message: "gone"}
	unbegun := protocol.Unbegun{Dispatches: 1, Runs: 2}
	env.OnActivity(protocol.AssessJob, mock.Anything, ask).
		Return(protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry, Level: 4, Unbegun: unbegun}, nil).Once()
	ask.Unbegun = unbegun
	env.OnActivity(protocol.AssessJob, mock.Anything, ask).
		Return(protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry}, nil).Once() // of an older orchestrator
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, mock.Anything).Return(protocol.JobEndResult{Status: bench.JobSuccess}, nil).Once()
	env.ExecuteWorkflow(protocol.JobWorkflow, input(jobA))
	require.NoError(t, env.GetWorkflowError())
	again := temporal.Priority{PriorityKey: 4, FairnessKey: "project:go#again", FairnessWeight: 1}
	require.Equal(t, []temporal.Priority{{PriorityKey: 3, FairnessKey: "project:go", FairnessWeight: 1}, again, again}, seen.dispatched)
}
