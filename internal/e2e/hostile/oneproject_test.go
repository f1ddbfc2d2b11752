package hostile_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/up"
)

// Workflows are of all projects: who may change one project only looks at them.
func TestAnAdminOfOneProjectEndsNoWorkflow(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	s.apply(t, "narrow", `name: narrow
artifact: {provider: directory, parameters: {path: "/artifacts/{tag}"}}
benchmarks:
  - {name: id, measure: {run: ["true"]}}
`)
	conn, err := grpc.NewClient(s.Up.Addresses[up.AddressTemporal], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	temporal := workflowservice.NewWorkflowServiceClient(conn)
	for project, want := range map[string]codes.Code{"narrow": codes.PermissionDenied, "": codes.NotFound} {
		token, err := s.API.CreateToken(t.Context(), apiclient.NewToken{Owner: "head", Role: api.RoleAdmin, Project: project})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token.Secret), patience)
		_, err = temporal.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: "benchloom"})
		require.NoError(t, err, "looking")
		_, err = temporal.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
			Namespace: "benchloom", WorkflowExecution: &common.WorkflowExecution{WorkflowId: "none"},
		})
		stop()
		require.Equal(t, want, status.Code(err), "project %q: %v", project, err)
	}
}
