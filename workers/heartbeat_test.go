package workers

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// answering is a server whose heartbeats and polls end with one status.
type answering struct {
	workflowservice.UnimplementedWorkflowServiceServer
	code codes.Code
}

func (a answering) RecordActivityTaskHeartbeat(context.Context, *workflowservice.RecordActivityTaskHeartbeatRequest) (*workflowservice.RecordActivityTaskHeartbeatResponse, error) {
	return &workflowservice.RecordActivityTaskHeartbeatResponse{CancelRequested: a.code == codes.OK}, status.Error(a.code, a.code.String())
}

func (a answering) PollActivityTaskQueue(context.Context, *workflowservice.PollActivityTaskQueueRequest) (*workflowservice.PollActivityTaskQueueResponse, error) {
	return &workflowservice.PollActivityTaskQueueResponse{}, status.Error(a.code, a.code.String())
}

// Only what asks for cancellation reaches the SDK: an answer, or the end of the run.
func TestAHeartbeatThatIsNotTakenCancelsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code  codes.Code
		kept  bool // the heartbeat's error reaches the SDK
		cause string
	}{
		{codes.OK, false, "an answer"},
		{codes.DeadlineExceeded, false, "a stalled server"},
		{codes.Unavailable, false, "a server that restarts"},
		{codes.ResourceExhausted, false, "a rate limit"},
		{codes.Internal, false, "a failing database"},
		{codes.Unknown, false, "a proxy's error"},
		{codes.NotFound, false, "an activity that has timed out"},
		{codes.PermissionDenied, false, "a certificate that has expired"},
		{codes.FailedPrecondition, false, "a namespace that has moved"},
		{codes.Canceled, true, "the end of the run"},
	} {
		t.Run(c.code.String(), func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			server := grpc.NewServer()
			workflowservice.RegisterWorkflowServiceServer(server, answering{code: c.code})
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			t.Cleanup(func() { server.Stop(); <-served })
			conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
				PatientHeartbeats(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, conn.Close()) })
			service := workflowservice.NewWorkflowServiceClient(conn)

			answer, err := service.RecordActivityTaskHeartbeat(t.Context(), &workflowservice.RecordActivityTaskHeartbeatRequest{})
			require.Equal(t, c.kept, err != nil, "%s: %v", c.cause, err)
			if c.code == codes.OK {
				require.True(t, answer.GetCancelRequested(), "cancellation passes")
			}
			_, err = service.PollActivityTaskQueue(t.Context(), &workflowservice.PollActivityTaskQueueRequest{})
			require.Equal(t, c.code, status.Code(err), "other calls keep their errors")
		})
	}
}
