package workflows_test

import (
	"context"
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

// options records the options of dispatches and children, which the test environment
// does not pass on.
type options struct {
	interceptor.WorkerInterceptorBase
	dispatched []temporal.Priority
	eager      bool // a dispatch may bypass its task queue
	children   []workflow.ChildWorkflowOptions
	running    string // ID of a workflow that was started elsewhere; a child cannot have it
}

func (p *options) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, p}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	seen *options
}

func (i *inbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: out}, i.seen})
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	seen *options
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if name == protocol.RunJob {
		given := workflow.GetActivityOptions(ctx)
		o.seen.dispatched = append(o.seen.dispatched, given.Priority)
		o.seen.eager = o.seen.eager || !given.DisableEagerExecution
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}

func (o *outbound) ExecuteChildWorkflow(ctx workflow.Context, name string, args ...any) workflow.ChildWorkflowFuture {
	given := workflow.GetChildWorkflowOptions(ctx)
	o.seen.children = append(o.seen.children, given)
	if given.WorkflowID == o.seen.running {
		// The test environment's own error for this is not Temporal's.
		failed, set := workflow.NewFuture(ctx)
		set.SetError(&temporal.ChildWorkflowExecutionAlreadyStartedError{})
		return unstarted{failed}
	}
	return o.Next.ExecuteChildWorkflow(ctx, name, args...)
}

// unstarted is a child that could not be started.
type unstarted struct{ workflow.Future }

func (u unstarted) GetChildWorkflowExecution() workflow.Future { return u.Future }
func (u unstarted) SignalChildWorkflow(workflow.Context, string, any) workflow.Future {
	return u.Future
}

// What is dispatched again goes first within its queue, with the level that the record
// says by then. How many dispatches began no run is kept between them.
func TestAFurtherDispatchGoesFirst(t *testing.T) {
	t.Parallel()
	env := environment(t)
	var seen options
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
	require.False(t, seen.eager)
}

// Each dispatch carries the secret that the record has drawn for it. A job that was
// dispatched before there were any is refused at the fence once, and then has one.
func TestEachDispatchCarriesItsSecret(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bench.Dispatch{"dispatched by a current version": "first", "by an older one": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := environment(t)
			var carried []bench.Dispatch
			env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).Return(func(_ context.Context, in protocol.RunJobInput) (protocol.RunJobResult, error) {
				if carried = append(carried, in.Dispatch); len(carried) == 4 {
					return protocol.RunJobResult{Outcome: bench.RunSuccess}, nil
				}
				return protocol.RunJobResult{}, temporal.NewNonRetryableApplicationError("dispatched again", protocol.ErrTypeInfrastructure, nil)
			})
			for _, drawn := range []bench.Dispatch{"second", "", "fourth"} { // the third by an older orchestrator
				env.OnActivity(protocol.AssessJob, mock.Anything, mock.Anything).
					Return(protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry, Dispatch: drawn}, nil).Once()
			}
			env.OnActivity(protocol.RecordJobEnd, mock.Anything, mock.Anything).Return(protocol.JobEndResult{Status: bench.JobSuccess}, nil).Once()
			in := input(jobA)
			in.Dispatch = first
			env.ExecuteWorkflow(protocol.JobWorkflow, in)
			require.NoError(t, env.GetWorkflowError())
			require.Equal(t, []bench.Dispatch{first, "second", "second", "fourth"}, carried)
		})
	}
}
