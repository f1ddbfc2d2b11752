package workers

import (
	"context"
	"log/slog"
	"sync/atomic"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// PatientHeartbeats keeps measurements going while Temporal takes no heartbeats.
//
// The SDK cancels an activity whose heartbeat is not answered within 2 s, or is
// answered with "not found": the activity has timed out, or Temporal's database is a
// new one. Neither says that anybody wants the run to end, and the API knows that its
// collector is alive. So heartbeats fail only with their activity; an answer that asks
// for cancellation passes unchanged.
func PatientHeartbeats(log *slog.Logger) grpc.DialOption {
	var failing atomic.Bool
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if method != workflowservice.WorkflowService_RecordActivityTaskHeartbeat_FullMethodName {
			return err
		}
		switch {
		case err == nil:
			if failing.Swap(false) {
				log.InfoContext(ctx, "Temporal takes heartbeats again")
			}
		case status.Code(err) == codes.Canceled:
			return err
		case !failing.Swap(true): // every 2 s, possibly for hours: one message is enough
			log.WarnContext(ctx, "Temporal did not take a heartbeat; measuring goes on", "error", err)
		}
		return nil
	})
}
