package workers

import (
	"context"
	"log/slog"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// PatientHeartbeats keeps a heartbeat that Temporal does not answer in time from
// cancelling its activity. The SDK allows one heartbeat 2 s and then takes the
// activity for lost, although the server waits for the heartbeat timeout and the
// next heartbeat may arrive. Answers of the server, cancellation among them, pass
// unchanged.
func PatientHeartbeats(log *slog.Logger) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if method != workflowservice.WorkflowService_RecordActivityTaskHeartbeat_FullMethodName {
			return err
		}
		switch status.Code(err) {
		case codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.Internal, codes.Unknown:
			log.WarnContext(ctx, "Temporal did not take a heartbeat; measuring goes on", "error", err)
			return nil
		}
		return err
	})
}
